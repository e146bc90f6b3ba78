"""The majority class of every client: the level that a method must beat to have learnt anything."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from bench.engine.clients import Block, Clients
from bench.engine.method import Method, Stack


class Majority(Method):
    """Predict each client's most frequent training class (the lowest of equally frequent ones)."""

    name = "majority"
    title = "Majority class"
    trains = False

    def shared(self) -> Collection[str]:
        """Nothing."""
        return ()

    def train(self, clients: Clients, received: Stack) -> Stack:
        """Nothing to train."""
        return received

    def welcome(self, newcomers: Clients, reports: Tensor | None) -> Stack:
        """Nothing: a newcomer counts its own classes."""
        return {}

    def logits(self, models: Stack, block: Block) -> Tensor:
        """One for the majority class, zero for the others, for every item."""
        majority = block.label_counts.argmax(dim=1)
        votes = torch.nn.functional.one_hot(majority, block.label_counts.shape[1]).float()
        return votes[:, None, :].expand(-1, block.items, -1)
