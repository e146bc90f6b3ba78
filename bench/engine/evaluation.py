"""Counts correct predictions; the only place of the engine that sees held-out labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench.engine.clients import Block
from bench.errors import DivergedError
from bench.federation.types import SPLITS, Client

if TYPE_CHECKING:
    from bench.engine.method import Method

Counts = NDArray[np.int32]


class Evaluator:
    """Counts, for every client and split, how many items a stack of models gets right.

    ``samples[split]`` int32 ``[clients]``. Items that a method appended to a client's data have no
    label and are not counted.
    """

    def __init__(self, members: Sequence[Client], blocks: Sequence[Block], device: torch.device) -> None:
        self.samples = {
            split: np.array([client.count(role) for client in members], np.int32)
            for role, split in enumerate(SPLITS)
        }
        self._clients = len(members)
        self._labels: dict[int, Tensor] = {}
        self._roles: dict[int, Tensor] = {}
        for block in blocks:
            labels = np.full((block.clients.stop - block.clients.start, block.items), -1, np.int64)
            roles = np.zeros((len(SPLITS), *labels.shape), np.bool_)
            for row, client in enumerate(members[block.clients]):
                labels[row, : len(client.ids)] = client.labels
                for role in range(len(SPLITS)):
                    roles[role, row, : len(client.ids)] = client.roles == role
            self._labels[block.clients.start] = torch.from_numpy(labels).to(device)
            self._roles[block.clients.start] = torch.from_numpy(roles).to(device)

    def block(self, method: Method, block: Block, models: Mapping[str, Tensor]) -> Counts:
        """Correct predictions ``[splits, clients of the block]``; ``models`` is the block's part.

        Raises:
            DivergedError: a logit is not finite.
        """
        with torch.no_grad():
            logits = method.logits(models, block)
            if not torch.isfinite(logits.sum()):
                raise DivergedError("a prediction is not finite")
            hit = logits.argmax(dim=2) == self._labels[block.clients.start]
            counts = (self._roles[block.clients.start] & hit).sum(dim=2)
        return counts.cpu().numpy().astype(np.int32)

    def all(self, method: Method, blocks: Sequence[Block], stack: Mapping[str, Tensor]) -> Counts:
        """Correct predictions ``[splits, clients]``."""
        counts = np.zeros((len(SPLITS), self._clients), np.int32)
        for block in blocks:
            models = {name: value[block.clients] for name, value in stack.items()}
            counts[:, block.clients] = self.block(method, block, models)
        return counts
