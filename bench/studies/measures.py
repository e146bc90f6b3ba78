"""What experiments measure: one number a run, from its clients' results or its costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any

import pandas as pd
from pydantic import PlainValidator, ValidationInfo

from bench.errors import unknown
from bench.metric_names import ACCURACY, ROC_AUC, TITLES, Metric
from bench.studies.members import Members
from bench.studies.settings import Reading

EXCHANGED = "exchanged_bytes"
"""Name under which a run keeps ``bench.federation.traffic.TrafficMeter.exchanges``."""

MIXED = "collaboration_by_round"
"""Name under which a run keeps what its method mixed models with by round: ``[rounds, clients, clients]`` or
``[rounds, layers, clients, clients]``, row i of a matrix the shares of all clients' models in client i's.
"""


@dataclass(frozen=True, eq=False)
class Measure:
    """One number a run, which ``of`` gives for all members at once, of those that have one.

    title        a column heading
    meaning      goes into the caption
    metric       its name in the published numbers, which have it under the setting ``printed``
    reading      None: the study's primary one
    ranked       the highest and the second are marked
    is_extra     it is another reading of the experiment's first measure
    by_reading   False where stage and rule play no part
    not_comparable_reason   why no published value is a target for it
    """

    name: str
    title: str
    meaning: str
    of: Callable[[Members], pd.Series[float]]
    metric: str = "accuracy"
    printed: str = ""
    reading: Reading | None = None
    digits: int = 2
    ranked: bool = False
    is_extra: bool = False
    not_comparable_reason: str = ""
    by_reading: bool = True


def _by_name(measure: Any, info: ValidationInfo) -> Measure:
    measures: dict[str, Measure] = info.context or {}
    if isinstance(measure, Measure):
        return measure
    if measure not in measures:
        raise unknown("measure", str(measure), measures)
    return measures[measure]


NamedMeasure = Annotated[Any, PlainValidator(_by_name)]
"""A measure, which files call by its name; the context of the validation has them by their names."""


def _saved_megabytes(members: Members) -> pd.Series[float]:
    """Megabytes that a coding as non-zeros saves in the exchanges before training; 0 without any."""
    saved = members.artefacts(EXCHANGED).map(lambda rows: float((rows[:, 0] - rows[:, 1]).sum()) / 1e6)
    return saved.reindex(members.rows.index, fill_value=0.0).astype(float)


def _clients_below_baseline(members: Members) -> pd.Series[float]:
    pairs = members.clients.merge(members.baseline_clients, on=["member", "client"], suffixes=("", "_alone"))
    return (pairs["value"] < pairs["value_alone"]).groupby(pairs["member"]).sum().astype(float)


def _megabytes(members: Members) -> pd.Series[float]:
    return (members.rows["bytes_up"] + members.rows["bytes_down"]) / 1e6


TEST = Measure("accuracy", "Test", "test accuracy in percent", Members.accuracy, ranked=True)


@cache
def measure_of_metric(measure: Measure, metric: Metric) -> Measure | None:
    """A measure of test accuracy as one of another metric, for which nothing is published; None of others.

    Accuracy leaves every measure as it is.
    """
    if metric == ACCURACY:
        return measure
    if measure.of is not TEST.of:
        return None
    name = metric if measure is TEST else f"{metric}_{measure.name}"
    meaning = measure.meaning.replace("accuracy", TITLES[metric])
    return replace(measure, name=name, meaning=meaning, metric=metric)


def accuracy_under(reading: Reading) -> Measure:
    """Test accuracy under another reading than the primary one, by which it is named."""
    name, title = f"{reading.stage}_{reading.rule}", f"{reading.stage}, {reading.rule}"
    return replace(TEST, name=name, title=title, reading=reading, is_extra=True)


STD_OVER_CLIENTS = Measure(
    "std_over_clients",
    "Std over clients",
    "sample standard deviation of the clients' test accuracies in points (the paper does not say "
    "which deviation it prints)",
    lambda members: 100.0 * members.clients.groupby("member")["value"].std().dropna(),
    metric="std_over_clients",
)
BELOW_BASELINE = Measure(
    "below_local",
    "Clients below Local",
    "number of clients whose test accuracy is lower than under Local with the same seed",
    _clients_below_baseline,
    metric="clients_below_local",
)
OTHER_MACHINE = "measured on another machine and another definition of what counts"
SERVER_SECONDS = Measure(
    "server_seconds",
    "Server s/round",
    "seconds a round that the server takes (all but the clients' training and the evaluation)",
    lambda members: members.rows["seconds_server"] / members.rows["rounds"],
    metric="seconds_per_round",
    digits=4,
    not_comparable_reason=OTHER_MACHINE,
    by_reading=False,
)
TOTAL_MEGABYTES = Measure(
    "total_megabytes",
    "MB in all",
    "megabytes that clients and server exchange in a run, both directions, training included",
    _megabytes,
    metric="total_megabytes",
    digits=1,
    by_reading=False,
)
MEASURES = (
    TEST,
    Measure(
        "roc_auc",
        "ROC-AUC",
        "area under the ROC curve on test items in percent, of clients that have both classes",
        lambda members: members.accuracy(metric=ROC_AUC),
        metric="roc_auc",
        ranked=True,
    ),
    Measure(
        "validation",
        "Validation",
        "validation accuracy in percent",
        lambda members: members.accuracy("val"),
        metric="validation_accuracy",
        ranked=True,
    ),
    replace(
        accuracy_under(Reading("trained", "best_test")),
        name="best_test",
        title="Test, best test round",
        meaning="test accuracy at the round where it is best, which looks at test data",
    ),
    replace(
        accuracy_under(Reading("received", "best_val")),
        name="received",
        title="Test, received",
        meaning="test accuracy of the received model",
    ),
    STD_OVER_CLIENTS,
    BELOW_BASELINE,
    SERVER_SECONDS,
    Measure(
        "peak_memory",
        "Peak MiB",
        "peak memory in MiB: on a CPU all that the process holds, Python, libraries and data included",
        lambda members: members.rows["peak_memory"] / 2**20,
        metric="memory_mib",
        digits=0,
        not_comparable_reason=OTHER_MACHINE,
        by_reading=False,
    ),
    TOTAL_MEGABYTES,
    Measure(
        "total_megabytes_coded",
        "MB in all, coded",
        "the same with the exchanges before training as non-zeros",
        lambda members: _megabytes(members) - _saved_megabytes(members),
        metric="total_megabytes_coded",
        digits=1,
        by_reading=False,
    ),
)
"""What experiments of any study may measure."""
