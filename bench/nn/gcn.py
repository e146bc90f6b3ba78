"""Graph convolutional networks (Kipf and Welling, ICLR 2017), with self-loops and symmetric normalisation.

``gcn`` is that of the subgraph studies: GCNConv(features, hidden) -> ReLU -> dropout -> GCNConv(hidden,
hidden) -> [embedding] -> ReLU -> dropout -> Linear(hidden, classes), two graph convolutions plus a linear
head, as FED-PUB's and FedSheafHN's released code have it. ``gcn2`` is FedGCN's: GCNConv(features, hidden) ->
[embedding] -> ReLU -> dropout -> GCNConv(hidden, classes), whose second layer is the head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from bench.federation.types import Client
from bench.nn.base import ClientModel, Drop, Inputs, fan_in_uniform, glorot
from bench.nn.randomness import DropoutMasks
from bench.nn.sparse import Propagate, csr_tensor, product
from bench.spec import ClientSettings

Propagation = Callable[[Tensor], Tensor]
"""Multiplies ``[clients * items, width]`` by an adjacency."""

SPARSE_DENSITY = 0.1
"""Features denser than this are multiplied as dense matrices (measured break-even is near 0.1)."""


def normalised_adjacency(edges: NDArray[np.int64], nodes: int) -> sparse.csr_matrix:
    """``D^-1/2 (A + I) D^-1/2`` in float32, ``[nodes, nodes]``."""
    loops = np.arange(nodes)
    source, target = np.concatenate([edges, np.stack([loops, loops])], axis=1)
    matrix = sparse.csr_matrix((np.ones(len(source), np.float32), (target, source)), shape=(nodes, nodes))
    scale = 1 / np.sqrt(np.asarray(matrix.sum(axis=1), np.float32).ravel())
    matrix.data *= scale.repeat(np.diff(matrix.indptr))
    matrix.data *= scale[matrix.indices]
    return matrix


def are_sparse(clients: Sequence[Client]) -> bool:
    """Whether the clients' features are multiplied as sparse matrices."""
    matrices = [client.features for client in clients]
    nonzeros = sum(
        int(np.count_nonzero(matrix)) if isinstance(matrix, np.ndarray) else matrix.nnz for matrix in matrices
    )
    return bool(nonzeros <= SPARSE_DENSITY * sum(rows * width for rows, width in (m.shape for m in matrices)))


class GraphInputs(Inputs):
    """Features and normalised adjacency of a block of clients, nodes padded to the longest client."""

    def __init__(self, clients: Sequence[Client], sparse_features: bool, device: torch.device) -> None:
        sizes = [len(client.ids) for client in clients]
        self.lengths = torch.tensor(sizes, device=device)
        self.items = max(sizes)
        self.width = int(clients[0].features.shape[1])
        adjacencies, features = [], []
        for client, size in zip(clients, sizes, strict=True):
            assert client.edges is not None
            adjacency = normalised_adjacency(client.edges, size)
            adjacency.resize(self.items, self.items)
            adjacencies.append(adjacency)
            rows = sparse.csr_matrix(client.features, dtype=np.float32)
            rows.resize(self.items, self.width)
            features.append(rows)
        self.adjacency = csr_tensor(sparse.block_diag(adjacencies, format="csr"), device)
        self.dense: Tensor | None = None
        if not sparse_features:
            self.dense = torch.from_numpy(np.stack([rows.toarray() for rows in features])).to(device)
            return
        diagonal = sparse.block_diag(features, format="csr")
        self.features = csr_tensor(diagonal, device)
        self.transposed = csr_tensor(diagonal.T.tocsr(), device)
        self.rows = csr_tensor(sparse.vstack(features, format="csr"), device)

    @property
    def nodes(self) -> Tensor:
        """1 for nodes and 0 for padding, ``[clients, items]``."""
        return (torch.arange(self.items, device=self.lengths.device) < self.lengths[:, None]).float()

    def first_layer(self, weight: Tensor) -> Tensor:
        """``x_c w_c`` for every client: ``[clients, width, hidden]`` -> ``[clients * items, hidden]``."""
        clients, _, hidden = weight.shape
        if self.dense is not None:
            return torch.matmul(self.dense, weight).view(clients * self.items, hidden)
        if not torch.is_grad_enabled() and weight.stride(0) == 0:
            return product(self.rows, weight[0])  # one model for all: no copy for every client
        flat_weight = weight.reshape(clients * self.width, hidden)
        if not weight.requires_grad:
            return product(self.features, flat_weight)
        result: Tensor = Propagate.apply(flat_weight, self.features, self.transposed)
        return result

    def first_layer_gradient(self, gradient: Tensor) -> Tensor:
        """``x_c^T g_c`` for every client: ``[clients, items, hidden]`` -> ``[clients, width, hidden]``."""
        clients, _, hidden = gradient.shape
        if self.dense is not None:
            return torch.bmm(self.dense.mT, gradient)
        flat = product(self.transposed, gradient.view(clients * self.items, hidden))
        return flat.view(clients, self.width, hidden)

    def propagate(self, hidden: Tensor) -> Tensor:
        """Multiply by every client's normalised adjacency; ``hidden`` ``[clients * items, width]``."""
        result: Tensor = Propagate.apply(hidden, self.adjacency)
        return result

    def is_row_read(self) -> NDArray[np.bool_]:
        """Whether each client's features multiply a row of the first matrix, ``[clients, rows]``."""
        is_read = np.zeros((len(self.lengths), self.width), np.bool_)
        is_read.flat[self.features.col_indices().cpu().numpy()] = True  # column c * width + row
        return is_read

    def on_rows(self, rows: NDArray[np.int64]) -> GraphInputs:
        """The same graphs for a first matrix that has only these ``rows`` ``[clients, rows]``."""
        place = np.arange(len(rows))[:, None] * self.width
        parts = [part.cpu().numpy() for part in (self.features.values(), self.features.col_indices())]
        start = self.features.crow_indices().cpu().numpy()
        diagonal = sparse.csr_matrix((*parts, start), self.features.shape)[:, (rows + place).ravel()]
        inputs = copy(self)
        inputs.width = rows.shape[1]
        inputs.features = csr_tensor(diagonal, self.lengths.device)
        inputs.transposed = csr_tensor(diagonal.T.tocsr(), self.lengths.device)
        return inputs

    def on(self, propagate: Propagation, projection: Tensor | None = None) -> GraphInputs:
        """The same nodes and features on another adjacency, which ``propagate`` multiplies by.

        ``projection`` is the result of ``first_layer``, if it is known. Several graphs can share it.
        """
        return _OtherGraph(self, propagate, projection)


