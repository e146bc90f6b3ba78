"""The clients as a method sees them: stacked, in blocks, with training labels only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from bench import streams
from bench.engine.optimiser import OptimiserState
from bench.errors import DivergedError, NotApplicableError
from bench.federation.types import TRAIN, Client
from bench.nn.base import ClientModel, Drop, Inputs, Output, keep_all
from bench.nn.dropout import DropoutMasks, threshold
from bench.spec import RunSpec

Stack = Mapping[str, Tensor]

LossTerm = Callable[[Stack, slice], Tensor]
"""An extra loss for the clients of a slice: (their parameters, the slice) -> ``[clients of the slice]``."""

Forward = Callable[[Stack, "Block", Drop], Tensor]
"""Logits ``[clients of the block, items, classes]`` in training, from the block's parameters.

They need be right for training items alone, as a client model's are (``ClientModel.forward``).
"""


class Block:
    """Some neighbouring clients whose parameters, gradients and moments stay in cache together.

    ``clients`` is their slice of a stack; ``items`` the length that their data are padded to.
    """

    def __init__(
        self, model: ClientModel, members: Sequence[Client], first: int, classes: int, device: torch.device
    ) -> None:
        self.model = model
        self.clients = slice(first, first + len(members))
        self.inputs = model.collate(members, device)
        self.items = self.inputs.items
        self.lengths = [len(client.ids) for client in members]
        targets = np.zeros((len(members), self.items), np.int64)
        weights = np.zeros((len(members), self.items), np.float32)
        self.training: list[NDArray[np.int64]] = []
        counts = np.zeros((len(members), classes), np.float32)
        for row, client in enumerate(members):
            chosen = np.flatnonzero(client.roles == TRAIN)
            self.training.append(chosen)
            targets[row, chosen] = client.labels[chosen]
            weights[row, chosen] = 1 / max(len(chosen), 1)
            counts[row] = np.bincount(client.labels[chosen], minlength=classes)
        self._device = device
        self._targets = torch.from_numpy(targets).to(device)
        self._weights = torch.from_numpy(weights).to(device)
        self.label_counts = torch.from_numpy(counts).to(device)

    def forward(self, models: Stack) -> Output:
        """Evaluation mode; ``models`` is this block's part of a stack."""
        return self.model.forward(models, self.inputs, None)

    def weights(self, items: Sequence[NDArray[np.int64]]) -> Tensor:
        """Weights for ``cross_entropy`` over some training items only, given for each client."""
        weights = np.zeros(self._weights.shape, np.float32)
        for row, chosen in enumerate(items):
            weights[row, chosen] = 1 / max(len(chosen), 1)
        return torch.from_numpy(weights).to(self._device)

    def cross_entropy(self, logits: Tensor, weights: Tensor | None = None) -> Tensor:
        """Mean over each client's training items, ``[clients of the block]``.

        ``weights`` ``[clients of the block, items]`` restricts it to some of them.
        """
        weights = self._weights if weights is None else weights
        each = functional.cross_entropy(logits.flatten(0, 1), self._targets.flatten(), reduction="none")
        return (each.view_as(weights) * weights).sum(dim=1)

    def batch(self, items: Tensor, rows: Tensor) -> tuple[Inputs, Tensor]:
        """Inputs and labels of the chosen items ``[rows, batch]`` of some of the block's clients."""
        return self.inputs.select(items, rows), self._targets[rows[:, None], items]


class Slot:
    """The trained models of one purpose, with their optimiser, kept over rounds."""

    def __init__(self, settings_owner: Clients, like: Stack) -> None:
        sizes = {name: (settings_owner.count, *value.shape[1:]) for name, value in like.items()}
        self._storage = {
            name: [torch.empty(size, device=settings_owner.device)] for name, size in sizes.items()
        }
        fixed = settings_owner.model.buffers
        trainable = {name: stores[0] for name, stores in self._storage.items() if name not in fixed}
        self.optimiser = OptimiserState(settings_owner.spec.client, trainable)

    def claim(self, stack: Stack) -> dict[str, Tensor]:
        """Memory for the result of a fit, never that of the stack that it starts from."""
        result = {}
        for name, value in stack.items():
            stores = self._storage[name]
            address = value.untyped_storage().data_ptr()
            free = [store for store in stores if store.untyped_storage().data_ptr() != address]
            if not free:
                stores.append(torch.empty_like(stores[0]))
                free = stores[-1:]
            result[name] = free[0]
        return result

    def state(self) -> dict[str, Any]:
        """Shapes of a client's parameters, by which a slot can be made anew, and the optimiser's state."""
        shapes = {name: list(stores[0].shape[1:]) for name, stores in self._storage.items()}
        return {"shapes": shapes, "optimiser": self.optimiser.state()}


@dataclass(frozen=True, eq=False)
class Training:
    """What one call of ``Clients.fit`` asks for; see there."""

    optimiser: OptimiserState
    names: list[str]
    epochs: int
    loss: LossTerm | None
    forward: Forward | None
    items: Sequence[NDArray[np.int64]] | None
    decay: Mapping[str, float]


