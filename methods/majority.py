"""The majority class of every client: the level that a method must beat to have learnt anything."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from bench.engine.method import Batch, Clients, Message, Method, Stack, Update


class Majority(Method):
    """Predict each client's most frequent training class (the lowest of equally frequent ones)."""

    name = "majority"
    title = "Majority class"
    trains = False

    def shared(self) -> Collection[str]:
        """Send nothing."""
        return ()

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train nothing."""
        return Update(received)

    def onboard(self, newcomers: Clients, message: Message) -> Message:
        """Send nothing: a newcomer counts its own classes."""
        return Message()

    def logits(self, models: Stack, batch: Batch) -> Tensor:
        """1 for the majority class and 0 for the others, for every item."""
        counts = batch.label_counts
        votes = torch.nn.functional.one_hot(counts.argmax(dim=1), counts.shape[1]).float()
        return votes[:, None, :].expand(-1, batch.labels.shape[1], -1)
