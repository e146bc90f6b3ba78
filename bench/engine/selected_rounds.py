"""Keeps the test items by true and predicted class at the rounds that the rules select,
while a run is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.engine.evaluation import Counts, Evaluation
from bench.federation.types import TEST, VALIDATION
from bench.metric_names import ACCURACY, Metric
from bench.selection import RULES

Selected = Mapping[tuple[str, str], NDArray[Any]]
"""Stage and rule -> an array with one row for each client."""


class SelectedRounds:
    """Keeps, by stage and rule, the evaluation of every client at the row that the rule selects so far.

    ``samples[split]`` int32 ``[clients]`` are the numbers of items. Rules compare rows by a ``metric``.
    ``is_last[stage, rule]`` says for which clients this row is the last one, bool ``[clients]``;
    ``rows[stage, rule]`` which one it is, from 0.
    """

    def __init__(self, samples: Mapping[str, NDArray[np.int32]], metric: Metric = ACCURACY) -> None:
        self._samples = samples
        self._metric = metric
        self._selections: dict[tuple[str, str], Evaluation] = {}
        self.is_last: dict[tuple[str, str], NDArray[np.bool_]] = {}
        self.rows: dict[tuple[str, str], NDArray[np.int64]] = {}
        self._counts: dict[str, int] = {}

    def note(self, stage: str, evaluation: Evaluation) -> None:
        """Take in the next row of a stage."""
        row = self._counts.get(stage, 0)
        self._counts[stage] = row + 1
        for rule in RULES:
            key = stage, rule
            selection = self._selections.get(key)
            if selection is None:
                mask = np.ones(evaluation.correct.shape[1], np.bool_)
                selection = evaluation
                self.rows[key] = np.zeros(len(mask), np.int64)
            else:
                mask = self._is_better(rule, selection, evaluation)
            self.is_last[key] = mask
            self.rows[key] = np.where(mask, row, self.rows[key])
            self._selections[key] = Evaluation(
                np.where(mask, evaluation.correct, selection.correct),
                np.where(mask[:, None, None], evaluation.confusion, selection.confusion),
                np.where(mask, evaluation.roc_auc, selection.roc_auc),
            )

    def _is_better(self, rule: str, selection: Evaluation, evaluation: Evaluation) -> NDArray[np.bool_]:
        """For which clients the rule selects the next row and not the row so far, as it would of all rows."""
        if self._metric == ACCURACY:
            rows = np.stack([selection.correct, evaluation.correct])
            counts = self._samples["val"], self._samples["test"]
        else:
            areas = np.stack([selection.roc_auc, evaluation.roc_auc])
            has_area = ~np.isnan(areas[0])  # the labels alone decide
            rows = np.nan_to_num(areas)
            counts = has_area[VALIDATION].astype(np.int32), has_area[TEST].astype(np.int32)
        chosen = RULES[rule](rows[:, VALIDATION], counts[0], rows[:, TEST], counts[1])
        return np.asarray(chosen == 1, np.bool_)

    def confusion(self) -> dict[tuple[str, str], Counts]:
        """The test items by true and predicted class, int32 ``[clients, classes, classes]``, by stage and
        rule; none if they are too many.
        """
        return {key: row.confusion for key, row in self._selections.items() if row.confusion.size}

    def roc_auc(self) -> dict[tuple[str, str], NDArray[np.float64]]:
        """The areas under the ROC curve ``[clients]`` by stage and rule; none unless there
        are two classes.
        """
        areas = {key: row.roc_auc[TEST] for key, row in self._selections.items()}
        return {key: values for key, values in areas.items() if not np.isnan(values).all()}

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        selections = {key: tuple(row) for key, row in self._selections.items()}
        return {"selections": selections, "rows": self.rows, "counts": self._counts}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from the state of a checkpoint."""
        self._selections = {key: Evaluation(*row) for key, row in state["selections"].items()}
        self.rows, self._counts = state["rows"], state["counts"]