class Clients:
    """All clients of a run.

    Attributes:
        count: number of clients.
        label_counts: training items by class, float32 ``[clients, classes]``.
        training: positions of every client's training items.
        round: the round that is running, -1 during warm-up.
        passes: how often ``fit`` has gone over a client's training items, on average over clients.
        first: number of the first client in the run, by which its random streams are named.
    """

    def __init__(
        self,
        spec: RunSpec,
        model: ClientModel,
        members: Sequence[Client],
        classes: int,
        device: torch.device,
        block_size: int,
        first: int = 0,
    ) -> None:
        self.spec = spec
        self.model = model
        self.first = first
        self.count = len(members)
        self.device = device
        self.blocks = [
            Block(model, members[start : start + block_size], start, classes, device)
            for start in range(0, len(members), block_size)
        ]
        self.label_counts = torch.cat([block.label_counts for block in self.blocks])
        self.training = [items for block in self.blocks for items in block.training]
        self.round = -1
        self.passes = 0.0
        self.loss = float("nan")
        self.after_epoch: Callable[[int, Block, Stack], None] | None = None
        self._slots: dict[str, Slot] = {}
        self._common: dict[tuple[Client, int], Inputs] = {}
        self._calls = 0

    def begin_round(self, round: int) -> None:
        """Name the random streams of this round."""
        self.round, self._calls = round, 0

    def state(self) -> dict[str, Any]:
        """What local training has left behind: the optimisers of every slot."""
        return {name: slot.state() for name, slot in self._slots.items()}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state`` gave."""
        for name, kept in state.items():
            like = {key: torch.empty(0, *shape) for key, shape in kept["shapes"].items()}
            self._slots[name] = Slot(self, like)
            self._slots[name].optimiser.resume(kept["optimiser"])

    def fit(
        self,
        stack: Stack,
        *,
        epochs: int | None = None,
        loss: LossTerm | None = None,
        trainable: Collection[str] | None = None,
        forward: Forward | None = None,
        items: Sequence[NDArray[np.int64]] | None = None,
        decay: Mapping[str, float] | None = None,
        slot: str = "model",
    ) -> Stack:
        """Train every client on its own training items, starting from ``stack``.

        Args:
            stack: parameters ``[clients, ...]``; left unchanged. It may hold parameters that the
                client model does not know, for ``loss`` and ``forward`` to use.
            epochs: local epochs; the protocol's by default.
            loss: a term added to the cross-entropy, such as FedProx's.
            trainable: names of the parameters to train; all by default.
            forward: how logits come from the parameters, such as masked weights; the client
                model's own way by default.
            items: for every client the positions of the training items to use; all by default.
            decay: weight decay of some parameters by name, where it is not the client settings'.
            slot: names the models that are trained here. Models of another purpose (a personal
                copy beside a global one) need a slot, and so an optimiser, of their own.

        Returns:
            The trained parameters. Their memory is used again by the slot's later fits: copy what
            is to be kept over rounds.

        Raises:
            DivergedError: a training loss is not finite.
            NotApplicableError: ``forward`` or ``items`` with client models that train on batches.
        """
        epochs = self.spec.protocol.local_epochs if epochs is None else epochs
        names = [
            name
            for name in stack
            if name not in self.model.buffers and (trainable is None or name in trainable)
        ]
        if not names:
            raise ValueError("fit: trainable names no parameter of the model")
        batches = self.spec.client.batch_size is not None
        if batches and (forward is not None or items is not None):
            raise NotApplicableError(f"{self.spec.method} trains on all of a client's items, not on batches")
        if slot not in self._slots:
            self._slots[slot] = Slot(self, stack)
        job = Training(self._slots[slot].optimiser, names, epochs, loss, forward, items, decay or {})
        target = self._slots[slot].claim(stack)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for block in self.blocks:
            models = {name: target[name][block.clients] for name in stack}
            for name, value in models.items():
                value.copy_(stack[name][block.clients])
            steps = self._mini_batches if batches else self._full_batches
            for epoch, objective in enumerate(steps(block, models, job)):
                total += objective
                if self.after_epoch is not None and self._calls == 0 and self.round >= 0:
                    self.after_epoch(epoch, block, models)
        self._calls += 1
        self.passes += self.passes_of(epochs, items)
        self.loss = float(total) / (self.count * max(epochs, 1))
        if not np.isfinite(self.loss):
            raise DivergedError("a training loss is not finite")
        return target

    def passes_of(self, epochs: int | None, items: Sequence[NDArray[np.int64]] | None) -> float:
        """What a ``fit`` with these arguments adds to ``passes``: epochs times the share of items used."""
        epochs = self.spec.protocol.local_epochs if epochs is None else epochs
        if items is None:
            return float(epochs)
        pairs = zip(items, self.training, strict=True)
        return epochs * float(np.mean([len(some) / max(len(every), 1) for some, every in pairs]))

    def embeddings(self, stack: Stack, on: Client | None = None) -> Tensor:
        """Mean embedding over all items of every client in evaluation mode, ``[clients, width]``.

        ``on`` is data that all clients' models are evaluated on instead of their own; it is laid
        out at its first use and kept.
        """
        means = []
        with torch.no_grad():
            for block in self.blocks:
                inputs = block.inputs if on is None else self._common_inputs(on, len(block.lengths))
                models = {name: value[block.clients] for name, value in stack.items()}
                embedding = self.model.forward(models, inputs, None).embedding
                inside = torch.arange(inputs.items, device=self.device)[None, :] < inputs.lengths[:, None]
                summed = (embedding * inside[:, :, None]).sum(dim=1)
                means.append(summed / inputs.lengths[:, None])
        return torch.cat(means)

    def _common_inputs(self, client: Client, count: int) -> Inputs:
        if (client, count) not in self._common:
            self._common[client, count] = self.model.collate_common(client, count, self.device)
        return self._common[client, count]

    def _stream(self, purpose: str, client: int, *more: int) -> np.random.Generator:
        return streams.generator(self.spec.seed, purpose, self.first + client, self.round, self._calls, *more)

    def _full_batches(self, block: Block, models: dict[str, Tensor], job: Training) -> Iterator[Tensor]:
        """One step an epoch on all training items; yields the summed cross-entropy of each epoch."""
        rate = self.spec.client.dropout
        drop: Drop = keep_all
        masks = None
        if threshold(rate) and self.model.dropout_widths:
            indices = range(block.clients.start, block.clients.stop)
            masks = DropoutMasks(
                [self._stream("dropout", client) for client in indices],
                block.lengths,
                self.model.dropout_widths,
                job.epochs,
                rate,
                block.items,
                self.device,
            )
            drop = masks
        weights = None if job.items is None else block.weights(job.items[block.clients])
        leaves = {name: models[name].detach().requires_grad_() for name in job.names}
        parameters = {**models, **leaves}
        for epoch in range(job.epochs):
            if masks is not None:
                masks.begin_epoch(epoch)
            block.inputs.begin_step()
            if job.forward is None:
                logits = self.model.forward(parameters, block.inputs, drop).logits
            else:
                logits = job.forward(parameters, block, drop)
            entropy = block.cross_entropy(logits, weights)
            objective = entropy if job.loss is None else entropy + job.loss(parameters, block.clients)
            gradients = torch.autograd.grad(objective.sum(), list(leaves.values()))
            job.optimiser.step(job.names, list(leaves.values()), gradients, block.clients, job.decay)
            yield entropy.detach().sum()

    def _mini_batches(self, block: Block, models: dict[str, Tensor], job: Training) -> Iterator[Tensor]:
        """Shuffled batches without the last partial one; yields the mean cross-entropies' sum.

        Clients with equally many batches left step together; a client with fewer training items
        than a batch has one batch of them all.
        """
        size = self.spec.client.batch_size
        assert size is not None
        batches = [max(len(items) // size, 1) if len(items) else 0 for items in block.training]
        width = [min(size, len(items)) for items in block.training]
        for epoch in range(job.epochs):
            orders = [
                self._stream("order", block.clients.start + row, epoch).permutation(items)
                for row, items in enumerate(block.training)
            ]
            total = torch.zeros((), device=self.device)
            for step in range(max(batches)):
                active = [row for row, count in enumerate(batches) if step < count]
                for batch in sorted({width[row] for row in active}, reverse=True):
                    rows = [row for row in active if width[row] == batch]
                    chosen = np.stack([orders[row][step * batch : (step + 1) * batch] for row in rows])
                    entropy = self._batch_step(block, models, rows, chosen, job)
                    shares = torch.tensor([1 / batches[row] for row in rows], device=self.device)
                    total += (entropy * shares).sum()
            yield total

    def _batch_step(
        self,
        block: Block,
        models: dict[str, Tensor],
        rows: list[int],
        chosen: NDArray[np.int64],
        job: Training,
    ) -> Tensor:
        """One step of some of a block's clients on a batch each; returns their cross-entropies."""
        index = torch.tensor(rows, device=self.device)
        some = {name: value[index] for name, value in models.items()}
        leaves = {name: some[name].requires_grad_() for name in job.names}
        inputs, labels = block.batch(torch.from_numpy(chosen).to(self.device), index)
        logits = self.model.forward(some, inputs, keep_all).logits
        each = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        entropy = each.view_as(labels).mean(dim=1)
        objective = entropy.sum()
        numbers = [block.clients.start + row for row in rows]
        if job.loss is not None:
            for position, client in enumerate(numbers):
                one = {name: value[position : position + 1] for name, value in some.items()}
                objective = objective + job.loss(one, slice(client, client + 1)).sum()
        gradients = torch.autograd.grad(objective, list(leaves.values()))
        for position, client in enumerate(numbers):
            here = slice(position, position + 1)
            job.optimiser.step(
                job.names,
                [leaves[name][here] for name in job.names],
                [gradient[here] for gradient in gradients],
                slice(client, client + 1),
                job.decay,
            )
        with torch.no_grad():
            for name, value in some.items():
                models[name][index] = value
        return entropy.detach()
