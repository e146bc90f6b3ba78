"""Compares predictions with labels. No other module of the engine sees held-out labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench.engine.batch import Batch, Block, Stack
from bench.engine.clients import Clients
from bench.engine.method import Method
from bench.errors import DivergedError
from bench.federation.types import SPLITS, TEST, VALIDATION, Client
from bench.metric_names import ACCURACY, ROC_AUC, Metric
from bench.metrics import roc_auc
from bench.selection import RULES
from bench.spec import STAGES

Counts = NDArray[np.int32]

MOST_NUMBERS = 1_000_000
"""The most counts by class that a run keeps, over clients, stages and rules: 4 MB before compression."""


class Evaluation(NamedTuple):
    """What the models of some clients predict correctly.

    Attributes:
        correct: the number of correct items, int32 ``[splits, clients]``.
        confusion: the test items by true and predicted class, int32 ``[clients, classes, classes]``. It
            is ``[clients, 0, 0]`` if it would be too large (see ``MOST_NUMBERS``) or if test labels are
            hidden from the run.
        roc_auc: the area under the ROC curve, float64 ``[splits, clients]``. It is NaN for training items,
            for splits whose labels are hidden from the run, if there are not two classes, and for a client
            whose items of the split are all of one class.
    """

    correct: Counts
    confusion: Counts
    roc_auc: NDArray[np.float64]

    def copied(self) -> Evaluation:
        """A copy with its own memory."""
        return Evaluation(self.correct.copy(), self.confusion.copy(), self.roc_auc.copy())

    def put(self, clients: NDArray[np.int64], evaluation: Evaluation) -> None:
        """Take over the numbers of some clients."""
        self.correct[:, clients] = evaluation.correct
        self.confusion[clients] = evaluation.confusion
        self.roc_auc[:, clients] = evaluation.roc_auc


class _Answers(NamedTuple):
    """The labels of a block, laid out to be compared with predictions.

    Attributes:
        labels: ``[c, items]``.
        roles: whether an item is in a split, ``[splits, c, items]``.
        items: the items of the splits whose predictions are looked at one by one.
        counts: the place of (client, label, predicted class 0) in the flattened confusion matrices, for
            every test item. Adding the predicted class gives the place to count at.
    """

    labels: Tensor
    roles: Tensor
    items: dict[int, _Items]
    counts: NDArray[np.int64]


class _Items(NamedTuple):
    """The items of a split: their ``places`` in the flattened labels, their clients by row, their labels."""

    places: Tensor
    rows: NDArray[np.int64]
    labels: NDArray[np.int64]


class Evaluator:
    """Compares the predictions of a stack of models with the labels, for every client.

    ``samples[split]`` int32 ``[clients]`` are the numbers of items. Items that a method appended to a
    client's data have no label and are not counted. If the ``metric`` that chooses a round is the area
    under the ROC curve, it is computed of validation items, too.
    """

    def __init__(
        self, members: Sequence[Client], device: torch.device, classes: int, metric: Metric = ACCURACY
    ) -> None:
        self.samples = {
            split: np.array([client.count(role) for client in members], np.int32)
            for role, split in enumerate(SPLITS)
        }
        has_labels = all((client.labels[client.roles == TEST] >= 0).all() for client in members)
        is_small = len(members) * classes**2 * len(STAGES) * len(RULES) <= MOST_NUMBERS
        self.classes = classes if has_labels and is_small else 0
        """The number of classes in ``confusion``: all, or 0."""
        self._is_binary = classes == 2
        self._looked_at = (VALIDATION, TEST) if metric == ROC_AUC else (TEST,)
        self._members = members
        self._device = device
        self._answers: WeakKeyDictionary[Block, _Answers] = WeakKeyDictionary()

    def _answer(self, block: Block, clients: NDArray[np.int64]) -> _Answers:
        if block not in self._answers:
            labels = np.full((len(clients), block.items), -1, np.int64)
            roles = np.zeros((len(SPLITS), *labels.shape), np.bool_)
            for row, number in enumerate(clients):
                client = self._members[number]
                labels[row, : len(client.ids)] = client.labels
                for role in range(len(SPLITS)):
                    roles[role, row, : len(client.ids)] = client.roles == role
            looked_at = {}
            for role in self._looked_at:
                rows, items = np.nonzero(roles[role] & (labels >= 0))
                places = torch.from_numpy(rows * block.items + items).to(self._device)
                looked_at[role] = _Items(places, rows, labels[rows, items])
            test = looked_at[TEST]
            self._answers[block] = _Answers(
                torch.from_numpy(labels).to(self._device),
                torch.from_numpy(roles).to(self._device),
                looked_at,
                (test.rows * self.classes + test.labels) * self.classes,
            )
        return self._answers[block]

    def block(self, method: Method, batch: Batch, models: Stack, clients: NDArray[np.int64]) -> Evaluation:
        """Evaluate a block's ``models`` on all items of these clients.

        Raises:
            DivergedError: a logit is not finite.
        """
        answers = self._answer(batch.block, clients)
        with torch.no_grad():
            logits = method.logits(models, batch)
            if not torch.isfinite(logits.sum()):
                raise DivergedError("a prediction is not finite")
            predictions = logits.argmax(dim=2)
            counts = (answers.roles & (predictions == answers.labels)).sum(dim=2)
        shape = len(clients), self.classes, self.classes
        confusion = np.zeros(shape, np.int32)
        if self.classes:
            of_test = predictions.flatten()[answers.items[TEST].places].cpu().numpy()
            cells = np.bincount(answers.counts + of_test, minlength=math.prod(shape))
            confusion = cells.reshape(shape).astype(np.int32)
        areas = np.full((len(SPLITS), len(clients)), np.nan)
        if self._is_binary:
            scores = (logits[..., 1] - logits[..., 0]).flatten()
            for role, items in answers.items.items():
                values = scores[items.places].cpu().numpy()
                areas[role] = roc_auc(values, items.labels == 1, items.rows, len(clients))
        return Evaluation(counts.cpu().numpy().astype(np.int32), confusion, areas)

    def nothing(self) -> Evaluation:
        """The evaluation of no item of any client."""
        clients = len(self._members)
        return Evaluation(
            np.zeros((len(SPLITS), clients), np.int32),
            np.zeros((clients, self.classes, self.classes), np.int32),
            np.full((len(SPLITS), clients), np.nan),
        )

    def all(self, method: Method, clients: Clients, stack: Stack) -> Evaluation:
        """Evaluate a ``stack`` of all clients' models on all items."""
        numbers = np.arange(clients.count)
        parts = [
            self.block(method, block.evaluation, block.evaluation.of(stack), numbers[block.rows])
            for block in clients.blocks
        ]
        correct, confusion, areas = zip(*parts, strict=True)
        return Evaluation(
            np.concatenate(correct, axis=1), np.concatenate(confusion), np.concatenate(areas, axis=1)
        )
