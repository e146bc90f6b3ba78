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
from bench.federation.types import SPLITS, TEST, Client
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
        roc_auc: the area under the ROC curve on test items, float64 ``[clients]``. It is NaN if there is
            no ``confusion``, if there are not two classes, and for a client whose test items are all of
            one class.
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
        self.roc_auc[clients] = evaluation.roc_auc


class _Answers(NamedTuple):
    """The labels of a block, laid out to be compared with predictions.

    Attributes:
        labels: ``[c, items]``.
        roles: whether an item is in a split, ``[splits, c, items]``.
        places: the test items' places in the flattened ``labels``.
        rows: the test items' clients, by row.
        test_labels: the test items' labels.
        counts: the place of (client, label, predicted class 0) in the flattened confusion matrices, for
            every test item. Adding the predicted class gives the place to count at.
    """

    labels: Tensor
    roles: Tensor
    places: Tensor
    rows: NDArray[np.int64]
    test_labels: NDArray[np.int64]
    counts: NDArray[np.int64]


class Evaluator:
    """Compares the predictions of a stack of models with the labels, for every client.

    ``samples[split]`` int32 ``[clients]`` are the numbers of items. Items that a method appended to a
    client's data have no label and are not counted.
    """

    def __init__(self, members: Sequence[Client], device: torch.device, classes: int) -> None:
        self.samples = {
            split: np.array([client.count(role) for client in members], np.int32)
            for role, split in enumerate(SPLITS)
        }
        has_labels = all((client.labels[client.roles == TEST] >= 0).all() for client in members)
        is_small = len(members) * classes**2 * len(STAGES) * len(RULES) <= MOST_NUMBERS
        self.classes = classes if has_labels and is_small else 0
        """The number of classes in ``confusion``: all, or 0."""
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
            rows, items = np.nonzero(roles[TEST] & (self.classes > 0))
            test_labels = labels[rows, items]
            self._answers[block] = _Answers(
                torch.from_numpy(labels).to(self._device),
                torch.from_numpy(roles).to(self._device),
                torch.from_numpy(rows * block.items + items).to(self._device),
                rows,
                test_labels,
                (rows * self.classes + test_labels) * self.classes,
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
            of_test = predictions.flatten()[answers.places]
        cells = answers.counts + of_test.cpu().numpy()
        shape = len(clients), self.classes, self.classes
        confusion = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
        area = np.full(len(clients), np.nan)
        if self.classes == 2:
            scores = (logits[..., 1] - logits[..., 0]).flatten()[answers.places].cpu().numpy()
            area = roc_auc(scores, answers.test_labels == 1, answers.rows, len(clients))
        return Evaluation(counts.cpu().numpy().astype(np.int32), confusion.astype(np.int32), area)

    def nothing(self) -> Evaluation:
        """The evaluation of no item of any client."""
        clients = len(self._members)
        return Evaluation(
            np.zeros((len(SPLITS), clients), np.int32),
            np.zeros((clients, self.classes, self.classes), np.int32),
            np.full(clients, np.nan),
        )

    def all(self, method: Method, clients: Clients, stack: Stack) -> Evaluation:
        """Evaluate a ``stack`` of all clients' models on all items."""
        numbers = np.arange(clients.count)
        parts = [
            self.block(method, block.evaluation, block.evaluation.of(stack), numbers[block.rows])
            for block in clients.blocks
        ]
        correct, confusion, area = zip(*parts, strict=True)
        return Evaluation(np.concatenate(correct, axis=1), np.concatenate(confusion), np.concatenate(area))
