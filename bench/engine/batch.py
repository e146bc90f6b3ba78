"""Some items of some clients at a time: what objectives, predictions and statistics are functions of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from bench.federation.types import TRAIN, Client
from bench.nn.base import ClientModel, Drop, Inputs, Output

Stack = Mapping[str, Tensor]
"""Parameter name -> tensor ``[clients, ...]``."""

T = TypeVar("T")


class Batch:
    """Items ``[c, items]`` of some clients, padded to the longest one, in training or in evaluation.

    Attributes:
        block: the block of clients that they are of, which stays the same over steps and rounds.
        rows: rows of the batch's clients in a stack of all clients that are trained together.
        inputs: features in the layout of the client model.
        labels: int64 ``[c, items]``, -1 where an item is not used for training or is padding.
        drop: the dropout of this step; None in evaluation and only then.
        logged: what a step logs as its loss ``[c]``: the first cross-entropy that its objective takes, so
            that losses compare between methods whatever they add; None before.
    """

    def __init__(
        self,
        block: Block,
        rows: slice | Tensor,
        inputs: Inputs,
        labels: Tensor,
        targets: Tensor,
        weights: Tensor | None,
        drop: Drop | None,
    ) -> None:
        self.block, self.rows = block, rows
        self.inputs, self.labels, self.drop = inputs, labels, drop
        self.logged: Tensor | None = None
        self._targets, self._weights = targets, weights

    @overload
    def of(self, values: Tensor) -> Tensor: ...
    @overload
    def of(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]: ...
    @overload
    def of(self, values: Sequence[T]) -> list[T]: ...
    def of(self, values: Tensor | Mapping[str, Tensor] | Sequence[T]) -> Tensor | dict[str, Tensor] | list[T]:
        """The rows of the batch's clients of a tensor, stack or list with a row for every client."""
        if isinstance(values, Tensor):
            return values[self.rows]
        if isinstance(values, Mapping):
            return {name: value[self.rows] for name, value in values.items()}
        if isinstance(self.rows, slice):
            return list(values[self.rows])
        return [values[row] for row in self.rows.tolist()]

    @property
    def weights(self) -> Tensor:
        """Share of every item in its client's mean, ``[c, items]``; 0 for items not used for training."""
        if self._weights is None:
            return torch.full(self.labels.shape, 1 / self.labels.shape[1], device=self.labels.device)
        return self._weights

    @property
    def label_counts(self) -> Tensor:
        """Training items by class, float32 ``[c, classes]``."""
        weights = (self.labels >= 0).to(torch.float32)
        counts = weights.new_zeros(len(self.labels), self.block.classes)
        return counts.scatter_add(1, self.labels.clamp_min(0), weights)

    def cached(self, build: Callable[[Batch], T], key: int = 0) -> T:
        """``build`` of this batch, such as a second layout of its data: made once for a block of clients.

        With another ``key`` it is made anew.
        """
        name = build.__qualname__
        if name not in self.block.cache or self.block.cache[name][0] != key:
            self.block.cache[name] = (key, build(self))
        value: T = self.block.cache[name][1]
        return value

    def forward(self, models: Stack) -> Output:
        """Logits and embeddings of the client model, ``models`` being those of the batch's clients."""
        return self.block.model.forward(models, self.inputs, self.drop)

    def embed(self, models: Stack) -> Tensor:
        """What the client model's head reads, ``[c, items, width]``."""
        return self.block.model.embed(models, self.inputs, self.drop)

    def head(self, models: Stack, embedding: Tensor) -> Tensor:
        """Logits ``[c, items, classes]`` from embeddings, which may be other than the model's own."""
        return self.block.model.classify(models, embedding, self.inputs, self.drop)

    def cross_entropy(self, logits: Tensor) -> Tensor:
        """Mean over each client's training items, ``[c]``."""
        losses = functional.cross_entropy(logits.flatten(0, 1), self._targets.flatten(), reduction="none")
        losses = losses.view_as(self._targets)
        mean = losses.mean(dim=1) if self._weights is None else (losses * self._weights).sum(dim=1)
        self.logged = mean.detach() if self.logged is None else self.logged
        return mean


Objective = Callable[[Stack, Batch], Tensor]
"""A loss ``[c]`` from the models of a batch's clients and the batch."""

Adjustment = Callable[[Mapping[str, Tensor], Stack, Batch], None]
"""Changes the gradients of a step in place, given by name, before the step is taken."""

Projection = Callable[[Stack, Batch], None]
"""Changes the models of a batch's clients in place after a step."""


def cross_entropy(models: Stack, batch: Batch) -> Tensor:
    """The default objective: the client model's cross-entropy."""
    return batch.cross_entropy(batch.forward(models).logits)


class Block:
    """Neighbouring clients whose parameters, gradients and moments stay in cache together.

    ``rows`` is their slice of a stack, ``numbers`` are their numbers in the run; ``items`` is the length
    that their data are padded to; ``training`` has the positions of every client's training items.
    """

    def __init__(
        self,
        model: ClientModel,
        members: Sequence[Client],
        start: int,
        classes: int,
        device: torch.device,
        numbers: Sequence[int] = (),
    ) -> None:
        self.model, self.classes, self.device = model, classes, device
        self.numbers = list(numbers) or list(range(start, start + len(members)))
        self.rows = slice(start, start + len(members))
        self.inputs = model.collate(members, device)
        self.items = self.inputs.items
        self.lengths = [len(client.ids) for client in members]
        self.training = [np.flatnonzero(client.roles == TRAIN) for client in members]
        labels = np.full((len(members), self.items), -1, np.int64)
        for row, (client, positions) in enumerate(zip(members, self.training, strict=True)):
            labels[row, positions] = client.labels[positions]
        self.labels = torch.from_numpy(labels).to(device)
        self.cache: dict[str, tuple[int, Any]] = {}
        self._targets = self.labels.clamp_min(0)
        self._weights = self.weights(self.training)

    @cached_property
    def evaluation(self) -> Batch:
        """All items in evaluation mode."""
        return Batch(self, self.rows, self.inputs, self.labels, self._targets, self._weights, None)

    def all_items(self, drop: Drop, items: Sequence[NDArray[np.int64]] | None) -> Batch:
        """All items in training; ``items`` are those of the loss, by default every training item."""
        weights = self._weights if items is None else self.weights(items)
        return Batch(self, self.rows, self.inputs, self.labels, self._targets, weights, drop)

    def some_items(self, rows: NDArray[np.int64], positions: NDArray[np.int64], drop: Drop) -> Batch:
        """Training items ``positions`` ``[c, batch]`` of the clients in some ``rows`` of the block."""
        index = torch.from_numpy(rows).to(self.device)
        items = torch.from_numpy(positions).to(self.device)
        is_whole_block = len(rows) == len(self.lengths)
        place = self.rows if is_whole_block else self.rows.start + index
        labels = self.labels[index[:, None], items]
        return Batch(self, place, self.inputs.select(items, index), labels, labels, None, drop)

    def weights(self, items: Sequence[NDArray[np.int64]]) -> Tensor:
        """``Batch.weights`` for a mean over the given items of every client."""
        weights = np.zeros((len(items), self.items), np.float32)
        for row, positions in enumerate(items):
            weights[row, positions] = 1 / max(len(positions), 1)
        return torch.from_numpy(weights).to(self.device)
