"""The sequential reference: one client after the other, plain torch-geometric modules.

It exists to check the stacked engine and to measure it against. It is what a careful person would
write: graphs are normalised once (``cached=True``), modules and optimisers are built once, the
parameters of client *i* are views of row *i* of the stack that the server averages, so that no
copy is made besides loading the received model, and Adam is the fused one. It draws the same
dropout masks as the stacked engine, which are cheaper than torch's own.
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
from bench.errors import DivergedError, NotApplicableError
from bench.federation.types import TRAIN, Client
from bench.nn.base import ClientModel, Drop, Output, keep_all
from bench.nn.dropout import DropoutMasks, threshold
from bench.spec import RunSpec


class PlainGCN(nn.Module):
    """The study's GCN for one client, from torch-geometric's layers."""

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


MODULE_NAMES = {
    "conv1.weight": "conv1.lin.weight",
    "conv1.bias": "conv1.bias",
    "conv2.weight": "conv2.lin.weight",
    "conv2.bias": "conv2.bias",
    "head.weight": "head.weight",
    "head.bias": "head.bias",
}
"""Name in a stack -> name in ``PlainGCN``; matrices are transposed there."""


class OneClient(Block):
    """A block of one client, evaluated through its module."""

    def __init__(
        self, model: ClientModel, members: Sequence[Client], first: int, classes: int, device: torch.device
    ) -> None:
        super().__init__(model, members, first, classes, device)
        (client,) = members
        self.x = torch.from_numpy(client.dense()).to(device)
        self.edges = torch.from_numpy(client.edges).to(device)
        chosen = np.flatnonzero(client.roles == TRAIN)
        self.chosen = torch.from_numpy(chosen).to(device)
        self.targets = torch.from_numpy(client.labels[chosen]).to(device)
        hidden = model.shapes["conv2.weight"][0]
        self.module = PlainGCN(self.x.shape[1], hidden, classes).to(device)
        self.parameters = dict(self.module.named_parameters())
        self.optimiser: torch.optim.Optimizer | None = None

    def adopt(self, row: Mapping[str, Tensor]) -> None:
        """Let the module's parameters be this memory (one client's row of a stack)."""
        for name, inside in MODULE_NAMES.items():
            value = row[name]
            self.parameters[inside].data = value.t() if value.dim() == 2 else value

    @cached_property
    def evaluation(self) -> Batch:
        """All items in evaluation mode."""
        return PlainBatch(self, self.rows, self.inputs, self.labels, self.labels, None, None)


class PlainBatch(Batch):
    """A client's items, evaluated through its module."""

    block: OneClient

    def forward(self, models: Stack) -> Output:
        """Logits and embeddings."""
        one = self.block
        one.adopt({name: value[0] for name, value in models.items()})
        logits, embedding = one.module(one.x, one.edges, keep_all)
        return Output(logits[None], embedding[None])


class SequentialClients(Clients):
    """``Clients`` that trains one client after the other."""

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
        self.blocks = [OneClient(model, [one], first, classes, device) for first, one in enumerate(members)]
        self._row: dict[str, Tensor] | None = None

    def fit(self, stack: Stack, *, epochs: int | None = None, **options: Any) -> Stack:
        """Train client after client with ``torch.optim.Adam``.

        Raises:
            NotApplicableError: any other option of ``Clients.fit`` that asks for something.
        """
        if any(set(value) != set(stack) if name == "trainable" else True for name, value in options.items()):
            raise NotApplicableError("the sequential reference trains whole models with cross-entropy only")
        s = self.spec.client
        epochs = self.spec.protocol.local_epochs if epochs is None else epochs
        if self._row is None:
            self._row = {name: torch.empty(value.shape, device=self.device) for name, value in stack.items()}
        target = self._row
        total = 0.0
        for client, block in enumerate(self.blocks):
            assert isinstance(block, OneClient)
            row = {name: value[client] for name, value in target.items()}
            for name, value in row.items():
                value.copy_(stack[name][client])
            block.adopt(row)
            if block.optimiser is None:
                block.optimiser = torch.optim.Adam(
                    block.module.parameters(), lr=s.learning_rate, weight_decay=s.weight_decay, fused=True
                )
            drop: Drop = keep_all
            masks = None
            if threshold(s.dropout):
                masks = DropoutMasks(
                    [self._stream("dropout", client)],
                    block.lengths,
                    self.model.dropout_widths,
                    epochs,
                    s.dropout,
                    block.items,
                    self.device,
                )
                drop = masks
            for epoch in range(epochs):
                if masks is not None:
                    masks.begin_epoch(epoch)
                block.optimiser.zero_grad()
                logits, _ = block.module(block.x, block.edges, drop)
                objective = functional.cross_entropy(logits[block.chosen], block.targets)
                objective.backward()
                block.optimiser.step()
                total += float(objective.detach())
        self._calls += 1
        self._passes += epochs
        self.loss = total / (self.count * epochs)
        if not np.isfinite(self.loss):
            raise DivergedError("a training loss is not finite")
        return target