class _OtherGraph(GraphInputs):
    """Nodes and features of a block on another adjacency."""

    def __init__(self, base: GraphInputs, propagate: Propagation, projection: Tensor | None) -> None:
        self.lengths, self.items = base.lengths, base.items
        self._base, self._propagate, self._projection = base, propagate, projection

    def first_layer(self, weight: Tensor) -> Tensor:
        """The product of the features, as on the nodes' own graph."""
        return self._base.first_layer(weight) if self._projection is None else self._projection

    def propagate(self, hidden: Tensor) -> Tensor:
        """Multiply by the other adjacency."""
        return self._propagate(hidden)


def graphs(inputs: Inputs) -> GraphInputs:
    """A block's inputs as graphs. Methods that run on graphs alone have no others."""
    assert isinstance(inputs, GraphInputs)
    return inputs


class CommonGraph(GraphInputs):
    """One graph as the input of several clients. Its features are held once, as a dense matrix."""

    def __init__(self, client: Client, count: int, device: torch.device) -> None:
        super().__init__([client], False, device)
        assert client.edges is not None
        assert self.dense is not None
        adjacency = normalised_adjacency(client.edges, self.items)
        self.adjacency = csr_tensor(sparse.block_diag([adjacency] * count, format="csr"), device)
        self.lengths = self.lengths.expand(count)
        self.dense = self.dense.expand(count, -1, -1)


def _first_layer(stack: Mapping[str, Tensor], inputs: GraphInputs) -> Tensor:
    """The first convolution's output before its activation, ``[clients, nodes, width]``."""
    hidden = inputs.propagate(inputs.first_layer(stack["conv1.weight"]))
    return hidden.view(len(inputs.lengths), inputs.items, -1) + stack["conv1.bias"][:, None, :]


def _second_layer(
    stack: Mapping[str, Tensor], hidden: Tensor, inputs: GraphInputs, drop: Drop | None
) -> Tensor:
    """The second convolution on the activation of the first one's output."""
    clients, nodes = len(inputs.lengths), inputs.items
    hidden = torch.relu(hidden)
    hidden = torch.bmm(drop(hidden, 0) if drop else hidden, stack["conv2.weight"])
    hidden = inputs.propagate(hidden.view(clients * nodes, -1)).view(clients, nodes, -1)
    return hidden + stack["conv2.bias"][:, None, :]


