"""Class prototypes of nodes: their computation, contrast, clusters and votes (FGGP)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch.nn import functional

from ._graph_views import row_slices


def assignment(logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The weight of every node in every class prototype, ``[clients, classes, items]``.

    A training node (label not -1) has weight 1 in its class. Another node has weight in its most probable
    class only: the probability of this class. Padding (not ``mask``) has weight 0.
    """
    confidence, guess = logits.softmax(dim=2).max(dim=2)
    label_mask = labels >= 0
    classes = torch.where(label_mask, labels, guess)
    weights = torch.where(label_mask, 1.0, confidence) * mask
    one_hot: Tensor = functional.one_hot(classes, logits.shape[2]).transpose(1, 2)
    assigned: Tensor = one_hot * weights[:, None, :]
    return assigned


def prototypes(assigned: Tensor, features: Tensor) -> Tensor:
    """Weighted means ``[clients, classes, width]``; zero for a class without nodes."""
    return torch.bmm(assigned, features) / assigned.sum(dim=2, keepdim=True).clamp_min(1e-6)


def prototype_contrast(anchors: Tensor, others: Tensor, present: Tensor, temperature: float) -> Tensor:
    """Mean InfoNCE ``[clients]`` over the classes that are ``present`` ``[clients, classes]``.

    The loss of class c is -log of the share of exp(cos(anchor_c, other_c) / T) in a sum: the same term plus
    the terms of anchor_c with all other present classes of both views.
    """
    anchors, others = functional.normalize(anchors, dim=2), functional.normalize(others, dim=2)
    classes = anchors.shape[1]
    absent_mask = ~present[:, None, :]
    diagonal = torch.eye(classes, dtype=torch.bool, device=anchors.device)
    across = torch.bmm(anchors, others.transpose(1, 2)) / temperature
    within = torch.bmm(anchors, anchors.transpose(1, 2)) / temperature
    positive = across.diagonal(dim1=1, dim2=2)
    negatives = torch.cat(
        [
            within.masked_fill(absent_mask | diagonal, -torch.inf),
            across.masked_fill(absent_mask | diagonal, -torch.inf),
        ],
        dim=2,
    )
    losses = torch.logsumexp(torch.cat([positive[:, :, None], negatives], dim=2), dim=2) - positive
    return (losses * present).sum(dim=1) / present.sum(dim=1).clamp_min(1)


def finch(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """FINCH (Sarfraz et al., CVPR 2019) by cosine: cluster numbers ``[m]`` of points ``[m, width]``.

    Every point is linked to its nearest neighbour. The connected components are the clusters of the first
    partition. Their means are linked in the same way, and so on. Every cluster has at least two members, so
    the last partition is a single cluster. As in the authors' code it is used only if it is the first.
    Return the coarsest partition that is left.
    """
    labels = np.arange(len(points))
    while True:
        means = np.stack([points[labels == label].mean(axis=0) for label in range(labels.max() + 1)])
        count = len(means)
        if count == 1:
            return labels
        directions = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        similarity = directions @ directions.T
        np.fill_diagonal(similarity, -np.inf)
        links = (np.arange(count), similarity.argmax(axis=1))
        graph = sparse.coo_matrix((np.ones(count), links), shape=(count, count))
        clusters, components = connected_components(graph, directed=False)
        if clusters == 1 and count < len(points):
            return labels
        labels = components[labels].astype(np.int64)


def cluster_means(stacks: Tensor) -> tuple[Tensor, Tensor]:
    """Global prototypes ``[m, width]`` and their classes ``[m]``: cluster means, class by class.

    ``stacks`` ``[clients, classes, width]`` are the clients' prototypes, NaN for a class without nodes.
    """
    means: list[Tensor] = []
    owners: list[int] = []
    for label, uploads in enumerate(stacks.unbind(dim=1)):
        rows = uploads[~uploads.isnan().any(dim=1)]
        if len(rows):
            clusters = finch(rows.cpu().double().numpy())
            means += [rows[torch.from_numpy(clusters == k)].mean(dim=0) for k in np.unique(clusters)]
            owners += [label] * (len(means) - len(owners))
    return torch.stack(means), torch.tensor(owners, device=stacks.device)


def vote(
    features: Tensor, points: Tensor, owners: Tensor, classes: int, voters: int, temperature: float
) -> Tensor:
    """Class scores ``[clients, items, classes]`` by the nearest prototypes.

    ``points`` ``[m, width]`` are the prototypes, ``owners`` ``[m]`` their classes. The
    min(voters, m) prototypes most similar by cosine vote with the softmax of their similarities.
    """
    directions = functional.normalize(points, dim=1).T
    scores = features.new_zeros(*features.shape[:2], classes)
    for rows in row_slices(features.shape[1], features.shape[0] * len(points)):
        similarity = functional.normalize(features[:, rows], dim=2) @ directions
        nearest = similarity.topk(min(voters, len(points)), dim=2)
        shares = (nearest.values / temperature).softmax(dim=2)
        scores[:, rows] = scores[:, rows].scatter_add(2, owners[nearest.indices], shares)
    return scores
