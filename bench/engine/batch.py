"""Some items of some clients: the argument of objectives, predictions and statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(eq=False)
class Batch:
    """Items ``[c, items]`` of some clients, padded to the longest client, in training or in evaluation.

    Attributes:
        block: the block that the clients belong to. It stays the same over steps and rounds.
        rows: the clients' rows in a stack of all clients that are trained together.
        inputs: the features in the layout of the client model.
        labels: int64 ``[c, items]``; -1 for padding and for items that are not used for training.
        drop: the dropout of this step; None in evaluation.
        logged: the loss ``[c]`` that a step logs: the first cross-entropy that the objective computes, so
            that losses of methods with different further terms can be compared. None before.
    """

    block: Block
    rows: slice | Tensor
    inputs: Inputs
    labels: Tensor
    _weights: Tensor | None
    drop: Drop | None
    logged: Tensor | None = None

    @overload
    def of(self, values: Tensor) -> Tensor: ...
    @overload
    def of(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]: ...
    @overload
    def of(self, values: Sequence[T]) -> list[T]: ...
    def of(self, values: Tensor | Mapping[str, Tensor] | Sequence[T]) -> Tensor | dict[str, Tensor] | list[T]:
        """Select the rows of the batch's clients from a tensor, stack or list with a row for every client."""
        if isinstance(values, Tensor):
            return values[self.rows]
        if isinstance(values, Mapping):
            return {name: value[self.rows] for name, value in values.items()}
        if isinstance(self.rows, slice):
            return list(values[self.rows])
        return [values[row] for row in self.rows.tolist()]

    @property
    def weights(self) -> Tensor:
        """The share of every item in its client's mean, ``[c, items]``; 0 for items not used for training."""
        if self._weights is None:
            return torch.full(self.labels.shape, 1 / self.labels.shape[1], device=self.labels.device)
        return self._weights

    @property
    def label_counts(self) -> Tensor:
        """The number of training items of every class, float32 ``[c, classes]``."""
        weights = (self.labels >= 0).to(torch.float32)
        counts = weights.new_zeros(len(self.labels), self.block.classes)
        return counts.scatter_add(1, self.labels.clamp_min(0), weights)

    def cached(self, build: Callable[[Batch], T], key: int = 0) -> T:
        """The result of ``build`` for this batch, such as a second layout of its data.

        It is made once for a block, and again when ``key`` changes.
        """
        name = build.__qualname__
        if name not in self.block.cache or self.block.cache[name][0] != key:
            self.block.cache[name] = (key, build(self))
        value: T = self.block.cache[name][1]
        return value

    def forward(self, models: Stack) -> Output:
        """The client model's logits and embeddings. ``models`` has one per client of the batch."""
        return self.block.model.forward(models, self.inputs, self.drop)

    def embed(self, models: Stack) -> Tensor:
        """The input of the client model's head, ``[c, items, width]``."""
        return self.block.model.embed(models, self.inputs, self.drop)

    def head(self, models: Stack, embedding: Tensor) -> Tensor:
        """Logits ``[c, items, classes]`` from embeddings, which need not be the model's own."""
        return self.block.model.classify(models, embedding, self.inputs, self.drop)

    def cross_entropy(self, logits: Tensor) -> Tensor:
        """The mean cross-entropy over each client's training items, ``[c]``."""
        flat_labels = self.labels.flatten()
        losses = functional.cross_entropy(
            logits.flatten(0, 1), flat_labels, ignore_index=-1, reduction="none"
        ).view_as(self.labels)
        mean = losses.mean(dim=1) if self._weights is None else (losses * self._weights).sum(dim=1)
        self.logged = mean.detach() if self.logged is None else self.logged
        return mean


Objective = Callable[[Stack, Batch], Tensor]
"""Maps the models of a batch's clients and the batch to a loss ``[c]``."""

Adjustment = Callable[[Mapping[str, Tensor], Stack, Batch], None]
"""Changes the gradients of a step, given by name, in place before the step is taken."""


def cross_entropy(models: Stack, batch: Batch) -> Tensor:
    """The client model's cross-entropy, which is the default objective."""
    return batch.cross_entropy(batch.forward(models).logits)


class Block:
    """Neighbouring clients whose parameters, gradients and moments stay in the cache together.

    Attributes:
        rows: their slice of a stack.
        numbers: their numbers in the run.
        items: the length that their data are padded to.
        training: the positions of every client's training items.
        cache: the results of ``Batch.cached``.
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
        self._weights = self.weights(self.training)

    @cached_property
    def evaluation(self) -> Batch:
        """All items in evaluation mode."""
        return Batch(self, self.rows, self.inputs, self.labels, self._weights, None)

    def all_items(self, drop: Drop, items: Sequence[NDArray[np.int64]] | None) -> Batch:
        """All items in training mode. Only ``items`` count in the loss; by default all training items."""
        weights = self._weights if items is None else self.weights(items)
        return Batch(self, self.rows, self.inputs, self.labels, weights, drop)

    def some_items(self, rows: NDArray[np.int64], positions: NDArray[np.int64], drop: Drop) -> Batch:
        """The training items at ``positions`` ``[c, batch]`` of the clients in some ``rows`` of the block."""
        index = torch.from_numpy(rows).to(self.device)
        items = torch.from_numpy(positions).to(self.device)
        is_whole_block = len(rows) == len(self.lengths)
        place = self.rows if is_whole_block else self.rows.start + index
        labels = self.labels[index[:, None], items]
        return Batch(self, place, self.inputs.select(items, index), labels, None, drop)

    def weights(self, items: Sequence[NDArray[np.int64]]) -> Tensor:
        """``Batch.weights`` for a mean over the given items of every client."""
        weights = np.zeros((len(items), self.items), np.float32)
        for row, positions in enumerate(items):
            weights[row, positions] = 1 / max(len(positions), 1)
        return torch.from_numpy(weights).to(self.device)
