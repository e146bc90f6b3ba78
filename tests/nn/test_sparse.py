"""Sparse matrices and their products."""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse

from bench.nn.sparse import csr_tensor, product

CPU = torch.device("cpu")


def test_a_sparse_product_overwrites_whatever_memory_held() -> None:
    rng = np.random.default_rng(0)
    for density in (0.2, 0.0):
        matrix = sparse.random(7, 9, density, format="csr", dtype=np.float32, random_state=0)
        dense = torch.from_numpy(rng.normal(size=(9, 5)).astype(np.float32))
        held = torch.full((7, 5), float("nan"))
        got = product(csr_tensor(matrix, CPU), dense, held)
        assert got is held
        np.testing.assert_allclose(got.numpy(), matrix.toarray() @ dense.numpy(), atol=1e-6)
