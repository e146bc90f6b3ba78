"""GraphSAGE with mean aggregation over all neighbours (Hamilton et al., NeurIPS 2017).

``h_v = W_r x_v + W_n mean(x_u over neighbours u) + b``, twice: SAGE(features, hidden) -> [embedding]
-> ReLU -> dropout -> SAGE(hidden, classes). No sampling and no normalisation; the mean over no
neighbours is 0. The second layer is the head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from bench.federation.types import TRAIN, Client
from bench.nn.base import ClientModel, Drop, fan_in_uniform
from bench.nn.gcn import GraphInputs, are_sparse
from bench.nn.sparse import Propagate, RowsInUse, csr_tensor
from bench.spec import ClientSettings

LAYERS = 2


def neighbour_means(edges: NDArray[np.int64], nodes: int) -> sparse.csr_matrix:
    """``D^-1 A`` in float32, ``[nodes, nodes]``; the row of a node without neighbours is 0."""
    degrees = np.bincount(edges[1], minlength=nodes)
    shares = (1 / degrees[edges[1]]).astype(np.float32)
    return sparse.csr_matrix((shares, (edges[1], edges[0])), shape=(nodes, nodes))


def receptive_field(means: sparse.csr_matrix, nodes: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The positions of the nodes that the output of two layers at ``nodes`` ``[n]`` depends on."""
    reach = nodes.astype(np.float32)
    for _ in range(LAYERS):
        reach = reach + means.T @ reach
    return np.flatnonzero(reach)


class SageInputs(GraphInputs):
    """The features of a block of clients, with means over neighbours in place of the adjacency.

    A training step needs the rows of training nodes and of nodes that are at most two edges away. In
    graphs that are extended by other clients' nodes, whose rows are dense, these are few.
    """

    def __init__(self, clients: Sequence[Client], sparse_features: bool, device: torch.device) -> None:
        super().__init__(clients, sparse_features, device)
        means, fields = [], []
        for client in clients:
            assert client.edges is not None
            mean = neighbour_means(client.edges, len(client.ids))
            fields.append(receptive_field(mean, client.roles == TRAIN))
            mean.resize(self.items, self.items)
            means.append(mean)
        matrix = sparse.block_diag(means, format="csr")
        self.adjacency = csr_tensor(matrix, device)
        self._adjacency_transposed = csr_tensor(matrix.T.tocsr(), device)
        self._training = None if self.dense is None else RowsInUse(self.dense, fields)

    def features_times(self, weight: Tensor, training: bool) -> Tensor:
        """``first_layer``; of dense rows those that no training node's logits depend on are 0 in training."""
        if training and self._training is not None:
            return self._training.product(weight).flatten(0, 1)
        return self.first_layer(weight)

    def propagate(self, hidden: Tensor) -> Tensor:
        """Means over every node's neighbours; ``hidden`` ``[clients * items, width]``."""
        result: Tensor = Propagate.apply(hidden, self.adjacency, self._adjacency_transposed)
        return result


class SAGE(ClientModel):
    """Two GraphSAGE layers for every client.

    A layer's weight ``[inputs, 2 * outputs]`` holds W_r and W_n side by side, so that the features,
    which are most of the work, are read once for both.
    """

    name = "sage"
    families = ("graph",)
    head = frozenset({"conv2.weight", "conv2.bias"})

    def __init__(self, clients: Sequence[Client], classes: int, settings: ClientSettings) -> None:
        super().__init__(clients, classes, settings)
        self._sparse = are_sparse(clients)
        self.dropout_widths = (self.hidden,)

    def initial(self, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        """Uniform within ``1 / sqrt(fan_in)``."""
        return {
            "conv1.weight": fan_in_uniform(rng, self.inputs, (self.inputs, 2 * self.hidden)),
            "conv1.bias": fan_in_uniform(rng, self.inputs, (self.hidden,)),
            "conv2.weight": fan_in_uniform(rng, self.hidden, (self.hidden, 2 * self.classes)),
            "conv2.bias": fan_in_uniform(rng, self.hidden, (self.classes,)),
        }

    def collate(self, clients: Sequence[Client], device: torch.device) -> SageInputs:
        """Features that a method has made dense (by noise) are laid out as dense matrices."""
        has_dense = any(isinstance(client.features, np.ndarray) for client in clients)
        return SageInputs(clients, self._sparse and not has_dense, device)

    def embed(self, stack: Mapping[str, Tensor], inputs: SageInputs, drop: Drop | None) -> Tensor:
        """The first layer's output before its activation.

        In training with dense features it is right for nodes at most one edge away from a training node.
        Logits are right for training nodes.
        """
        products = inputs.features_times(stack["conv1.weight"], training=drop is not None)
        return _layer(products, stack["conv1.bias"], inputs)

    def classify(
        self, stack: Mapping[str, Tensor], embedding: Tensor, inputs: SageInputs, drop: Drop | None
    ) -> Tensor:
        """The second layer on the activation."""
        hidden = torch.relu(embedding)
        hidden = drop(hidden, 0) if drop else hidden
        return _layer(torch.bmm(hidden, stack["conv2.weight"]), stack["conv2.bias"], inputs)


def _layer(products: Tensor, bias: Tensor, inputs: SageInputs) -> Tensor:
    """``W_r x`` and ``W_n x``, side by side, of all nodes -> a layer's output ``[clients, nodes, width]``."""
    clients, nodes = len(inputs.lengths), inputs.items
    roots, neighbours = products.view(clients * nodes, -1).chunk(2, dim=1)
    sums = roots + inputs.propagate(neighbours.contiguous())
    return sums.view(clients, nodes, -1) + bias[:, None, :]
