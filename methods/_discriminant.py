"""Linear discriminant analysis with statistics between a client's own and everybody's (pFedFDA)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

SHRINKAGE = 1e-4
"""Share of the mean variance that a covariance is drawn to before it is inverted."""

SMOOTHING = 1e-4
"""Added to every class's share, so that no prior is zero."""

GRID = 11
"""Values between 0 and 1 that either weight of the own statistics is tried at."""


class Gaussians(NamedTuple):
    """Class means ``[classes, width]`` and the covariance that classes share ``[width, width]``."""

    means: Tensor
    covariance: Tensor


def priors(labels: Tensor, classes: int) -> Tensor:
    """Class shares, smoothed, ``[classes]`` in float64."""
    counts = torch.bincount(labels, minlength=classes).double()
    shares = counts / counts.sum().clamp_min(1) + SMOOTHING
    return shares / shares.sum()


def estimate(features: Tensor, labels: Tensor, others: Tensor, ridge: float) -> Gaussians:
    """Statistics of some items: features ``[n, width]`` with labels ``[n]``.

    A class without items takes the mean that ``others`` ``[classes, width]`` have; ``ridge`` is added to the
    diagonal of the covariance, which is the scatter within classes over n - 1.
    """
    one_hot = torch.nn.functional.one_hot(labels, len(others)).to(features)
    counts = one_hot.sum(dim=0)[:, None]
    means = torch.where(counts > 0, one_hot.T @ features / counts.clamp_min(1), others)
    centred = features - means[labels]
    scatter = centred.T @ centred / max(len(labels) - 1, 1)
    return Gaussians(means, scatter + ridge * torch.eye(len(scatter)).to(scatter))


def between(local: Gaussians, others: Gaussians, weights: Tensor) -> Gaussians:
    """Own statistics by ``weights`` (of means, of covariance), the others' for the rest."""
    return Gaussians(*(torch.lerp(b, a, w) for a, b, w in zip(local, others, weights, strict=True)))


def head(gaussians: Gaussians, shares: Tensor) -> tuple[Tensor, Tensor]:
    """Weights ``[width, classes]`` and bias ``[classes]`` that give log posteriors up to a constant."""
    shrunk = shrunken(gaussians.covariance)
    weights = torch.linalg.solve(shrunk, gaussians.means.T)
    bias = shares.log() - (gaussians.means.T * weights).sum(dim=0) / 2
    return weights, bias


def shrunken(covariance: Tensor) -> Tensor:
    """The covariance drawn to a multiple of the identity of the same trace."""
    width = len(covariance)
    level = SHRINKAGE * covariance.trace() / width
    return (1 - SHRINKAGE) * covariance + level * torch.eye(width).to(covariance)


def own_weights(features: Tensor, labels: Tensor, others: Gaussians, ridge: float) -> Tensor:
    """Weights in [0, 1] of the own means and covariance that predict held-out halves of the items best.

    Every other item of a class is in one half; the cross-entropies of both halves, each under statistics of
    the other one, are summed at all pairs of ``GRID`` values, and the first smallest pair wins (``[2]``).
    A basis in which both covariances are diagonal makes a pair as cheap as a product of vectors.
    """
    shares = priors(labels, len(others.means))
    half = parity(labels)
    steps = torch.linspace(0, 1, GRID, dtype=features.dtype, device=features.device)
    losses = features.new_zeros(GRID, GRID)
    for fold in (False, True):
        train_mask, test_mask = half != fold, half == fold
        if not train_mask.any() or not test_mask.any():
            continue
        local = estimate(features[train_mask], labels[train_mask], others.means, ridge)
        root, failure = torch.linalg.cholesky_ex(shrunken(others.covariance))
        if failure:  # no covariance, as an attacker may send: nothing can be told, and both weights stay 0
            continue
        matrix = torch.linalg.solve_triangular(root, shrunken(local.covariance), upper=False)
        matrix = torch.linalg.solve_triangular(root, matrix.T, upper=False)
        values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
        basis = torch.linalg.solve_triangular(root.T, vectors, upper=True)  # others' covariance becomes I
        z, local_means, other_means = features[test_mask] @ basis, local.means @ basis, others.means @ basis
        means = other_means + steps[:, None, None] * (local_means - other_means)  # [grid, classes, width]
        precision = 1 / (1 + steps[:, None] * (values - 1))  # [grid, width]
        weights = means[:, None] * precision[None, :, None]  # [grid, grid, classes, width]
        logits = z @ weights.transpose(2, 3) - (means[:, None] * weights).sum(dim=3)[:, :, None] / 2
        logs = (logits + shares.log()).log_softmax(dim=3)
        losses -= logs.gather(3, labels[test_mask].expand(GRID, GRID, -1)[..., None]).sum(dim=(2, 3))
    index = int(losses.argmin())
    return torch.stack([steps[index // GRID], steps[index % GRID]])


def parity(labels: Tensor) -> Tensor:
    """Whether an even or odd number of items of the same class stand before an item, bool ``[n]``."""
    pairs = torch.tril(labels[:, None] == labels[None, :], diagonal=-1)
    return pairs.sum(dim=1) % 2 == 1
