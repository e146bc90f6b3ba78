"""Dense feature rows, of which a training step needs only a few."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class RowsInUse:
    """A second layout of the rows that a training step uses, so that other rows cost nothing.

    Args:
        rows: ``[clients, items, width]``.
        used_rows: for every client the positions of the rows in use, without repetition.
    """

    def __init__(self, rows: Tensor, used_rows: Sequence[NDArray[np.int64]]) -> None:
        self.items = rows.shape[1]
        width = max(len(positions) for positions in used_rows)
        positions = np.zeros((len(used_rows), width), np.int64)  # padding: rows of zeros at position 0
        self.rows = rows.new_zeros(len(used_rows), width, rows.shape[2])
        for index, client_rows in enumerate(used_rows):
            positions[index, : len(client_rows)] = client_rows
            self.rows[index, : len(client_rows)] = rows[index, torch.from_numpy(client_rows).to(rows.device)]
        self.positions = torch.from_numpy(positions).to(rows.device)

    def product(self, weight: Tensor) -> Tensor:
        """``x_c w_c``, zero where a row is not in use.

        ``weight`` ``[clients, width, hidden]`` -> ``[clients, items, hidden]``.
        """
        hidden = torch.bmm(self.rows, weight)
        index = self.positions[:, :, None].expand_as(hidden)
        return hidden.new_zeros(len(hidden), self.items, hidden.shape[2]).scatter_add(1, index, hidden)
