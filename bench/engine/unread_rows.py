"""Trains the rows of the first matrix that a client does not read once for all clients.

A client of 50 on Cora has 28 % of the words. All other rows of its first matrix get the gradient zero, and
Adam still steps them. If all clients start from one model and were stepped alike so far, these rows are the
same for all of them. Numbers are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

import numpy as np
import torch
from torch import Tensor

from bench.engine.batch import Block, Stack, cross_entropy
from bench.engine.local_training import Training
from bench.nn.gcn import GraphInputs

VECTOR = 16
"""Numbers that a processor steps together. Adam rounds those left over at a tensor's end otherwise."""


def are_alike(name: str, stack: Stack, training: Training) -> bool:
    """Whether all clients start from one matrix, and are trained by the usual objective and Adam alone."""
    if name not in training.names:
        return False
    matrices = stack[name]
    keeps_bits = matrices.shape[-1] % VECTOR == 0 and matrices.device.type == "cpu"
    is_usual = training.objective is cross_entropy and training.adjust is None
    return keeps_bits and matrices.stride(0) == 0 and is_usual and training.optimiser.kind == "adam"


class UnreadRows:
    """Trains the matrix ``name``: the rows that a client reads in its block, and all other rows once.

    Every client has as many rows as the one that reads most; those that read fewer have further ones.
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
        """As ``Training.losses``. The matrix in ``models`` is filled when the last loss was given."""
        rows = self._rows[block.rows]
        own = self._matrix[rows]
        yield from self._training.losses(self._reduced[block.rows.start], {**models, self.name: own})
        models[self.name].copy_(self._trained)
        models[self.name][torch.arange(len(rows))[:, None], rows] = own
