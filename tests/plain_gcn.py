"""The GCN for one client in plain torch, from its dense adjacency."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from bench.federation.types import Client


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
