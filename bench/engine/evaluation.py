"""Compares predictions with labels, and collects the results over the rounds of a run.

No other module of the engine sees held-out labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench.engine.batch import Batch, Block, Stack
from bench.engine.clients import AfterEpoch, Clients
from bench.engine.costs import Stopwatch
from bench.engine.method import Method
from bench.errors import DivergedError
from bench.federation.types import SPLITS, TEST, VALIDATION, Federation
from bench.metric_names import ACCURACY, ROC_AUC, Metric
from bench.metrics import roc_auc
from bench.selection import RULES
from bench.spec import STAGES

Numbers = NDArray[np.int64]
Counts = NDArray[np.int32]
Key = tuple[str, str]
"""Stage and rule, or stage and split."""

MOST_NUMBERS = 1_000_000
"""The most counts by class that a run keeps, over clients, stages and rules: 4 MB before compression."""


class Evaluation(NamedTuple):
    """The correct predictions of some clients' models. Every array has a row for each client.

    Attributes:
        correct: the number of correct items, int32 ``[clients, splits]``.
        confusion: the test items by true and predicted class, int32 ``[clients, classes, classes]``. It
            is ``[clients, 0, 0]`` if it would be too large (see ``MOST_NUMBERS``) or if test labels are
            hidden from the run.
        roc_auc: the area under the ROC curve, float64 ``[clients, splits]``. It is NaN for training items,
            for splits whose labels are hidden from the run, if there are not two classes, and for a client
            whose items of the split are all of one class.
    """

    correct: Counts
    confusion: Counts
    roc_auc: NDArray[np.float64]

    def of(self, clients: NDArray[np.bool_]) -> Evaluation:
        """A copy of the rows of some clients."""
        return Evaluation(self.correct[clients], self.confusion[clients], self.roc_auc[clients])

    def put(self, clients: Numbers | NDArray[np.bool_], evaluation: Evaluation) -> None:
        """Replace the rows of some clients by the rows of another evaluation."""
        self.correct[clients] = evaluation.correct
        self.confusion[clients] = evaluation.confusion
        self.roc_auc[clients] = evaluation.roc_auc


class _Items(NamedTuple):
    """Items with a split and a known label: places in the flattened labels, clients' rows, roles, labels."""

    places: Tensor
    rows: Numbers
    roles: Numbers
    labels: Numbers


class Evaluator:
    """Compares the predictions of a stack of models with the labels, for every client.

    Only the clients in ``numbers`` (default: all) have models. Other clients count as clients without
    items. ``samples[split]`` int32 ``[clients]`` are the numbers of items. Items that a method appended to a
    client's data have no label and are not counted. If the ``metric`` that chooses a round is the area under
    the ROC curve, the area is computed for validation items, too.
    """

    def __init__(
        self,
        federation: Federation,
        watch: Stopwatch,
        metric: Metric = ACCURACY,
        numbers: Numbers | None = None,
    ) -> None:
        self._clients = federation.clients
        self._watch = watch
        self.numbers = np.arange(len(federation)) if numbers is None else numbers
        members = [self._clients[number] for number in self.numbers]
        self.samples = {split: np.zeros(len(federation), np.int32) for split in SPLITS}
        for role, split in enumerate(SPLITS):
            self.samples[split][self.numbers] = [client.count(role) for client in members]
        has_labels = all((client.labels[client.roles == TEST] >= 0).all() for client in members)
        is_small = len(members) * federation.classes**2 * len(STAGES) * len(RULES) <= MOST_NUMBERS
        self._confused_classes = federation.classes if has_labels and is_small else 0
        self._roles_with_area: tuple[int, ...] = ()
        if federation.classes == 2:
            self._roles_with_area = (VALIDATION, TEST) if metric == ROC_AUC else (TEST,)
        self._items: WeakKeyDictionary[Block, _Items] = WeakKeyDictionary()

    def all(self, method: Method, clients: Clients, stack: Stack) -> Evaluation:
        """Evaluate a ``stack`` of all clients' models. ``DivergedError`` if a prediction is not finite."""
        result = self.nothing()
        for block in clients.blocks:
            numbers = self.numbers[block.rows]
            models = block.evaluation.of(stack)
            result.put(numbers, self._of_block(method, block.evaluation, models, numbers))
        return result

    def after_epoch(
        self, method: Method, clients: Clients, evaluations: Mapping[int, Evaluation]
    ) -> AfterEpoch:
        """Return a function that puts the rows of ``clients`` into the evaluation of the finished epoch."""
        numbers_of_rows = self.numbers[clients.rows.cpu().numpy()]

        def evaluate(epoch: int, batch: Batch, models: Stack) -> None:
            numbers = numbers_of_rows[batch.rows]
            evaluations[epoch].put(numbers, self._of_block(method, batch, models, numbers))

        return evaluate

    def nothing(self, clients: int | None = None) -> Evaluation:
        """Return an evaluation without items for some clients (default: for all clients)."""
        count = len(self._clients) if clients is None else clients
        return Evaluation(
            np.zeros((count, len(SPLITS)), np.int32),
            np.zeros((count, self._confused_classes, self._confused_classes), np.int32),
            np.full((count, len(SPLITS)), np.nan),
        )

    def _of_block(self, method: Method, batch: Batch, models: Stack, numbers: Numbers) -> Evaluation:
        with self._watch.part("evaluation"), torch.no_grad():
            places, rows, roles, labels = self._items_of(batch.block, numbers)
            logits = method.logits(models, batch)
            if not torch.isfinite(logits.sum()):
                raise DivergedError("a prediction is not finite")
            predicted = logits.argmax(dim=2).flatten()[places].cpu().numpy()
            result = self.nothing(len(numbers))
            np.add.at(result.correct, (rows, roles), predicted == labels)
            if self._confused_classes:
                test = roles == TEST
                np.add.at(result.confusion, (rows[test], labels[test], predicted[test]), 1)
            for role in self._roles_with_area:
                scores = (logits[..., 1] - logits[..., 0]).flatten()[places].cpu().numpy()
                chosen = roles == role
                areas = roc_auc(scores[chosen], labels[chosen] == 1, rows[chosen], len(numbers))
                result.roc_auc[:, role] = areas
        return result

    def _items_of(self, block: Block, numbers: Numbers) -> _Items:
        if block not in self._items:
            clients = [self._clients[number] for number in numbers]
            known = [np.flatnonzero((one.roles < len(SPLITS)) & (one.labels >= 0)) for one in clients]
            rows = np.repeat(np.arange(len(clients)), [len(items) for items in known])
            pairs = list(zip(clients, known, strict=True))
            self._items[block] = _Items(
                torch.from_numpy(rows * block.items + np.concatenate(known)).to(block.device),
                rows,
                np.concatenate([client.roles[items] for client, items in pairs]).astype(np.int64),
                np.concatenate([client.labels[items] for client, items in pairs]),
            )
        return self._items[block]


