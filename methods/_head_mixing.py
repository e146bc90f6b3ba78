"""Which clients' heads are of use to a client: FedPAC's quadratic programme on the simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

JITTER = 1e-8
"""Share of the mean diagonal that is added to it: the matrices are positive up to rounding."""

SMALLEST = 1e-3
"""Smaller weights count as none."""


def head_weights(h: NDArray[np.float64], variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Every client's weights of all clients' heads, ``[clients, clients]``; rows sum to 1.

    Row i minimises sum_j a_j^2 V_j + ||sum_j a_j (h_i - h_j)||^2 over the simplex: bias against variance.

    Args:
        h: class statistics ``[clients, classes x width]``.
        variances: V ``[clients]``.
    """
    rows = []
    for row in h:
        differences = row - h
        rows.append(without_small(on_simplex(np.diag(variances) + differences @ differences.T)))
    return np.stack(rows)


def without_small(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights below ``SMALLEST`` as 0 and the others scaled to sum to 1; the largest always stays."""
    large_weights = np.where(weights < min(SMALLEST, weights.max()), 0, weights)
    shares: NDArray[np.float64] = large_weights / large_weights.sum()
    return shares


def on_simplex(q: NDArray[np.float64]) -> NDArray[np.float64]:
    """The a with a >= 0 and sum a = 1 that minimises a^T q a, for symmetric q >= 0 ``[n, n]``.

    By its Karush-Kuhn-Tucker conditions a is b / sum b, where b >= 0 minimises b^T q b / 2 - sum b. With
    the Cholesky factor q = l l^T these are non-negative least squares, ||l^T b - l^-1 1||^2, which an
    active-set method solves exactly.
    """
    n = len(q)
    scale = np.trace(q) / n
    q = q / scale if scale > 0 else q  # the minimiser does not change
    factor = np.linalg.cholesky(q + JITTER * np.eye(n))
    b, _ = nnls(factor.T, np.linalg.solve(factor, np.ones(n)))
    weights: NDArray[np.float64] = b / b.sum()
    return weights
