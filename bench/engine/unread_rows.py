"""Trains the rows of the first matrix that a client does not read once for all clients.

A client of 50 on Cora has 28 % of the words. All other rows of its first matrix get the gradient zero, and
Adam still steps them. If all clients start from one model and were stepped alike so far, these rows are the
same for all of them. Numbers are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.engine.batch import Block, Stack, cross_entropy
from bench.engine.local_training import Training
from bench.engine.optimiser import with_rows
from bench.nn.gcn import GraphInputs

VECTOR = 16
"""Numbers that a processor steps together. Adam rounds those left over at a tensor's end otherwise."""

ReducedBlocks = Mapping[int, tuple[Tensor, Block]]
"""First client of a block -> the rows that its clients read ``[c, rows]``, and the block with these alone."""


def are_alike(name: str, stack: Stack, training: Training) -> bool:
    """Whether all clients start from one model, and are trained by the usual objective and Adam alone."""
    if name not in training.names:
        return False
    models = stack[name]
    keeps_bits = models.shape[-1] % VECTOR == 0 and models.device.type == "cpu"
    is_usual = training.objective is cross_entropy and training.adjust is None
    return keeps_bits and models.stride(0) == 0 and is_usual and training.optimiser.kind == "adam"


def reduced_blocks(blocks: Sequence[Block]) -> ReducedBlocks:
    """Each block with the features that its clients have, and no others."""
    reduced = {}
    for block in blocks:
        assert isinstance(block.inputs, GraphInputs)
        rows = block.inputs.rows_in_use()
        part = copy(block)
        part.inputs = block.inputs.on_rows(rows)
        reduced[block.rows.start] = torch.from_numpy(rows), part
    return reduced


@dataclass(frozen=True, eq=False)
class UnreadRows:
    """The rows of a matrix that no step of a client changes but by what all clients do alike.

    Attributes:
        name: the matrix.
        model: what all clients start from, ``[all rows, width]``.
        trained: the same after all epochs, in the rows that a client does not read.
        reduced: the blocks without these rows.
    """

    name: str
    model: Tensor
    trained: Tensor
    reduced: ReducedBlocks

    @classmethod
    def trained_once(
        cls, name: str, stack: Stack, training: Training, reduced: ReducedBlocks
    ) -> UnreadRows | None:
        """Train them for all clients. None if the clients were not stepped alike before."""
        model = stack[name][0]
        if not training.state.share(name, model, {start: rows for start, (rows, _) in reduced.items()}):
            return None
        trained = model.clone()
        training.state.step_common(training.optimiser, name, trained, training.epochs)
        return cls(name, model, trained, reduced)

    def losses(self, training: Training, block: Block, models: dict[str, Tensor]) -> Iterator[Tensor]:
        """As ``Training.losses``. The matrix in ``models`` is filled when the last loss was given."""
        rows, reduced = self.reduced[block.rows.start]
        own = self.model.index_select(0, rows.flatten()).view(*rows.shape, -1)
        yield from training.losses(reduced, {**models, self.name: own})
        with_rows(self.trained, own, rows, models[self.name])
