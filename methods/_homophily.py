"""Homophily of a client's graph, and graphs and relations that compensate for low homophily (AdaFGL)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.engine.batch import Batch, Stack
from bench.errors import NotApplicableError
from bench.nn.gcn import graphs

from ._disentangled import edges_of
from .pfedfda import parity

ALIKE = 0.999
"""Nodes are linked if the cosine of their predictions is greater."""

STEPS = 10
"""Steps of label propagation."""

PAIRS = 2**28
"""The most pairs of nodes in a block."""

HOPS = 4
"""Number of powers of the propagation whose features are concatenated; the first power is 0."""


class Relations(NamedTuple):
    """Relations between the nodes of a client, after the federation is over.

    Attributes:
        propagation: the normalised graph with self-loops, ``[c, items, items]``.
        similar: whether predictions are alike, ``[c, items, items]``.
        predictions: predictions of the federated model, ``[c, items, classes]``.
        reliability: accuracy of label propagation from half of the training nodes on the other half,
            ``[c]``.
    """

    propagation: Tensor
    similar: Tensor
    predictions: Tensor
    reliability: Tensor


def cosine(rows: Tensor) -> Tensor:
    """Cosines of all pairs of rows, ``[c, n, k]`` -> ``[c, n, n]``; 0 on the diagonal and for zero rows."""
    unit = functional.normalize(rows, dim=2, eps=1e-8)
    return torch.bmm(unit, unit.transpose(1, 2)) * (1 - torch.eye(rows.shape[1], device=rows.device))


def relations(batch: Batch, predictions: Tensor, share: float) -> Relations:
    """Relations from the graph (weight ``share``) and the model's ``predictions`` (weight 1 - ``share``).

    Raises:
        NotApplicableError: a block has more than ``PAIRS`` pairs of nodes.
    """
    clients, items = batch.labels.shape
    if clients * items * items > PAIRS:
        raise NotApplicableError(f"adafgl holds all pairs of nodes: {items:,} at a client are too many")
    node = graphs(batch.inputs).nodes
    pairs = node[:, :, None] * node[:, None, :]
    similarity = (cosine(predictions) > ALIKE).float() * pairs
    source, target = edges_of(batch)
    adjacency = torch.zeros(clients * items, items, device=node.device)
    adjacency[target, source % items] = 1.0
    mixture = share * adjacency.view(clients, items, items) + (1 - share) * similarity
    mixture = mixture + torch.eye(items, device=node.device)
    scale = mixture.sum(dim=2).rsqrt()
    propagation = scale[:, :, None] * mixture * scale[:, None, :]
    return Relations(propagation, similarity, predictions, reliability(batch))


def reliability(batch: Batch) -> Tensor:
    """Accuracy ``[c]`` of label propagation on every second training node of a class, from the others."""
    classes = batch.block.classes
    label_mask = batch.labels >= 0
    test_mask = torch.zeros_like(label_mask)
    for row, labels in enumerate(batch.labels):
        test_mask[row, label_mask[row]] = parity(labels[label_mask[row]])
    train_mask = (label_mask & ~test_mask)[:, :, None]
    one_hot = functional.one_hot(batch.labels.clamp_min(0), classes).float()
    start = torch.where(train_mask, one_hot, 1 / classes)
    y = start
    for _ in range(STEPS):
        y = graphs(batch.inputs).propagate(y.reshape(-1, classes)).view_as(start) / 2 + start / 2
        y = torch.where(train_mask, y + start, y)
    hits = (y.argmax(dim=2) == batch.labels) & test_mask
    return hits.sum(dim=1) / test_mask.sum(dim=1).clamp_min(1)


def branches(features: int, hidden: int, classes: int) -> dict[str, Tensor]:
    """Random parameters of the four MLPs, and the slope of the PReLU.

    A first layer on X' has ``HOPS`` times as many columns: one block of columns for each power.
    """
    width = HOPS * hidden
    layers = {
        "y1": [(features, width), (hidden, classes)],
        "y2": [(features, hidden), (hidden, hidden), (hidden, classes)],
        "y3": [(features, width), (hidden, hidden), (hidden, classes)],
        "e": [(features, width), (hidden, hidden), (hidden, classes)],
    }
    weights = {"slope": torch.full((1,), 0.25)}
    for branch, shapes in layers.items():
        for place, shape in enumerate(shapes):
            weights[f"{branch}.{place}.weight"] = nn.init.xavier_uniform_(torch.empty(shape))
            weights[f"{branch}.{place}.bias"] = torch.zeros(classes if place + 1 == len(shapes) else hidden)
    return weights


def perceptron(w: Stack, branch: str, batch: Batch, propagation: Tensor) -> Tensor:
    """An MLP on X, or on X' = [X, P X, P^2 X, P^3 X] if its first layer has columns for every power.

    X' is not stored: X' W = X W_0 + P (X W_1 + P (X W_2 + P X W_3)).
    """
    layers = sum(name.startswith(f"{branch}.") for name in w) // 2
    bias = w[f"{branch}.0.bias"]
    products: Tensor = graphs(batch.inputs).first_layer(w[f"{branch}.0.weight"])
    hidden: Tensor
    *powers, hidden = products.view(*batch.labels.shape, -1).split(bias.shape[1], dim=2)
    for columns in reversed(powers):
        hidden = columns + torch.bmm(propagation, hidden)
    hidden = hidden + bias[:, None, :]
    for place in range(1, layers):
        hidden = torch.relu(hidden)
        hidden = batch.drop(hidden, place - 1) if batch.drop else hidden
        hidden = torch.baddbmm(w[f"{branch}.{place}.bias"][:, None, :], hidden, w[f"{branch}.{place}.weight"])
    return hidden


def signed(m: Tensor, node: Tensor) -> Tensor:
    """Subtract the mean over node pairs from ``m`` ``[c, n, n]``, scale to [-1, 1]; 1 on the diagonal."""
    pairs = node[:, :, None] * node[:, None, :]
    mean = (m * pairs).sum(dim=(1, 2), keepdim=True) / pairs.sum(dim=(1, 2), keepdim=True)
    centred = (m - mean) * pairs
    ratios = centred / centred.abs().amax(dim=(1, 2), keepdim=True).clamp_min(1e-8)
    loop = torch.eye(m.shape[1], device=m.device)
    return loop * pairs + (1 - loop) * ratios
