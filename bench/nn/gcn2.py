"""The two-layer graph convolutional network of Kipf and Welling (ICLR 2017).

GCNConv(features, hidden) -> [embedding] -> ReLU -> dropout -> GCNConv(hidden, classes), with biases,
self-loops and symmetric normalisation: the client model of FedGCN, whose second layer is the head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench.federation.types import Client
from bench.nn.base import ClientModel, Drop, glorot
from bench.nn.gcn import GCN, GraphInputs
from bench.spec import ClientSettings


class GCN2(GCN):
    """Two graph convolutions for every client, laid out as the subgraph studies' ``gcn``."""

    name = "gcn2"
    head = frozenset({"conv2.weight", "conv2.bias"})
    gradients = ClientModel.gradients

    def __init__(self, clients: Sequence[Client], classes: int, settings: ClientSettings) -> None:
        super().__init__(clients, classes, settings)
        self.dropout_widths = (self.hidden,)

    def initial(self, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        """Glorot matrices and zero biases."""
        return {
            "conv1.weight": glorot(rng, self.inputs, self.hidden),
            "conv1.bias": np.zeros(self.hidden, np.float32),
            "conv2.weight": glorot(rng, self.hidden, self.classes),
            "conv2.bias": np.zeros(self.classes, np.float32),
        }

    def embed(self, stack: Mapping[str, Tensor], inputs: GraphInputs, drop: Drop | None) -> Tensor:
        """The first convolution's output before its activation."""
        hidden = inputs.propagate(inputs.first_layer(stack["conv1.weight"]))
        return hidden.view(len(inputs.lengths), inputs.items, -1) + stack["conv1.bias"][:, None, :]

    def classify(
        self, stack: Mapping[str, Tensor], embedding: Tensor, inputs: GraphInputs, drop: Drop | None
    ) -> Tensor:
        """The second convolution on the activation."""
        clients, nodes = len(inputs.lengths), inputs.items
        hidden = torch.relu(embedding)
        hidden = drop(hidden, 0) if drop else hidden
        hidden = torch.bmm(hidden, stack["conv2.weight"])
        hidden = inputs.propagate(hidden.view(clients * nodes, -1)).view(clients, nodes, -1)
        return hidden + stack["conv2.bias"][:, None, :]
