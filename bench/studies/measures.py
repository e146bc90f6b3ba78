"""What experiments measure: one number a run, from its clients' results or its costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.metric_names import ACCURACY, Metric
from bench.studies.groups import Average, Group
from bench.studies.metric import TITLES
from bench.studies.results import Results
from bench.studies.settings import Reading
from bench.studies.source import Runs


@dataclass(frozen=True, eq=False)
class CellReading:
    """The runs of a cell and how they are read. ``baseline`` are those of Local in the same place, ``point``
    is the label of the cell's point.
    """

    results: Results
    group: Group
    stage: str
    rule: str
    average: Average
    baseline: Group | None = None
    point: str = ""

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Test results of every run and client, as ``Results.clients``."""
        return self.results.clients(self.group, self.stage, self.rule)

    @cached_property
    def accuracies(self) -> list[NDArray[np.float64]]:
        """Test accuracies in percent of the clients, ``[clients]`` for every run that has them, by seed."""
        starts = np.flatnonzero(np.diff(self.rows["seed"].to_numpy())) + 1
        return np.split(100.0 * self.rows["value"].to_numpy(np.float64), starts) if len(self.rows) else []

    def artefacts(self, name: str) -> Iterator[NDArray[Any] | None]:
        """An array kept with every run that has numbers; None where there is none."""
        return (self.results.artefact(int(run), name) for run in self.group.done["id"])


Values = tuple[float, ...]


class Members(Protocol):
    """What a measure sees: the runs of all its cells under one reading. A member is a run in a cell."""

    @property
    def rows(self) -> pd.DataFrame:
        """A row a member, its index: the columns of the runs frame, ``place`` (the cell's number), ``point``
        (the label of its point), ``baseline`` (the run of Local with the same seed on the same clients).
        """

    @property
    def clients(self) -> pd.DataFrame:
        """Test results: columns member, run, client, value (0 to 1), samples."""

    @property
    def baseline_clients(self) -> pd.DataFrame:
        """The same of the baseline's runs, under the member beside which each stands."""

    def accuracy(self, split: str = "test") -> pd.Series[float]:
        """Accuracy in percent by member, clients averaged as the study does."""

    @property
    def baseline_accuracy(self) -> pd.Series[float]:
        """Test accuracy in percent of the baseline's run by member."""

    def curves(self) -> pd.DataFrame:
        """Test accuracy in percent by round: columns member, row (from 1), value. The curves of a cell are
        cut to its shortest one.
        """

    def artefacts(self, name: str) -> pd.Series[Any]:
        """An array kept with runs by member, of those that keep it."""

    def best_rounds(self) -> pd.Series[int]:
        """The row of the curve, from 0, that ``best_val`` reads, by member, where that can be told."""

    def setting(self, key: str, default: object = None) -> pd.Series[Any]:
        """The value of a dotted key in the settings of the cell, by member."""


ByMember = Callable[[Members], "pd.Series[float]"]
"""A number for every member that has one."""


def _unread(members: Members) -> pd.Series[float]:
    raise NotImplementedError("a measure needs by_member, a function of all its runs at once")


EXCHANGED = "exchanged_bytes"
"""Name under which a run keeps ``bench.federation.traffic.TrafficMeter.exchanges``."""

MIXED = "collaboration_by_round"
"""Name under which a run keeps what its method mixed models with by round: ``[rounds, clients, clients]`` or
``[rounds, layers, clients, clients]``, row i of a matrix the shares of all clients' models in client i's.
"""


@dataclass(frozen=True, eq=False)
class Measure:
    """One number a run. ``metric`` is its name in the published numbers, which have it under the setting
    ``printed``; ``title`` is a column heading.

    ``reading`` None takes the study's primary one. ``meaning`` goes into the caption. ``ranked``
    marks the best and second best, the highest. A secondary one is another reading of the experiment's
    first measure: it stands in the experiment's own files and has no row in ``cells.csv``.
    ``not_comparable_reason`` says why no published value is a target for it. ``by_reading`` is False where
    stage and rule play no part. ``by_member`` gives what ``of`` does, for the runs of all cells at once.
    """

    name: str
    title: str
    meaning: str
    of: Callable[[CellReading], Values]
    metric: str = "accuracy"
    printed: str = ""
    reading: Reading | None = None
    digits: int = 2
    ranked: bool = False
    is_extra: bool = False
    not_comparable_reason: str = ""
    by_reading: bool = True
    by_member: ByMember = _unread


