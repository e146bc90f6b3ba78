"""What a run came to, apart from who made it, when and at what cost; and whether two are the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.metric_names import ACCURACY
from bench.store.bundle import Bundle
from bench.store.bundle_check import CURVE_SPLIT
from bench.store.store import Store

RUNS_AT_A_TIME = 200

Reading = tuple[str, str]
"""Stage and rule."""
Row = tuple[int, str, str, str, str, float, int]
"""Client, stage, split, rule, metric (accuracy), value, samples."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """State, partition and numbers of one run; ``curves`` are the test split's, by stage."""

    state: str
    partition_hash: str
    rows: tuple[Row, ...]
    curves: dict[str, NDArray[np.int32]]

    def same(self, other: Outcome) -> bool:
        """Whether state, partition, every accuracy and every count of the curves are equal."""
        return (
            (self.state, self.partition_hash, self.rows) == (other.state, other.partition_hash, other.rows)
            and self.curves.keys() == other.curves.keys()
            and all(np.array_equal(curve, other.curves[stage]) for stage, curve in self.curves.items())
        )

    def tested(self) -> dict[Reading, tuple[float, int]]:
        """Correct predictions and samples of the test split over all clients, by stage and rule."""
        counts: dict[Reading, tuple[float, int]] = {}
        for _, stage, split, rule, metric, value, samples in self.rows:
            if split == CURVE_SPLIT and metric == ACCURACY:
                correct, total = counts.get((stage, rule), (0.0, 0))
                counts[stage, rule] = (correct + value * samples, total + samples)
        return counts


def outcomes(source: Store | Bundle, runs: pd.DataFrame) -> Iterator[tuple[dict[str, Any], Outcome]]:
    """Every run (rows of ``runs()`` of the source, as dictionaries) with its outcome, in order."""
    for start in range(0, len(runs), RUNS_AT_A_TIME):
        part = runs.iloc[start : start + RUNS_AT_A_TIME]
        rows: dict[int, list[Row]] = {}
        results = source.client_results(part["id"])
        results = results[results["metric"] == ACCURACY]  # what older runs lack tells none apart
        for run, *values in results.itertuples(index=False, name=None):
            rows.setdefault(run, []).append(tuple(values))
        curves: dict[int, dict[str, NDArray[np.int32]]] = {}
        for (run, stage), counts in source.curves(part["id"], CURVE_SPLIT).items():
            curves.setdefault(run, {})[stage] = counts
        for run_row in part.to_dict("records"):
            number = int(run_row["id"])
            numbers = tuple(rows.get(number, ())), curves.get(number, {})
            outcome = Outcome(run_row["state"], run_row["partition_hash"], *numbers)
            yield {str(name): value for name, value in run_row.items()}, outcome
