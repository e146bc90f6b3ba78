"""The GCN for one client in plain torch, from its dense adjacency."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from bench.federation.types import TRAIN, Client, Federation
from bench.methods._masks import MASK
from bench.spec import RunSpec


def looped(client: Client) -> Tensor:
    """A + I of a client's graph."""
    a = torch.eye(len(client.ids))
    assert client.edges is not None
    a[client.edges[0], client.edges[1]] = 1
    return a


def normalised(a: Tensor) -> Tensor:
    """D^-1/2 A D^-1/2 of a matrix that has its self-loops."""
    scale = a.sum(dim=1).rsqrt()
    return scale[:, None] * a * scale[None, :]


def plain_gcn(w: Mapping[str, Tensor], a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Logits and embeddings by one client's parameters, its normalised adjacency and its features."""
    hidden = torch.relu(a @ x @ w["conv1.weight"] + w["conv1.bias"])
    embedding = a @ hidden @ w["conv2.weight"] + w["conv2.bias"]
    return torch.relu(embedding) @ w["head.weight"] + w["head.bias"], embedding


def dense_gcn(client: Client) -> Callable[[Mapping[str, Tensor]], tuple[Tensor, Tensor]]:
    """Logits and embeddings of one client's GCN by its parameters."""
    a, x = normalised(looped(client)), torch.from_numpy(client.dense())
    return lambda w: plain_gcn(w, a, x)


def descended(
    spec: RunSpec,
    federation: Federation,
    start: Mapping[str, Tensor],
    penalty: Callable[..., Any] = lambda w, received, extras: 0.0,
    extras: Mapping[str, Tensor] | None = None,
) -> dict[str, Tensor]:
    """Every client's parameters after a round of plain gradient descent on all of its training nodes.

    The loss is the cross-entropy and the penalty of the client's parameters, of those that it received and
    of the extras that it was sent. A weight counts times its mask where it has one.
    """
    ends = []
    for index, client in enumerate(federation.clients):
        forward, train = dense_gcn(client), np.flatnonzero(client.roles == TRAIN)
        labels = torch.from_numpy(client.labels[train])
        received = {name: value[index] for name, value in start.items()}
        sent = {name: value[index] for name, value in (extras or {}).items()}
        w = {name: value.clone().requires_grad_() for name, value in received.items()}
        for _ in range(spec.protocol.local_epochs):
            masked = {name: w[name] * w[MASK + name] for name in w if MASK + name in w}
            loss = cross_entropy(forward({**w, **masked})[0][train], labels) + penalty(w, received, sent)
            gradients = torch.autograd.grad(loss, list(w.values()))
            with torch.no_grad():
                for value, gradient in zip(w.values(), gradients, strict=True):
                    value -= spec.client.learning_rate * gradient
        ends.append({name: value.detach() for name, value in w.items()})
    return {name: torch.stack([end[name] for end in ends]) for name in start}
