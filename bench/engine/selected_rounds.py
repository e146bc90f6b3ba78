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
from bench.selection import RULES

Selected = Mapping[tuple[str, str], NDArray[Any]]
"""Stage and rule -> an array with one row for each client."""


class SelectedRounds:
    """Keeps, by stage and rule, the evaluation of every client at the row that the rule selects so far.

    ``samples[split]`` int32 ``[clients]`` are the numbers of items. ``is_last[stage, rule]`` says for which
    clients this row is the last one, bool ``[clients]``.
    """

    def __init__(self, samples: Mapping[str, NDArray[np.int32]]) -> None:
        self._samples = samples
        self._selections: dict[tuple[str, str], Evaluation] = {}
        self.is_last: dict[tuple[str, str], NDArray[np.bool_]] = {}

    def note(self, stage: str, evaluation: Evaluation) -> None:
        """Take in the next row of a stage."""
        for rule, choose in RULES.items():
            key = stage, rule
            selection = self._selections.get(key)
            if selection is None:
                self._selections[key] = evaluation
                self.is_last[key] = np.ones(len(evaluation.roc_auc), np.bool_)
                continue
            # the row so far against the next one: a rule selects as it would of all rows
            rows = np.stack([selection.correct, evaluation.correct])
            validation, test = rows[:, VALIDATION], rows[:, TEST]
            mask = choose(validation, self._samples["val"], test, self._samples["test"]) == 1
            self.is_last[key] = mask
            self._selections[key] = Evaluation(
                np.where(mask, evaluation.correct, selection.correct),
                np.where(mask[:, None, None], evaluation.confusion, selection.confusion),
                np.where(mask, evaluation.roc_auc, selection.roc_auc),
            )

    def confusion(self) -> dict[tuple[str, str], Counts]:
        """The test items by true and predicted class, int32 ``[clients, classes, classes]``, by stage and
        rule; none if they are too many.
        """
        return {key: row.confusion for key, row in self._selections.items() if row.confusion.size}

    def roc_auc(self) -> dict[tuple[str, str], NDArray[np.float64]]:
        """The areas under the ROC curve ``[clients]`` by stage and rule; none unless there
        are two classes.
        """
        return {key: row.roc_auc for key, row in self._selections.items() if not np.isnan(row.roc_auc).all()}

    def state(self) -> dict[tuple[str, str], tuple[NDArray[Any], ...]]:
        """The state for a checkpoint."""
        return {key: tuple(row) for key, row in self._selections.items()}

    def resume(self, state: Mapping[tuple[str, str], tuple[NDArray[Any], ...]]) -> None:
        """Go on from the state of a checkpoint."""
        self._selections = {key: Evaluation(*row) for key, row in state.items()}
