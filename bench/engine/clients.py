"""The clients as a method sees them: stacked, in blocks, with training labels only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from bench import streams
from bench.engine.batch import Adjustment, Batch, Block, Objective, Stack, cross_entropy
from bench.engine.local_training import Items, Training, UnreadRows, mini_batches, with_dropout
from bench.engine.optimiser import Optimiser, OptimiserState
from bench.engine.stacks import replaced
from bench.errors import DivergedError
from bench.federation.types import Client
from bench.nn.base import ClientModel, Inputs
from bench.spec import RunSpec

AfterEpoch = Callable[[int, Batch, Stack], None]
"""Called with the epoch, a block's items in evaluation mode, and the block's models."""


class Clients:
    """Clients that are trained together: all clients of a run, or those that take part in a round.

    Attributes:
        count: the number of clients.
        rows: their rows in a stack of all clients of the run, int64 ``[count]``.
        numbers: their numbers in the run, which name their random streams.
        training: the positions of every client's training items.
        loss: the mean loss (``Batch.logged``) of the last ``fit``, over epochs and clients.
    """

    def __init__(
        self,
        spec: RunSpec,
        model: ClientModel,
        members: Sequence[Client],
        classes: int,
        device: torch.device,
        block_size: int,
        offset: int = 0,
        part_of: tuple[Clients, Tensor] | None = None,
    ) -> None:
        self.spec = spec
        self.model = model
        self.members = members
        self.classes = classes
        self.count = len(members)
        self.device = device
        self.block_size = block_size
        self._root: Clients = part_of[0] if part_of else self
        self.rows = part_of[1] if part_of else torch.arange(self.count, device=device)
        numbers = self._root.numbers if part_of else list(range(offset, offset + self.count))
        self.numbers: list[int] = [numbers[row] for row in self.rows.tolist()]
        self.blocks = [
            Block(model, members[rows], rows.start, classes, device, self.numbers[rows])
            for rows in (slice(start, start + block_size) for start in range(0, self.count, block_size))
        ]
        self.training = [items for block in self.blocks for items in block.training]
        self.loss = float("nan")
        self.after_epoch: AfterEpoch | None = None
        self._round = -1
        self._passes = 0.0
        self._calls = 0
        self._optimisers: dict[str, OptimiserState] = {}
        self._notes: dict[str, dict[int, Any]] = {}
        self._log: dict[str, dict[int, Tensor]] = {}
        self._common: dict[tuple[Client, int], Inputs] = {}
        self._unread: UnreadRows | None = None

    @property
    def round(self) -> int:
        """The round that is running; -1 before the first round."""
        return self._root._round

    @property
    def passes(self) -> float:
        """How often ``fit`` has gone over a client's training items, as a mean over the run's clients."""
        return self._root._passes

    def begin_round(self, round: int) -> None:
        """Begin a round. Its number is a part of the random streams' names."""
        self._round, self._calls = round, 0

    def some(self, rows: Tensor) -> Clients:
        """Select clients by their rows. Stacks then have one row for each of these clients.

        A client keeps its optimiser: a fit of some clients counts for later fits of all clients, too.
        """
        if len(rows) == self.count:
            return self
        members = [self.members[row] for row in rows.tolist()]
        whole = self._root, self.rows[rows]
        part = type(self)(
            self.spec, self.model, members, self.classes, self.device, self.block_size, part_of=whole
        )
        part.after_epoch = self.after_epoch
        return part

    def state(self) -> dict[str, Any]:
        """Return the state of local training for a checkpoint."""
        return {
            "passes": self._passes,
            "optimisers": {name: optimiser.state() for name, optimiser in self._optimisers.items()},
            "notes": self._notes,
            "log": self._log,
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continue from a result of ``state``."""
        self._passes = state["passes"]
        for name, optimiser in state["optimisers"].items():
            self._optimisers[name] = OptimiserState(self.count)
            self._optimisers[name].resume(optimiser)
        self._notes, self._log = state["notes"], state["log"]

    def noted(self, name: str) -> list[Any]:
        """The value that every client has noted under a name, or None."""
        notes = self._root._notes.get(name, {})
        return [notes.get(number) for number in self.numbers]

    def note(self, name: str, values: Sequence[Any]) -> None:
        """Note a value for every client. It is there in later rounds, and is saved with the run."""
        self._root._notes.setdefault(name, {}).update(zip(self.numbers, values, strict=True))

    def log(self, **values: Tensor) -> None:
        """Keep one number of every client ``[clients]`` with the run, by round; NaN for absent clients."""
        for name, value in values.items():
            rounds = self._root._log.setdefault(name, {})
            row = rounds.get(self.round, value.new_full((self._root.count,), torch.nan))
            rounds[self.round] = replaced(row, self.rows, value)

    def logged(self) -> dict[str, Tensor]:
        """Everything that was logged, ``[rounds, clients]`` by name."""
        return {name: torch.stack(list(rounds.values())) for name, rounds in self._log.items()}

    @property
    def optimiser(self) -> Optimiser:
        """The optimiser according to the client settings of the run."""
        settings = self.spec.client
        return Optimiser(settings.optimizer, settings.learning_rate, settings.weight_decay)

    def generators(self, purpose: str) -> list[np.random.Generator]:
        """A random stream for each client, keyed by the run's seed, the purpose, the client and the round."""
        return [streams.generator(self.spec.seed, purpose, number, self.round) for number in self.numbers]

    def fit(
        self,
        stack: Stack,
        *,
        objective: Objective = cross_entropy,
        adjust: Adjustment | None = None,
        trainable: Collection[str] | None = None,
        epochs: int | None = None,
        items: Items | None = None,
        optimiser: Optimiser | None = None,
        new_optimiser: bool = False,
        copy: str = "model",
    ) -> Stack:
        """Train every client on its own training items, starting from ``stack``.

        Args:
            stack: parameters ``[clients, ...]``, which stay unchanged. It may have parameters for
                ``objective`` that the client model does not know.
            objective: the loss ``[c]`` of a batch; by default the client model's cross-entropy.
            adjust: changes the gradients of a step in place. A penalty with a known gradient costs less
                this way than in the objective.
            trainable: the names of the parameters to train; by default all.
            epochs: the number of local epochs; by default the protocol's.
            items: for every client the positions of the training items to use; by default all. A client
                without any takes no step.
            optimiser: the rule of a step; by default as the client settings say.
            new_optimiser: start with an optimiser that has taken no step, and do not keep its state.
            copy: names the models that are trained. Models of another purpose, such as a personal copy, need
                a name of their own, since the optimiser belongs to the name.

        Raises:
            DivergedError: a training loss is not finite.
            ValueError: nothing is trainable.
        """
        epochs = self.spec.protocol.local_epochs if epochs is None else epochs
        names = [
            name
            for name in stack
            if name not in self.model.buffers and (trainable is None or name in trainable)
        ]
        if not names:
            raise ValueError("fit: trainable names no parameter of the model")
        state = OptimiserState(self._root.count) if new_optimiser else self._optimiser_state(copy)
        training = Training(
            client=self.spec.client,
            stream=self._stream,
            state=state,
            rows=None if self._root is self else self.rows,
            optimiser=optimiser or self.optimiser,
            names=names,
            epochs=epochs,
            objective=objective,
            adjust=adjust,
            items=items,
        )
        after_epoch = None
        if copy == "model":
            after_epoch, self.after_epoch = self.after_epoch, None
        unread = self._unread_rows(stack, training) if after_epoch is None else None
        if unread is None:
            state.settle()
        target = {name: value.new_empty(value.shape) for name, value in stack.items()}
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for block in self.blocks:
            parameters = {name: target[name][block.rows] for name in stack}
            for name, value in parameters.items():
                if unread is None or name != unread.name:
                    value.copy_(stack[name][block.rows])
            for epoch, loss in enumerate((unread or training).losses(block, parameters)):
                total += loss
                if after_epoch is not None:
                    after_epoch(epoch, block.evaluation, parameters)
        self._count(epochs, items)
        self.loss = float(total) / (self.count * max(epochs, 1))
        if not np.isfinite(self.loss):
            raise DivergedError("a training loss is not finite")
        return target

    def _unread_rows(self, stack: Stack, training: Training) -> UnreadRows | None:
        """Return the trainer of the first matrix's unread rows for all clients; None if clients differ."""
        name = self.model.first_matrix
        if self._root is not self or name not in stack or not training.are_alike(stack[name], name):
            return None
        if self._unread is None:
            self._unread = UnreadRows(name, self.blocks)
        return self._unread if self._unread.begin(training, stack[name][0]) else None

    def batches(self, items: Items) -> Iterator[Batch]:
        """Go over some training items of every client once, for methods that take steps themselves.

        Batches are in training mode. Mini-batches follow the order of the items. The last one has the
        items that are left over, if there are two or more.
        """
        size = self.spec.client.batch_size
        for block in self.blocks:
            some = items[block.rows]
            if size is None:
                batches = iter([with_dropout(block, self.spec.client, self._stream, 1, some)[0]])
            else:
                batches = (batch for _, batch in mini_batches(block, some, size, short_batch=True))
            yield from batches
        self._count(1, items)

    def _count(self, epochs: int, items: Items | None) -> None:
        """Count a fit and its passes over the items. The number of fits names random streams."""
        passes = float(epochs)
        if items is not None:
            pairs = zip(items, self.training, strict=True)
            passes *= float(np.mean([len(part) / max(len(items), 1) for part, items in pairs]))
        self._root._calls += 1
        self._root._passes += passes * self.count / self._root.count

    def _optimiser_state(self, copy: str) -> OptimiserState:
        """The optimisers of all clients of the run for a copy; new in every round if the settings say so."""
        root = self._root
        state = root._optimisers.get(copy)
        is_reset = self.spec.client.optimizer_state == "reset"
        if state is None or (is_reset and state.round != self.round):
            state = root._optimisers[copy] = OptimiserState(root.count)
        state.round = self.round
        return state

    @overload
    def reduce(self, stack: Stack, of: Callable[[Stack, Batch], Tensor]) -> Tensor: ...
    @overload
    def reduce(self, stack: Stack, of: Callable[[Stack, Batch], dict[str, Tensor]]) -> dict[str, Tensor]: ...
    def reduce(
        self, stack: Stack, of: Callable[[Stack, Batch], Tensor | dict[str, Tensor]]
    ) -> Tensor | dict[str, Tensor]:
        """Compute a statistic of every client, ``[clients, ...]``, in evaluation mode and without gradients.

        ``of`` maps the models of some clients and all their items to a tensor ``[c, ...]``, such as class
        means, or to several tensors by name.
        """
        with torch.no_grad():
            parts: list[Any] = [of(block.evaluation.of(stack), block.evaluation) for block in self.blocks]
        if isinstance(parts[0], Tensor):
            return torch.cat(parts)
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def embeddings(self, stack: Stack, on: Client | None = None) -> Tensor:
        """The mean embedding over all items of every client in evaluation mode, ``[clients, width]``.

        With ``on``, all models are evaluated on that client's data, which are laid out once.
        """
        common = self._root._common

        def mean(models: Stack, batch: Batch) -> Tensor:
            inputs, count = batch.inputs, len(batch.block.lengths)
            if on is not None:
                if (on, count) not in common:
                    common[on, count] = self.model.collate_common(on, count, self.device)
                inputs = common[on, count]
            embedding = self.model.embed(models, inputs, None)
            mask = torch.arange(inputs.items, device=self.device)[None, :] < inputs.lengths[:, None]
            return (embedding * mask[:, :, None]).sum(dim=1) / inputs.lengths[:, None]

        return self.reduce(stack, mean)

    def _stream(self, purpose: str, row: int, *indices: int) -> np.random.Generator:
        key: tuple[str | int, ...] = (purpose, self.numbers[row], self.round, self._root._calls, *indices)
        return streams.generator(self.spec.seed, *key)