def _accuracy(split: str) -> Callable[[CellReading], Values]:
    def values(cell: CellReading) -> Values:
        aggregate = cell.results.aggregate(cell.group, cell.stage, cell.rule, cell.average, split)
        return aggregate.values if aggregate else ()

    return values


def _std_over_clients(cell: CellReading) -> Values:
    spread = 100.0 * cell.rows.groupby("seed", sort=True)["value"].std(ddof=1)
    return tuple(spread.dropna().tolist())


def _below_baseline(cell: CellReading) -> Values:
    if cell.baseline is None:
        return ()
    keys = ["seed", "client"]
    baseline_rows = cell.results.clients(cell.baseline, cell.stage, cell.rule)[[*keys, "value"]]
    rows = cell.rows[[*keys, "value"]]
    if len(rows) == len(baseline_rows) and all(np.array_equal(rows[key], baseline_rows[key]) for key in keys):
        pairs = rows.assign(value_alone=baseline_rows["value"])  # the usual case, without a merge
    else:
        pairs = rows.merge(baseline_rows, on=keys, suffixes=("", "_alone"))
    counts = (pairs["value"] < pairs["value_alone"]).groupby(pairs["seed"], sort=True).sum()
    return tuple(counts.astype(float).tolist())


def _by_run(value_of: Callable[[Runs], NDArray[np.float64]]) -> Callable[[CellReading], Values]:
    """What stored runs say of themselves, one number each."""
    return lambda cell: tuple(value_of(cell.group.done).tolist())


_total_megabytes = _by_run(lambda runs: (runs["bytes_up"] + runs["bytes_down"]) / 1e6)


def _total_megabytes_coded(cell: CellReading) -> Values:
    savings = [
        0.0 if rows is None else float((rows[:, 0] - rows[:, 1]).sum()) / 1e6
        for rows in cell.artefacts(EXCHANGED)
    ]
    return tuple(dense - saving for dense, saving in zip(_total_megabytes(cell), savings, strict=True))


def exchanged_megabytes(layer: int, coding: int) -> Callable[[CellReading], Values]:
    """Megabytes of a numbered exchange, both directions; ``coding`` 0 is dense, 1 non-zeros.

    0 for runs without that exchange.
    """

    def run_megabytes(rows: NDArray[Any] | None) -> float:
        return 0.0 if rows is None or len(rows) <= layer else float(rows[layer, coding].sum()) / 1e6

    return lambda cell: tuple(map(run_megabytes, cell.artefacts(EXCHANGED)))


def saved_megabytes(members: Members) -> pd.Series[float]:
    """Megabytes that a coding as non-zeros saves in the exchanges before training; 0 without any."""
    saved = members.artefacts(EXCHANGED).map(lambda rows: float((rows[:, 0] - rows[:, 1]).sum()) / 1e6)
    return saved.reindex(members.rows.index, fill_value=0.0).astype(float)


def exchanged(layer: int, coding: int) -> ByMember:
    """As ``exchanged_megabytes``."""

    def by_member(members: Members) -> pd.Series[float]:
        exchanges = members.artefacts(EXCHANGED)
        megabytes = exchanges[exchanges.map(len) > layer].map(
            lambda rows: float(rows[layer, coding].sum()) / 1e6
        )
        return megabytes.reindex(members.rows.index, fill_value=0.0).astype(float)

    return by_member


def _clients_below_baseline(members: Members) -> pd.Series[float]:
    pairs = members.clients.merge(members.baseline_clients, on=["member", "client"], suffixes=("", "_alone"))
    return (pairs["value"] < pairs["value_alone"]).groupby(pairs["member"]).sum().astype(float)


def _all_megabytes(members: Members) -> pd.Series[float]:
    return (members.rows["bytes_up"] + members.rows["bytes_down"]) / 1e6