class Tally:
    """The evaluations of a run: correct predictions of every row; other results only of selected rows.

    Rules compare rows by a ``metric``.

    Attributes:
        samples: by split the numbers of items, int32 ``[clients]``.
        rows: by stage and rule the row that is selected so far, from 0, int64 ``[clients]``.
        is_last: by stage and rule the mask of clients whose selected row is the last, bool ``[clients]``.
    """

    def __init__(self, samples: dict[str, Counts], metric: Metric = ACCURACY) -> None:
        self.samples = samples
        self._metric = metric
        self._counts: dict[str, list[Counts]] = {stage: [] for stage in STAGES}
        self._selections: dict[Key, Evaluation] = {}
        self.rows: dict[Key, Numbers] = {}
        self.is_last: dict[Key, NDArray[np.bool_]] = {}

    def note(self, stage: str, evaluation: Evaluation) -> None:
        """Take in the next row of a stage."""
        row = len(self._counts[stage])
        self._counts[stage].append(evaluation.correct)
        for rule in RULES:
            key = stage, rule
            if row == 0:
                mask = np.ones(len(evaluation.correct), np.bool_)
                self._selections[key] = evaluation.of(mask)
                self.rows[key] = np.zeros(len(mask), np.int64)
            else:
                mask = self._is_better(rule, self._selections[key], evaluation)
                self._selections[key].put(mask, evaluation.of(mask))
                self.rows[key] = np.where(mask, row, self.rows[key])
            self.is_last[key] = mask

    def _is_better(self, rule: str, selection: Evaluation, evaluation: Evaluation) -> NDArray[np.bool_]:
        """Mask of the clients for which the rule prefers the next row, as if it chose from all rows."""
        if self._metric == ACCURACY:
            rows = np.stack([selection.correct, evaluation.correct])
            samples = self.samples["val"], self.samples["test"]
        else:
            areas = np.stack([selection.roc_auc, evaluation.roc_auc])
            has_area = (~np.isnan(areas[0])).astype(np.int32)  # the labels alone decide
            rows = np.nan_to_num(areas)
            samples = has_area[:, VALIDATION], has_area[:, TEST]
        chosen = RULES[rule](rows[:, :, VALIDATION], samples[0], rows[:, :, TEST], samples[1])
        return np.asarray(chosen == 1, np.bool_)

    def correct(self) -> dict[Key, Counts]:
        """Correct predictions, int32 ``[rows, clients]`` by stage and split."""
        counts = {stage: np.stack(rows) for stage, rows in self._counts.items() if rows}
        return {
            (stage, split): np.ascontiguousarray(rows[:, :, role])
            for stage, rows in counts.items()
            for role, split in enumerate(SPLITS)
        }

    def confusion(self) -> dict[Key, Counts]:
        """``Evaluation.confusion`` of the selected rows by stage and rule; empty if they are too large."""
        return {key: row.confusion for key, row in self._selections.items() if row.confusion.size}

    def roc_auc(self) -> dict[Key, NDArray[np.float64]]:
        """The test items' areas ``[clients]`` in the selected rows; empty if there are not two classes."""
        areas = {key: row.roc_auc[:, TEST] for key, row in self._selections.items()}
        return {key: values for key, values in areas.items() if not np.isnan(values).all()}

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        selections = {key: tuple(row) for key, row in self._selections.items()}
        counts = {stage: np.stack(rows) for stage, rows in self._counts.items() if rows}
        return {"counts": counts, "selections": selections, "rows": self.rows}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from the state of a checkpoint."""
        self._counts |= {stage: list(rows) for stage, rows in state["counts"].items()}
        self.rows = state["rows"]
        self._selections = {key: Evaluation(*row) for key, row in state["selections"].items()}
