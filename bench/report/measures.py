"""What experiments measure: one number a run, from its clients' results or its costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.report.results import Average, Group, Results
from bench.report.settings import Reading


@dataclass(frozen=True, eq=False)
class Measured:
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

    def clients(self) -> Iterator[tuple[int, pd.DataFrame]]:
        """Seed and clients' test results of every run that has them."""
        return iter(self._by_seed)

    @cached_property
    def _by_seed(self) -> list[tuple[int, pd.DataFrame]]:
        rows = self.results.clients(self.group, self.stage, self.rule)
        return [(int(str(seed)), part) for seed, part in rows.groupby("seed", sort=True)]


Values = tuple[float, ...]

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
    marks the best and second best, the highest. ``other`` is another reading of the experiment's
    first measure: it stands in the experiment's own files and has no row in ``cells.csv``.
    ``barred`` says why no published value is a target for it. ``by_reading`` is False where stage
    and rule play no part.
    """

    name: str
    title: str
    meaning: str
    of: Callable[[Measured], Values]
    metric: str = "accuracy"
    printed: str = ""
    reading: Reading | None = None
    digits: int = 2
    ranked: bool = False
    other: bool = False
    barred: str = ""
    by_reading: bool = True


def _accuracy(split: str) -> Callable[[Measured], Values]:
    def values(cell: Measured) -> Values:
        found = cell.results.aggregate(cell.group, cell.stage, cell.rule, cell.average, split)
        return found.values if found else ()

    return values


def _std_over_clients(cell: Measured) -> Values:
    return tuple(100.0 * float(part["value"].std(ddof=1)) for _, part in cell.clients() if len(part) > 1)


def _below_baseline(cell: Measured) -> Values:
    if cell.baseline is None:
        return ()
    rows = cell.results.clients(cell.baseline, cell.stage, cell.rule)
    alone = {int(str(seed)): part.set_index("client")["value"] for seed, part in rows.groupby("seed")}
    return tuple(
        float((part.set_index("client")["value"] < alone[seed]).sum())
        for seed, part in cell.clients()
        if seed in alone
    )


def _honest(cell: Measured) -> Values:
    values = []
    attacked = any(key.startswith("attack.") for key in cell.group.settings)
    for _, part in cell.clients():
        if attacked:
            malicious = cell.results.artefact(int(part["run_id"].iloc[0]), "malicious")
            if malicious is None:
                continue
            part = part[np.asarray(malicious)[part["client"].to_numpy()] == 0]
        if len(part):
            values.append(100.0 * float(part["value"].mean()))
    return tuple(values)


def _server_seconds(cell: Measured) -> Values:
    done = cell.group.done
    return tuple((done["seconds_server"] / done["rounds"]).astype(float))


def _peak_memory(cell: Measured) -> Values:
    return tuple(cell.group.done["peak_memory"].astype(float) / 2**20)


def _total_megabytes(cell: Measured) -> Values:
    done = cell.group.done
    return tuple(((done["bytes_up"] + done["bytes_down"]) / 1e6).astype(float))


def _total_megabytes_coded(cell: Measured) -> Values:
    kept = (cell.results.artefact(int(run), EXCHANGED) for run in cell.group.done["id"])
    saved = [0.0 if found is None else float((found[:, 0] - found[:, 1]).sum()) / 1e6 for found in kept]
    return tuple(dense - less for dense, less in zip(_total_megabytes(cell), saved, strict=True))


def exchanged_megabytes(layer: int, coding: int) -> Callable[[Measured], Values]:
    """Megabytes of a numbered exchange, both directions; ``coding`` 0 is dense, 1 non-zeros.

    0 for runs without that exchange.
    """

    def of(found: NDArray[Any] | None) -> float:
        return 0.0 if found is None or len(found) <= layer else float(found[layer, coding].sum()) / 1e6

    def values(cell: Measured) -> Values:
        return tuple(of(cell.results.artefact(int(run), EXCHANGED)) for run in cell.group.done["id"])

    return values


TEST = Measure("accuracy", "Test", "test accuracy in percent", _accuracy("test"), ranked=True)
VALIDATION = Measure(
    "validation",
    "Validation",
    "validation accuracy in percent",
    _accuracy("val"),
    metric="validation_accuracy",
    ranked=True,
)


def another(reading: Reading) -> Measure:
    """Test accuracy under another reading than the primary one."""
    return replace(
        TEST,
        name=f"{reading.stage}_{reading.rule}",
        title=f"{reading.stage}, {reading.rule}",
        reading=reading,
        other=True,
    )


BEST_TEST = Measure(
    "best_test",
    "Test, best test round",
    "test accuracy at the round where it is best, which looks at test data",
    _accuracy("test"),
    reading=Reading("trained", "best_test"),
    ranked=True,
    other=True,
)
CLIENT_BEST_VAL = Measure(
    "client_best_val",
    "Test, each client's best round",
    "test accuracy with every client's model of its own best validation round",
    _accuracy("test"),
    reading=Reading("trained", "client_best_val"),
    ranked=True,
    other=True,
)
STD_OVER_CLIENTS = Measure(
    "std_over_clients",
    "Std over clients",
    "sample standard deviation of the clients' test accuracies in points (the paper does not say "
    "which deviation it prints)",
    _std_over_clients,
    metric="std_over_clients",
)
BELOW_LOCAL = Measure(
    "below_local",
    "Clients below Local",
    "number of clients whose test accuracy is lower than under Local with the same seed",
    _below_baseline,
    metric="clients_below_local",
)
HONEST = Measure(
    "honest",
    "Honest clients",
    "test accuracy in percent over honest clients alone",
    _honest,
    metric="honest_accuracy",
    ranked=True,
)
NEWCOMERS_TRAINED = Measure(
    "after_training",
    "After local epochs",
    "test accuracy of new clients after their last local epoch",
    _accuracy("test"),
    reading=Reading("trained", "last"),
    ranked=True,
)
NEWCOMERS_RECEIVED = Measure(
    "zero_shot",
    "Zero-shot",
    "test accuracy of new clients with the model they are welcomed with",
    _accuracy("test"),
    reading=Reading("received", "last"),
    ranked=True,
)
OTHER_MACHINE = "measured on another machine and another definition of what counts"
SERVER_SECONDS = Measure(
    "server_seconds",
    "Server s/round",
    "seconds a round that the server takes (all but the clients' training and the evaluation)",
    _server_seconds,
    metric="seconds_per_round",
    digits=4,
    barred=OTHER_MACHINE,
    by_reading=False,
)
PEAK_MEMORY = Measure(
    "peak_memory",
    "Peak MiB",
    "peak memory in MiB: on a CPU all that the process holds, Python, libraries and data included",
    _peak_memory,
    metric="memory_mib",
    digits=0,
    barred=OTHER_MACHINE,
    by_reading=False,
)
TOTAL_MEGABYTES = Measure(
    "total_megabytes",
    "MB in all",
    "megabytes that clients and server exchange in a run, both directions, training included",
    _total_megabytes,
    metric="total_megabytes",
    digits=1,
    by_reading=False,
)
TOTAL_MEGABYTES_CODED = Measure(
    "total_megabytes_coded",
    "MB in all, coded",
    "the same with the exchanges before training as non-zeros",
    _total_megabytes_coded,
    metric="total_megabytes_coded",
    digits=1,
    by_reading=False,
)
MEASURES = (
    TEST,
    VALIDATION,
    BEST_TEST,
    CLIENT_BEST_VAL,
    STD_OVER_CLIENTS,
    BELOW_LOCAL,
    HONEST,
    NEWCOMERS_TRAINED,
    NEWCOMERS_RECEIVED,
    SERVER_SECONDS,
    PEAK_MEMORY,
    TOTAL_MEGABYTES,
    TOTAL_MEGABYTES_CODED,
)
"""What experiments of any study may measure, by name."""
