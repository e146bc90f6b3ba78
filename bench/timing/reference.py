"""The sequential reference: one client after the other, plain modules of torch and torch-geometric.

It exists to check the stacked engine and to measure it against. It is what a careful person would
write: graphs are normalised once (``cached=True``), modules and optimisers are built once, the
parameters of client *i* are views of row *i* of the stack that the server averages, so that no
copy is made besides loading the received model, and optimisers are the fused ones. It draws the same
dropout masks as the stacked engine, which are cheaper than torch's own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.engine.batch import Batch, Block, Stack
from bench.engine.clients import Clients
from bench.engine.local_training import with_dropout
from bench.errors import DivergedError, NotApplicableError
from bench.federation.types import Client
from bench.nn.base import ClientModel, Output, keep_all
from bench.nn.images import PIECE, scaled
from bench.spec import ClientSettings, RunSpec
from bench.timing.plain import MODULE_NAMES, PlainCNN, PlainGCN, PlainResNet18


class OneClient(Block):
    """A block of one client, trained and evaluated through a plain module."""

    module: nn.Module

    def __init__(
        self, model: ClientModel, members: Sequence[Client], start: int, classes: int, device: torch.device
    ) -> None:
        super().__init__(model, members, start, classes, device)
        self.chosen = torch.from_numpy(self.training[0]).to(device)
        self.targets = self.labels[0, self.chosen]
        self.optimiser: torch.optim.Optimizer | None = None

    @abstractmethod
    def adopt(self, row: Mapping[str, Tensor]) -> None:
        """Let the module's parameters be this memory (one client's row of a stack)."""

    @abstractmethod
    def predict(self) -> tuple[Tensor, Tensor]:
        """Logits and embeddings of all items in evaluation mode."""

    @abstractmethod
    def train(self, clients: SequentialClients, number: int, epochs: int) -> float:
        """Local epochs of the client of that number; returns the sum of their losses."""

    def step(self, settings: ClientSettings, logits: Tensor, targets: Tensor) -> float:
        """A step of the optimiser, which is made at the first one; returns the loss before it."""
        if self.optimiser is None:
            kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.SGD
            rate, decay = settings.learning_rate, settings.weight_decay
            self.optimiser = kind(self.module.parameters(), lr=rate, weight_decay=decay, fused=True)
        objective = functional.cross_entropy(logits, targets)
        self.optimiser.zero_grad()
        objective.backward()
        self.optimiser.step()
        return float(objective.detach())

    @cached_property
    def evaluation(self) -> Batch:
        """All items in evaluation mode."""
        return PlainBatch(self, self.rows, self.inputs, self.labels, self.labels, None, None)


class OneGraph(OneClient):
    """A client's graph and its GCN."""

    def __init__(
        self, model: ClientModel, members: Sequence[Client], start: int, classes: int, device: torch.device
    ) -> None:
        super().__init__(model, members, start, classes, device)
        (client,) = members
        self.x = torch.from_numpy(client.dense()).to(device)
        self.edges = torch.from_numpy(client.edges).to(device)
        hidden = model.shapes["conv2.weight"][0]
        self.module = PlainGCN(self.x.shape[1], hidden, classes).to(device)
        self.parameters = dict(self.module.named_parameters())

    def adopt(self, row: Mapping[str, Tensor]) -> None:
        """Parameters by their names in torch-geometric's modules."""
        for name, module_name in MODULE_NAMES.items():
            value = row[name]
            self.parameters[module_name].data = value.t() if value.dim() == 2 else value

    def predict(self) -> tuple[Tensor, Tensor]:
        """One pass over the graph."""
        logits, embedding = self.module(self.x, self.edges, keep_all)
        return logits, embedding

    def train(self, clients: SequentialClients, number: int, epochs: int) -> float:
        """A step an epoch on all training nodes."""
        settings = clients.spec.client
        batch, masks = with_dropout(self, settings, clients._stream, epochs, None)
        total = 0.0
        for epoch in range(epochs):
            if masks is not None:
                masks.begin_epoch(epoch)
            logits, _ = self.module(self.x, self.edges, batch.drop)
            total += self.step(settings, logits[self.chosen], self.targets)
        return total


class OneAlbum(OneClient):
    """A client's images and its convolutional network."""

    def __init__(
        self, model: ClientModel, members: Sequence[Client], start: int, classes: int, device: torch.device
    ) -> None:
        super().__init__(model, members, start, classes, device)
        (client,) = members
        self.pixels = torch.from_numpy(client.features).to(device)
        channels = client.features.shape[1]
        if model.name == "cnn":
            flat_width, hidden = model.shapes["fc1.weight"]
            self.module = PlainCNN(channels, flat_width, hidden, classes).to(device)
        else:
            self.module = PlainResNet18(channels, classes).to(device)
        self.tensors = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}

    def adopt(self, row: Mapping[str, Tensor]) -> None:
        """Parameters and running statistics."""
        for name, value in row.items():
            self.tensors[name].data = value.t() if value.dim() == 2 else value

    def _outputs(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        logits, embedding = self.module(scaled(pixels).contiguous(memory_format=torch.channels_last))
        return logits, embedding

    def predict(self) -> tuple[Tensor, Tensor]:
        """Images in pieces."""
        self.module.eval()
        pieces = [self._outputs(piece) for piece in self.pixels.split(PIECE)]
        return torch.cat([logits for logits, _ in pieces]), torch.cat([embedding for _, embedding in pieces])

    def train(self, clients: SequentialClients, number: int, epochs: int) -> float:
        """Shuffled batches without the last partial one; a loss is the mean over an epoch's batches."""
        self.module.train()
        size = min(clients.spec.client.batch_size or len(self.chosen), len(self.chosen))
        batches = len(self.chosen) // size if size else 0
        total = 0.0
        for epoch in range(epochs):
            order = clients._stream("order", number, epoch).permutation(self.training[0])
            for step in range(batches):
                items = torch.from_numpy(order[step * size : (step + 1) * size]).to(self.device)
                logits, _ = self._outputs(self.pixels[items])
                total += self.step(clients.spec.client, logits, self.labels[0, items]) / batches
        return total


KINDS: Mapping[str, type[OneClient]] = {"gcn": OneGraph, "cnn": OneAlbum, "resnet18": OneAlbum}
"""Client models that the reference has a plain module for."""


class PlainBatch(Batch):
    """A client's items, evaluated through its module."""

    block: OneClient

    def forward(self, models: Stack) -> Output:
        """Logits and embeddings."""
        self.block.adopt({name: value[0] for name, value in models.items()})
        logits, embedding = self.block.predict()
        return Output(logits[None], embedding[None])


class SequentialClients(Clients):
    """``Clients`` that trains one client after the other.

    Raises:
        NotApplicableError: there is no plain module for the client model, or some clients take no part in a
            round.
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
        if model.name not in KINDS:
            raise NotApplicableError(f"the sequential reference has no plain '{model.name}'")
        if spec.protocol.participation < 1:
            raise NotApplicableError("the sequential reference trains all clients in every round")
        kind = KINDS[model.name]
        self.blocks = [kind(model, [client], row, classes, device) for row, client in enumerate(members)]
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
            assert isinstance(block, OneClient)
            row = {name: value[client] for name, value in target.items()}
            for name, value in row.items():
                value.copy_(stack[name][client])
            block.adopt(row)
            total += block.train(self, client, epochs)
        self._calls += 1
        self._passes += epochs
        self.loss = total / (self.count * epochs)
        if not np.isfinite(self.loss):
            raise DivergedError("a training loss is not finite")
        return target
