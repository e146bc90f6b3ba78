"""Counts correct predictions; the only place of the engine that sees held-out labels."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench.engine.batch import Batch, Block, Stack
from bench.engine.clients import Clients
from bench.engine.method import Method
from bench.errors import DivergedError
from bench.federation.types import SPLITS, Client

Counts = NDArray[np.int32]


class Evaluator:
    """Counts, for every client and split, how many items a stack of models gets right.

    ``samples[split]`` int32 ``[clients]``. Items that a method appended to a client's data have no
    label and are not counted.
    """

    def __init__(self, members: Sequence[Client], device: torch.device) -> None:
        self.samples = {
            split: np.array([client.count(role) for client in members], np.int32)
            for role, split in enumerate(SPLITS)
        }
        self._members = members
        self._device = device
        self._answers: WeakKeyDictionary[Block, tuple[Tensor, Tensor]] = WeakKeyDictionary()

    def _answer(self, block: Block, clients: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Labels ``[c, items]`` and roles ``[splits, c, items]`` of a block of these clients."""
        if block not in self._answers:
            labels = np.full((len(clients), block.items), -1, np.int64)
            roles = np.zeros((len(SPLITS), *labels.shape), np.bool_)
            for row, number in enumerate(clients):
                client = self._members[number]
                labels[row, : len(client.ids)] = client.labels
                for role in range(len(SPLITS)):
                    roles[role, row, : len(client.ids)] = client.roles == role
            answer = (torch.from_numpy(labels).to(self._device), torch.from_numpy(roles).to(self._device))
            self._answers[block] = answer
        return self._answers[block]

    def block(self, method: Method, batch: Batch, models: Stack, clients: NDArray[np.int64]) -> Counts:
        """Correct predictions ``[splits, c]`` of a block's ``models`` on all items of these clients.

        Raises:
            DivergedError: a logit is not finite.
        """
        labels, roles = self._answer(batch.block, clients)
        with torch.no_grad():
            logits = method.logits(models, batch)
            if not torch.isfinite(logits.sum()):
                raise DivergedError("a prediction is not finite")
            counts = (roles & (logits.argmax(dim=2) == labels)).sum(dim=2)
        return counts.cpu().numpy().astype(np.int32)

    def all(self, method: Method, clients: Clients, stack: Stack) -> Counts:
        """Correct predictions ``[splits, clients]`` of all clients."""
        numbers = np.arange(clients.count)
        parts = [
            self.block(method, block.evaluation, block.evaluation.of(stack), numbers[block.rows])
            for block in clients.blocks
        ]
        return np.concatenate(parts, axis=1)
