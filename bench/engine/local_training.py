"""Trains the models of a block of clients, on all items in a step or on shuffled mini-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench.engine.batch import Adjustment, Batch, Block, Objective, cross_entropy
from bench.engine.optimiser import Optimiser, OptimiserState
from bench.nn.base import keep_all
from bench.nn.gcn import GraphInputs
from bench.nn.randomness import DropoutMasks, threshold
from bench.spec import ClientSettings

Items = Sequence[NDArray[np.int64]]
"""The positions of some items of every client."""

Stream = Callable[..., np.random.Generator]
"""Gives a random stream for a purpose, a client's row and further numbers."""

VECTOR = 16
"""Numbers that a processor steps together. Adam rounds the remaining numbers of a tensor differently."""


def batch_sizes(items: int, size: int, short_batch: bool = False) -> list[int]:
    """The sizes of the batches of an epoch over a client's items.

    A client with fewer items than a batch has one batch. Items that are left over are left out; with
    ``short_batch`` they are another batch if there are two or more, since one item has no batch
    statistics.
    """
    if items <= size:
        return [items] if items else []
    remainder = items % size
    return [size] * (items // size) + ([remainder] if short_batch and remainder > 1 else [])


def mini_batches(
    block: Block, orders: Items, size: int, short_batch: bool = False
) -> Iterator[tuple[NDArray[np.int64], Batch]]:
    """Batches of the items in ``orders`` of every client of a block, in that order, with the clients' rows.

    Clients whose next batches have the same size share a batch.
    """
    sizes = [batch_sizes(len(items), size, short_batch) for items in orders]
    for step, widths in enumerate(zip_longest(*sizes, fillvalue=0)):
        for count in sorted({width for width in widths if width}, reverse=True):
            rows = np.flatnonzero(np.array(widths) == count)
            positions = np.stack([orders[row][step * size : step * size + count] for row in rows.tolist()])
            yield rows, block.some_items(rows, positions, keep_all)


def with_dropout(
    block: Block, client: ClientSettings, stream: Stream, epochs: int, items: Items | None
) -> tuple[Batch, DropoutMasks | None]:
    """A block's training items as one batch, and the dropout masks of its epochs, if there are any."""
    if not threshold(client.dropout) or not block.model.dropout_widths:
        return block.all_items(keep_all, items), None
    streams = [stream("dropout", row) for row in range(block.rows.start, block.rows.stop)]
    widths = block.model.dropout_widths
    masks = DropoutMasks(streams, block.lengths, widths, epochs, client.dropout, block.items, block.device)
    return block.all_items(masks, items), masks


@dataclass(frozen=True, eq=False)
class Training:
    """The arguments of one call of ``Clients.fit``, and how a block of clients is trained with them.

    ``state`` has the optimisers of all clients of the run. ``rows`` are the clients that are trained; None
    for all.
    """

    client: ClientSettings
    stream: Stream
    state: OptimiserState
    rows: Tensor | None
    optimiser: Optimiser
    names: list[str]
    epochs: int
    objective: Objective
    adjust: Adjustment | None
    items: Items | None

    def are_alike(self, matrices: Tensor, name: str) -> bool:
        """True if all clients start from one matrix and train with the default objective and Adam alone."""
        keeps_bits = matrices.shape[-1] % VECTOR == 0 and matrices.device.type == "cpu"
        is_usual = self.objective is cross_entropy and self.adjust is None and self.optimiser.kind == "adam"
        return name in self.names and keeps_bits and is_usual and matrices.stride(0) == 0

    def losses(self, block: Block, models: dict[str, Tensor]) -> Iterator[Tensor]:
        """Train the models of a block in place. After every epoch yield the sum of its clients' losses."""
        if self.client.batch_size is None:
            return self._full_batches(block, models)
        return self._mini_batches(block, models, self.client.batch_size)

    def _full_batches(self, block: Block, models: dict[str, Tensor]) -> Iterator[Tensor]:
        """Take one step an epoch on all training items."""
        items = None if self.items is None else self.items[block.rows]
        batch, masks = with_dropout(block, self.client, self.stream, self.epochs, items)
        for epoch in range(self.epochs):
            if masks is not None:
                masks.begin_epoch(epoch)
            yield self._step(models, batch).sum()

    def _mini_batches(self, block: Block, models: dict[str, Tensor], size: int) -> Iterator[Tensor]:
        """Take steps on shuffled batches. A loss is the mean over an epoch's batches."""
        training = block.training if self.items is None else self.items[block.rows]
        batches = np.array([len(batch_sizes(len(items), size)) for items in training])
        for epoch in range(self.epochs):
            orders = [
                self.stream("order", block.rows.start + row, epoch).permutation(items)
                for row, items in enumerate(training)
            ]
            total = torch.zeros((), device=block.device)
            for rows, batch in mini_batches(block, orders, size):
                index = torch.from_numpy(rows).to(block.device)
                if len(rows) == len(training):
                    losses = self._step(models, batch)
                else:
                    part = {name: value[index] for name, value in models.items()}
                    losses = self._step(part, batch)
                    for name, value in part.items():
                        models[name][index] = value
                shares = torch.from_numpy(1 / batches[rows]).to(losses)
                total += (losses * shares).sum()
            yield total

    def _step(self, models: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Take one step of the clients of a batch, in place. Return their losses before it, ``[c]``."""
        batch.logged = None
        losses, gradients = self._gradients(models, batch)
        with torch.no_grad():
            trained = {name: models[name] for name in self.names}
            if self.adjust is not None:
                self.adjust(gradients, models, batch)
            rows = batch.rows if self.rows is None else self.rows[batch.rows]
            self.state.step(self.optimiser, trained, gradients, rows)
        return losses.detach() if batch.logged is None else batch.logged

    def _gradients(self, models: Mapping[str, Tensor], batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The losses ``[c]``, and the gradients of the parameters to train."""
        model = batch.block.model
        if self.objective is cross_entropy and set(self.names) == set(model.shapes):
            by_hand = model.gradients(models, batch.inputs, batch.drop, batch.cross_entropy)
            if by_hand is not None:
                return by_hand
        leaves = {name: models[name].detach().requires_grad_() for name in self.names}
        losses = self.objective({**models, **leaves}, batch)
        slopes = torch.autograd.grad(losses.sum(), list(leaves.values()))
        # fused optimisers need gradients with the memory layout of their parameters
        return losses, {name: slope.contiguous() for name, slope in zip(leaves, slopes, strict=True)}


class UnreadRows:
    """Trains the rows of the first matrix (``name``) that a client does not read, once for all clients.

    A client of 50 on Cora has 28 % of the words. All other rows of its first matrix get the gradient zero,
    and Adam still steps them. If all clients start from one model and were stepped alike so far, these rows
    are the same for all of them. Numbers are the same to the bit. Every client is trained on as many rows as
    the one that reads most.
    """

    def __init__(self, name: str, blocks: Sequence[Block]) -> None:
        self.name = name
        inputs = [block.inputs for block in blocks if isinstance(block.inputs, GraphInputs)]
        is_read = np.concatenate([part.is_row_read() for part in inputs])
        order = np.argsort(~is_read, axis=1, kind="stable")
        rows = np.sort(order[:, : is_read.sum(axis=1).max()], axis=1)
        self._rows = torch.from_numpy(rows)
        self._reduced: dict[int, Block] = {}
        for block, whole in zip(blocks, inputs, strict=True):
            part = self._reduced[block.rows.start] = copy(block)
            part.inputs = whole.on_rows(rows[block.rows])

    def begin(self, training: Training, matrix: Tensor) -> bool:
        """Train the rows that no client reads, from ``matrix``. False if clients have gone apart."""
        if not training.state.share(self.name, matrix, self._rows):
            return False
        self._training, self._matrix, self._trained = training, matrix, matrix.clone()
        training.state.step_unread(training.optimiser, self.name, self._trained, training.epochs)
        return True

    def losses(self, block: Block, models: dict[str, Tensor]) -> Iterator[Tensor]:
        """See ``Training.losses``. The matrix in ``models`` is complete after the last loss."""
        rows = self._rows[block.rows]
        own = self._matrix[rows]
        yield from self._training.losses(self._reduced[block.rows.start], {**models, self.name: own})
        models[self.name].copy_(self._trained)
        models[self.name][torch.arange(len(rows))[:, None], rows] = own