class GCN(ClientModel):
    """Two graph convolutions and a linear head for every client."""

    name = "gcn"
    families = ("graph",)
    head = frozenset({"head.weight", "head.bias"})

    def __init__(self, clients: Sequence[Client], classes: int, settings: ClientSettings) -> None:
        super().__init__(clients, classes, settings)
        self._sparse = are_sparse(clients)
        self.first_matrix = "conv1.weight" if self._sparse else ""
        self.dropout_widths = (self.hidden, self.hidden)

    def initial(self, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        """Glorot convolutions with zero bias and torch's default linear head."""
        return {
            "conv1.weight": glorot(rng, self.inputs, self.hidden),
            "conv1.bias": np.zeros(self.hidden, np.float32),
            "conv2.weight": glorot(rng, self.hidden, self.hidden),
            "conv2.bias": np.zeros(self.hidden, np.float32),
            "head.weight": fan_in_uniform(rng, self.hidden, (self.hidden, self.classes)),
            "head.bias": fan_in_uniform(rng, self.hidden, (self.classes,)),
        }

    def collate(self, clients: Sequence[Client], device: torch.device) -> GraphInputs:
        """Block-diagonal adjacency and features."""
        return GraphInputs(clients, self._sparse, device)

    def collate_common(self, client: Client, count: int, device: torch.device) -> CommonGraph:
        """The features without a copy for every client."""
        return CommonGraph(client, count, device)

    def embed(self, stack: Mapping[str, Tensor], inputs: GraphInputs, drop: Drop | None) -> Tensor:
        """The second convolution's output before its activation."""
        return _second_layer(stack, _first_layer(stack, inputs), inputs, drop)

    def classify(
        self, stack: Mapping[str, Tensor], embedding: Tensor, inputs: GraphInputs, drop: Drop | None
    ) -> Tensor:
        """The linear head on the activation."""
        hidden = torch.relu(embedding)
        hidden = drop(hidden, 1) if drop else hidden
        return torch.bmm(hidden, stack["head.weight"]) + stack["head.bias"][:, None, :]

    def gradients(
        self,
        stack: Mapping[str, Tensor],
        inputs: GraphInputs,
        drop: Drop | None,
        loss: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, dict[str, Tensor]] | None:
        """Loss and gradients, computed in place where they can be: autograd allocates all of them anew."""
        assert drop is not None
        clients, nodes = len(inputs.lengths), inputs.items

        factors = [drop.factors(site) if isinstance(drop, DropoutMasks) else None for site in (0, 1)]

        def propagated(hidden: Tensor) -> Tensor:
            return product(inputs.adjacency, hidden.view(clients * nodes, -1)).view(clients, nodes, -1)

        def activated(hidden: Tensor, bias: str) -> Tensor:
            return propagated(hidden).add_(stack[bias][:, None, :]).relu_()

        def dropped(active: Tensor, site: int) -> Tensor:
            factor = factors[site]
            return active if factor is None else active * factor

        def back_to(active: Tensor, gradient: Tensor, site: int) -> Tensor:
            """The gradient before ReLU and dropout, in place."""
            factor = factors[site]
            gradient = gradient if factor is None else gradient.mul_(factor)
            before_relu: Tensor = torch.ops.aten.threshold_backward.grad_input(
                gradient, active, 0, grad_input=gradient
            )
            return before_relu

        with torch.no_grad():
            first = activated(inputs.first_layer(stack["conv1.weight"]), "conv1.bias")
            second_input = dropped(first, 0)
            second = activated(torch.bmm(second_input, stack["conv2.weight"]), "conv2.bias")
            head_input = dropped(second, 1)
            logits = torch.bmm(head_input, stack["head.weight"]).add_(stack["head.bias"][:, None, :])
        logits.requires_grad_()
        losses = loss(logits)
        (gradient,) = torch.autograd.grad(losses.sum(), [logits])
        with torch.no_grad():
            gradients = {
                "head.weight": torch.bmm(head_input.mT, gradient),
                "head.bias": gradient.sum(dim=1),
            }
            gradient = back_to(second, torch.bmm(gradient, stack["head.weight"].mT), 1)
            gradients["conv2.bias"] = gradient.sum(dim=1)
            gradient = propagated(gradient)
            gradients["conv2.weight"] = torch.bmm(second_input.mT, gradient)
            gradient = back_to(first, torch.bmm(gradient, stack["conv2.weight"].mT), 0)
            gradients["conv1.bias"] = gradient.sum(dim=1)
            gradients["conv1.weight"] = inputs.first_layer_gradient(propagated(gradient))
        return losses.detach(), gradients


class GCN2(GCN):
    """Two graph convolutions for every client; the second one is the head."""

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
        return _first_layer(stack, inputs)

    def classify(
        self, stack: Mapping[str, Tensor], embedding: Tensor, inputs: GraphInputs, drop: Drop | None
    ) -> Tensor:
        """The second convolution on the activation."""
        return _second_layer(stack, embedding, inputs, drop)
