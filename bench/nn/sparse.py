"""Products for a block of clients with sparse matrices or few rows, as fast as the library allows.

A block's matrices form one block-diagonal CSR matrix. Indices are 32-bit: with 64-bit ones torch
converts them at every product.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")


def csr_tensor(matrix: sparse.csr_matrix, device: torch.device) -> Tensor:
    """A SciPy CSR matrix as a float32 torch CSR tensor with int32 indices."""
    canonical = sparse.csr_matrix(matrix)
    canonical.sort_indices()
    return torch.sparse_csr_tensor(
        torch.from_numpy(canonical.indptr.astype(np.int32)),
        torch.from_numpy(canonical.indices.astype(np.int32)),
        torch.from_numpy(canonical.data.astype(np.float32)),
        size=canonical.shape,
        device=device,
    )


def product(matrix: Tensor, dense: Tensor) -> Tensor:
    """``matrix dense`` for a CSR ``matrix``, without autograd.

    ``torch.mm`` fills its result with zeros and copies it once: adding to a result halves the time.
    """
    out = dense.new_empty(matrix.shape[0], dense.shape[1])
    return torch.addmm(out, matrix, dense, beta=0, out=out)


class Propagate(torch.autograd.Function):
    """``a h`` for a constant sparse ``a``; the gradient is ``a^T g``.

    Without ``transposed`` the matrix is taken to be symmetric.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, matrix: Tensor, transposed: Tensor | None = None) -> Tensor:
        """``hidden`` ``[rows, width]``."""
        ctx.transposed = matrix if transposed is None else transposed
        return product(matrix, hidden)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Gradient with respect to ``hidden`` alone."""
        (gradient,) = gradients
        return product(ctx.transposed, gradient.contiguous()), None, None


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


class Neighbours:
    """Products of pairs of neighbours and weighted sums over neighbours, with gradients.

    ``sources`` and ``targets`` are the edges among so many ``items``, both directions, sorted by target. The
    transposed matrix of these edges has the same places, with its values in another order.
    """

    def __init__(self, sources: Tensor, targets: Tensor, items: int) -> None:
        self.sources, self.targets, self.items = sources.int(), targets, items
        counts = torch.bincount(targets, minlength=items)
        self.starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()
        self.transposed = (sources * items + targets).argsort()

    def products(self, u: Tensor, x: Tensor) -> Tensor:
        """``<u_t, x_s>`` for every edge; ``u`` and ``x`` are ``[items, width]``."""
        result: Tensor = _Products.apply(u, x, self)
        return result

    def sums(self, values: Tensor, x: Tensor) -> Tensor:
        """``sum_s values_ts x_s`` for every item t, ``[items, width]``."""
        result: Tensor = _Sums.apply(values, x, self)
        return result

    def matrix(self, values: Tensor) -> Tensor:
        """The sparse matrix ``[items, items]`` with these values of the edges."""
        return torch.sparse_csr_tensor(self.starts, self.sources, values, (self.items, self.items))

    def sampled(self, u: Tensor, x: Tensor) -> Tensor:
        """``products`` without autograd."""
        places = self.matrix(u.new_zeros(len(self.sources)))
        sampled: Tensor = torch.sparse.sampled_addmm(places, u, x.T, beta=0.0)
        return sampled.values()


class _Products(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, x: Tensor, edges: Neighbours) -> Tensor:
        ctx.edges = edges
        ctx.save_for_backward(u, x)
        return edges.sampled(u, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (gradient,), (u, x), edges = gradients, ctx.saved_tensors, ctx.edges
        to_x = product(edges.matrix(gradient[edges.transposed]), u)
        return product(edges.matrix(gradient), x), to_x, None


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, x: Tensor, edges: Neighbours) -> Tensor:
        ctx.edges = edges
        ctx.save_for_backward(values, x)
        return product(edges.matrix(values), x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        gradient, (values, x), edges = gradients[0].contiguous(), ctx.saved_tensors, ctx.edges
        to_x = product(edges.matrix(values[edges.transposed]), gradient)
        return edges.sampled(gradient, x), to_x, None
