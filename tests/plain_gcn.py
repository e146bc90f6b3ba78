"""The GCN for one client in plain torch, from its dense adjacency."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from bench.federation.types import Client


def dense_gcn(client: Client) -> Callable[[Mapping[str, Tensor]], tuple[Tensor, Tensor]]:
    """Logits and embeddings of one client's GCN, from its dense normalised adjacency."""
    nodes = len(client.ids)
    assert client.edges is not None
    a = torch.eye(nodes)
    a[client.edges[0], client.edges[1]] = 1
    scale = a.sum(dim=1).rsqrt()
    a = scale[:, None] * a * scale[None, :]
    x = torch.from_numpy(client.dense())

    def forward(w: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        hidden = torch.relu(a @ x @ w["conv1.weight"] + w["conv1.bias"])
        embedding = a @ hidden @ w["conv2.weight"] + w["conv2.bias"]
        return torch.relu(embedding) @ w["head.weight"] + w["head.bias"], embedding

    return forward
