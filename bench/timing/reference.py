"""The sequential reference: trains one client's graph after the other, with torch-geometric's layers.

The stacked engine's numbers and speed are compared with the reference. The reference is written with care
for speed. Graphs are normalised once (``cached=True``), and modules and optimisers are built once. A
client's parameters are views of the client's row of the stack that the server averages, so that only
loading the received model copies. Optimisers are fused. Dropout masks are the stacked engine's masks, which
are cheaper than torch's masks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GCNConv

from bench.engine.batch import Batch, Block, Stack
from bench.engine.clients import Clients
from bench.engine.local_training import with_dropout
from bench.errors import DivergedError, NotApplicableError
from bench.federation.types import Client
from bench.nn.base import ClientModel, Drop, Output, keep_all
from bench.spec import RunSpec

MODULE_NAMES = {
    "conv1.weight": "conv1.lin.weight",
    "conv1.bias": "conv1.bias",
    "conv2.weight": "conv2.lin.weight",
    "conv2.bias": "conv2.bias",
    "head.weight": "head.weight",
    "head.bias": "head.bias",
}
"""Name in a stack -> name in ``PlainGCN``; matrices are transposed there."""


class PlainGCN(nn.Module):
    """The study's GCN for one client."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.conv1 = GCNConv(features, hidden, cached=True)
        self.conv2 = GCNConv(hidden, hidden, cached=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor, edges: Tensor, drop: Drop) -> tuple[Tensor, Tensor]:
        """Logits and embeddings of all nodes."""
        hidden = drop(torch.relu(self.conv1(x, edges))[None], 0)[0]
        embedding = self.conv2(hidden, edges)
        logits = self.head(drop(torch.relu(embedding)[None], 1)[0])
        return logits, embedding


class OneGraph(Block):
    """A block of one client, trained and evaluated through a plain module."""

    def __init__(self, clients: SequentialClients, client: Client, row: int) -> None:
        super().__init__(clients.model, [client], row, clients.classes, clients.device)
        assert client.edges is not None
        self.x = torch.from_numpy(client.dense()).to(self.device)
        self.edges = torch.from_numpy(client.edges).to(self.device)
        self.chosen = torch.from_numpy(self.training[0]).to(self.device)
        self.targets = self.labels[0, self.chosen]
        hidden = clients.model.shapes["conv2.weight"][0]
        self.module = PlainGCN(self.x.shape[1], hidden, clients.classes).to(self.device)
        self.parameters = dict(self.module.named_parameters())
        settings = clients.spec.client
        kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.SGD
        rate, decay = settings.learning_rate, settings.weight_decay
        self.optimiser = kind(self.module.parameters(), lr=rate, weight_decay=decay, fused=True)

    def adopt(self, row: Mapping[str, Tensor]) -> None:
        """Let the module's parameters be the memory of the client's row of a stack."""
        for name, module_name in MODULE_NAMES.items():
            value = row[name]
            self.parameters[module_name].data = value.t() if value.dim() == 2 else value

    def train(self, clients: SequentialClients, epochs: int) -> float:
        """Take one step an epoch on all training nodes. Return the sum of the losses before the steps."""
        batch, masks = with_dropout(self, clients.spec.client, clients._stream, epochs, None)
        total = 0.0
        for epoch in range(epochs):
            if masks is not None:
                masks.begin_epoch(epoch)
            logits, _ = self.module(self.x, self.edges, batch.drop)
            loss = functional.cross_entropy(logits[self.chosen], self.targets)
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
            total += float(loss.detach())
        return total

    @cached_property
    def evaluation(self) -> Batch:
        """All nodes in evaluation mode."""
        return PlainBatch(self, self.rows, self.inputs, self.labels, None, None)


class PlainBatch(Batch):
    """A client's nodes, evaluated through its module."""

    block: OneGraph

    def forward(self, models: Stack) -> Output:
        """Logits and embeddings."""
        self.block.adopt({name: value[0] for name, value in models.items()})
        logits, embedding = self.block.module(self.block.x, self.block.edges, keep_all)
        return Output(logits[None], embedding[None])


class SequentialClients(Clients):
    """``Clients`` that trains one client after the other.

    Raises:
        NotApplicableError: the client model is another one, or some clients take no part in a round.
    """

    def __init__(
        self,
        spec: RunSpec,
        model: ClientModel,
        members: Sequence[Client],
        classes: int,
        device: torch.device,
        block_size: int,
    ) -> None:
        super().__init__(spec, model, members, classes, device, block_size=1)
        if model.name != "gcn":
            raise NotApplicableError(f"the sequential reference has no plain '{model.name}'")
        if spec.protocol.participation < 1:
            raise NotApplicableError("the sequential reference trains all clients in every round")
        self.blocks = [OneGraph(self, client, row) for row, client in enumerate(members)]
        self._row: dict[str, Tensor] | None = None

    def fit(self, stack: Stack, *, epochs: int | None = None, **options: Any) -> Stack:
        """Train client after client with an optimiser of ``torch.optim``.

        Raises:
            NotApplicableError: any other option of ``Clients.fit`` that asks for something.
        """
        if any(set(value) != set(stack) if name == "trainable" else True for name, value in options.items()):
            raise NotApplicableError("the sequential reference trains whole models with cross-entropy only")
        epochs = self.spec.protocol.local_epochs if epochs is None else epochs
        if self._row is None:
            self._row = {name: torch.empty(value.shape, device=self.device) for name, value in stack.items()}
        target = self._row
        total = 0.0
        for client, block in enumerate(self.blocks):
            assert isinstance(block, OneGraph)
            row = {name: value[client] for name, value in target.items()}
            for name, value in row.items():
                value.copy_(stack[name][client])
            block.adopt(row)
            total += block.train(self, epochs)
        self._calls += 1
        self._passes += epochs
        self.loss = total / (self.count * epochs)
        if not np.isfinite(self.loss):
            raise DivergedError("a training loss is not finite")
        return target
