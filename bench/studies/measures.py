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


@dataclass(frozen=True, eq=False)
class Measure:
    """One number a run. ``title`` heads its columns, ``meaning`` says in captions what it is."""

    name: str
    title: str
    meaning: str
    of: Callable[[Members], pd.Series[float]]  #: the numbers of all members at once, of those that have one
    metric: str = ""  #: its name in the published numbers; "": ``name``
    printed: str = ""  #: the setting under which they have it
    reading: Reading | None = None  #: None: the study's primary one
    digits: int = 2
    ranked: bool = False  #: it is an accuracy of which the highest and the second are marked
    is_extra: bool = False  #: it is another reading of the experiment's first measure
    not_comparable_reason: str = ""  #: why no published value is a target for it


def _by_name(measure: Any, info: ValidationInfo) -> Measure:
    measures: dict[str, Measure] = info.context or {}
    if isinstance(measure, Measure):
        return measure
    if measure not in measures:
        raise unknown("measure", str(measure), measures)
    return measures[measure]


NamedMeasure = Annotated[Any, PlainValidator(_by_name)]
"""A measure, which files call by its name; the context of the validation has them by their names."""

TEST = Measure("accuracy", "Test", "test accuracy in percent", Members.accuracy, "accuracy", ranked=True)


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


def _clients_below_baseline(members: Members) -> pd.Series[float]:
    pairs = members.beside_baseline
    return (pairs["value"] < pairs["value_alone"]).groupby(pairs["member"]).sum().astype(float)


def _megabytes(members: Members) -> pd.Series[float]:
    return (members.rows["bytes_up"] + members.rows["bytes_down"]) / 1e6


def _megabytes_coded(members: Members) -> pd.Series[float]:
    exchanged = members.artefacts("exchanged_bytes")  # see ``TrafficMeter.exchanges``
    saved = exchanged.map(lambda rows: float((rows[:, 0] - rows[:, 1]).sum()) / 1e6)
    return _megabytes(members) - saved.reindex(members.rows.index, fill_value=0.0).astype(float)


STD_OVER_CLIENTS = Measure(
    "std_over_clients",
    "Std over clients",
    "sample standard deviation of the clients' test accuracies in points (the paper does not say "
    "which deviation it prints)",
    lambda members: 100.0 * members.clients.groupby("member")["value"].std().dropna(),
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
)
TOTAL_MEGABYTES = Measure(
    "total_megabytes",
    "MB in all",
    "megabytes that clients and server exchange in a run, both directions, training included",
    _megabytes,
    digits=1,
)
MEASURES = (
    TEST,
    Measure(
        "roc_auc",
        "ROC-AUC",
        "area under the ROC curve on test items in percent, of clients that have both classes",
        lambda members: members.accuracy(metric=ROC_AUC),
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
    ),
    TOTAL_MEGABYTES,
    Measure(
        "total_megabytes_coded",
        "MB in all, coded",
        "the same with the exchanges before training as non-zeros",
        _megabytes_coded,
        digits=1,
    ),
)
"""What experiments of any study may measure."""