TEST = Measure(
    "accuracy",
    "Test",
    "test accuracy in percent",
    _accuracy("test"),
    ranked=True,
    by_member=lambda members: members.accuracy(),
)
VALIDATION = Measure(
    "validation",
    "Validation",
    "validation accuracy in percent",
    _accuracy("val"),
    metric="validation_accuracy",
    ranked=True,
    by_member=lambda members: members.accuracy("val"),
)


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


def accuracy_under(reading: Reading, name: str = "", title: str = "", meaning: str = TEST.meaning) -> Measure:
    """Test accuracy under another reading than the primary one, by which it is named without a name."""
    return replace(
        TEST,
        name=name or f"{reading.stage}_{reading.rule}",
        title=title or f"{reading.stage}, {reading.rule}",
        meaning=meaning,
        reading=reading,
        is_extra=True,
    )


BEST_TEST = accuracy_under(
    Reading("trained", "best_test"),
    "best_test",
    "Test, best test round",
    "test accuracy at the round where it is best, which looks at test data",
)
RECEIVED = accuracy_under(
    Reading("received", "best_val"), "received", "Test, received", "test accuracy of the received model"
)
CLIENT_BEST_VAL = accuracy_under(
    Reading("trained", "client_best_val"),
    "client_best_val",
    "Test, each client's best round",
    "test accuracy with every client's model of its own best validation round",
)
STD_OVER_CLIENTS = Measure(
    "std_over_clients",
    "Std over clients",
    "sample standard deviation of the clients' test accuracies in points (the paper does not say "
    "which deviation it prints)",
    _std_over_clients,
    metric="std_over_clients",
    by_member=lambda members: 100.0 * members.clients.groupby("member")["value"].std().dropna(),
)
BELOW_BASELINE = Measure(
    "below_local",
    "Clients below Local",
    "number of clients whose test accuracy is lower than under Local with the same seed",
    _below_baseline,
    metric="clients_below_local",
    by_member=_clients_below_baseline,
)
OTHER_MACHINE = "measured on another machine and another definition of what counts"
SERVER_SECONDS = Measure(
    "server_seconds",
    "Server s/round",
    "seconds a round that the server takes (all but the clients' training and the evaluation)",
    _by_run(lambda runs: runs["seconds_server"] / runs["rounds"]),
    metric="seconds_per_round",
    digits=4,
    not_comparable_reason=OTHER_MACHINE,
    by_reading=False,
    by_member=lambda members: members.rows["seconds_server"] / members.rows["rounds"],
)
PEAK_MEMORY = Measure(
    "peak_memory",
    "Peak MiB",
    "peak memory in MiB: on a CPU all that the process holds, Python, libraries and data included",
    _by_run(lambda runs: runs["peak_memory"] / 2**20),
    metric="memory_mib",
    digits=0,
    not_comparable_reason=OTHER_MACHINE,
    by_reading=False,
    by_member=lambda members: members.rows["peak_memory"] / 2**20,
)
TOTAL_MEGABYTES = Measure(
    "total_megabytes",
    "MB in all",
    "megabytes that clients and server exchange in a run, both directions, training included",
    _total_megabytes,
    metric="total_megabytes",
    digits=1,
    by_reading=False,
    by_member=_all_megabytes,
)
TOTAL_MEGABYTES_CODED = Measure(
    "total_megabytes_coded",
    "MB in all, coded",
    "the same with the exchanges before training as non-zeros",
    _total_megabytes_coded,
    metric="total_megabytes_coded",
    digits=1,
    by_reading=False,
    by_member=lambda members: _all_megabytes(members) - saved_megabytes(members),
)
MEASURES = (
    TEST,
    VALIDATION,
    BEST_TEST,
    RECEIVED,
    CLIENT_BEST_VAL,
    STD_OVER_CLIENTS,
    BELOW_BASELINE,
    SERVER_SECONDS,
    PEAK_MEMORY,
    TOTAL_MEGABYTES,
    TOTAL_MEGABYTES_CODED,
)
"""What experiments of any study may measure, by name."""
