"""The base class of all methods, whose hooks the engine calls.

All clients are handled at once. A *stack* maps a parameter's name to a tensor ``[clients, ...]``. The
engine calls, for every round,

    broadcast -> load -> (evaluate received) -> update -> (evaluate trained) -> aggregate

``load`` runs for every client. ``update`` and ``aggregate`` see the clients that take part in the round:
their stacks and messages have a row for each of these clients. A method holds the mathematics. Batches,
devices, bytes, attacks, storage and held-out labels belong to the engine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from bench import streams
from bench.data import FAMILIES, Family
from bench.engine.batch import Batch, Stack
from bench.engine.clients import Clients
from bench.federation.traffic import TrafficMeter
from bench.federation.types import Federation
from bench.hyper import HyperParameters
from bench.nn.base import ClientModel
from bench.nn.randomness import seeded
from bench.spec import RunSpec

__all__ = ["Batch", "Clients", "Message", "Method", "Stack", "Task", "Update"]


@dataclass(frozen=True, eq=False)
class Message:
    """Tensors with a row for each client: ``model`` has parameters by name, ``extras`` anything else by name.

    A message to all clients is expanded to one row per client, so that its bytes count for each client.

    Raises:
        ValueError: the tensors have different numbers of rows, or one carries a gradient.
    """

    model: Stack = field(default_factory=dict)
    extras: Mapping[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tensors = {**self.model, **self.extras}
        if len({value.shape[:1] for value in tensors.values()}) > 1:
            shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in tensors.items())
            raise ValueError(f"a message needs a row for every client in every tensor, got {shapes}")
        for name, value in tensors.items():
            if value.requires_grad:
                raise ValueError(f"a message gives {name} with a gradient: detach it")

    def of(self, clients: Tensor) -> Message:
        """Select the rows of some clients."""
        return Message(
            {name: value[clients] for name, value in self.model.items()},
            {name: value[clients] for name, value in self.extras.items()},
        )

    @property
    def bytes(self) -> int:
        """The size of all tensors together."""
        tensors = [*self.model.values(), *self.extras.values()]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@dataclass(frozen=True, eq=False)
class Update:
    """The result of the clients' part of a round: what clients keep, and what they upload."""

    keep: Stack
    upload: Message = field(default_factory=Message)


class Task:
    """Sizes, parameter names, random streams and initial models. There are no labels.

    Attributes:
        clients: the number of clients.
        rounds: the number of rounds.
        participation: the share of clients that take part in a round.
        newcomers: whether clients join after the last round.
        train_sizes: the numbers of training items, float32 ``[clients]``.
        shapes: the shape of every parameter that can be sent.
        parameters: the names of these parameters; ``head`` and ``backbone`` are the two parts.
        layers: the names by layer. A layer is a module of the client model, such as a weight and its
            bias.

    ``offset`` is the number of the first client. Clients that join later are numbered after the others.
    """

    def __init__(
        self,
        spec: RunSpec,
        model: ClientModel,
        train_sizes: Sequence[int],
        device: torch.device,
        offset: int = 0,
    ) -> None:
        self.clients = len(train_sizes)
        self.rounds = spec.protocol.rounds
        self.participation = spec.protocol.participation
        self.newcomers = spec.newcomers is not None
        self.device = device
        self.train_sizes = torch.tensor(train_sizes, dtype=torch.float32, device=device)
        self.shapes = {name: shape for name, shape in model.shapes.items() if name not in model.buffers}
        self.parameters = tuple(self.shapes)
        self.head = tuple(name for name in self.parameters if name in model.head)
        self.backbone = tuple(name for name in self.parameters if name not in model.head)
        self.layers: dict[str, tuple[str, ...]] = {}
        for name in self.parameters:
            layer = name.rpartition(".")[0] or name
            self.layers[layer] = (*self.layers.get(layer, ()), name)
        self._initial = spec.protocol.initial
        self._seed = spec.seed
        self._offset = offset
        self._model = model

    def generator(self, *key: str | int) -> torch.Generator:
        """A torch generator on the CPU for the server's randomness. The key says what it is for."""
        return torch.Generator().manual_seed(streams.torch_seed(self._seed, "server", *key))

    def seeded(self, *key: str | int) -> AbstractContextManager[None]:
        """Draw initial weights of networks built in the ``with`` block from the stream with this key."""
        return seeded(streams.torch_seed(self._seed, "server", *key))

    def common(self) -> dict[str, Tensor]:
        """One random model for all clients, ``[clients, ...]`` without copies, with buffers."""
        parameters = self._model.initial(streams.generator(self._seed, "initial", "common"))
        return {
            name: torch.from_numpy(value).to(self.device).expand(self.clients, *value.shape)
            for name, value in parameters.items()
        }

    def own(self) -> dict[str, Tensor]:
        """A random model for every client, ``[clients, ...]``."""
        draws = [
            self._model.initial(streams.generator(self._seed, "initial", client))
            for client in range(self._offset, self._offset + self.clients)
        ]
        return {
            name: torch.from_numpy(np.stack([draw[name] for draw in draws])).to(self.device)
            for name in draws[0]
        }

    def initial(self) -> dict[str, Tensor]:
        """The models that clients start with, according to ``protocol.initial``."""
        return self.own() if self._initial == "own" else self.common()


class Method:
    """A federated algorithm. The registry finds every subclass with a ``name`` of its own.

    Attributes:
        title: the name in tables.
        reference: the paper.
        families: the families of data that the method runs on.
        client_models: the client models that it runs on; empty for any.
        settings: settings that are part of the algorithm, such as ``{"client.model": "sage"}``. They replace
            the data set's settings. A request replaces them.
        numerics: the version of the method's numbers. Raise it when a change alters them: older runs then
            show as stale.
        trains: False ends a run after one round.
        stage: the model that the method deploys, ``received`` or ``trained``. A subclass that sets only a
            name, a title and a stage shows this stage of its base's runs.
        derived: names of attributes that are not saved with a run, since setting it up makes them again.
        predicts_with: names of attributes that ``logits`` reads in addition to the models and that change
            over rounds.
        round: the round that is running, set by the engine; -1 before the first round.

    An instance's attributes are the server's: hooks of clients cannot set them. They are saved with a run,
    and must be numbers, text, tensors, networks, optimisers, generators, or lists, tuples and dicts of these.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[str] = ""
    families: ClassVar[tuple[Family, ...]] = FAMILIES
    client_models: ClassVar[tuple[str, ...]] = ()
    settings: ClassVar[Mapping[str, Any]] = {}
    numerics: ClassVar[int] = 1
    trains: ClassVar[bool] = True
    stage: ClassVar[str] = "trained"
    derived: ClassVar[frozenset[str]] = frozenset()
    predicts_with: ClassVar[tuple[str, ...]] = ()

    Hyper: ClassVar[type[HyperParameters]] = HyperParameters

    def __init_subclass__(cls) -> None:
        """Refuse names of version 0.2.0: nothing uses them now, and numbers would change in silence."""
        super().__init_subclass__()
        for name in {"adapt", "warm_up", "enrol", "artefacts", "client", "protocol"} & vars(cls).keys():
            raise TypeError(f"{cls.__name__}.{name} is used no more: docs/extending.md has what is")

    def __init__(self, task: Task, hyper: HyperParameters) -> None:
        self.task = task
        self.hyper = hyper
        self.round = -1
        self.records: dict[str, Tensor] = {}
        self.records_by_round: dict[str, dict[int, Tensor]] = {}
        self.setup_server()

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute. While a hook of clients runs that is an ``AttributeError``."""
        if "clients_turn" in vars(self):
            raise AttributeError(
                f"a hook of clients sets '{name}' of the server: upload what the server shall know, and keep "
                "what clients keep by add_parameters() or clients.note()"
            )
        super().__setattr__(name, value)

    @contextmanager
    def as_clients(self) -> Iterator[None]:
        """Refuse to set attributes within the ``with`` block."""
        vars(self)["clients_turn"] = True
        try:
            yield
        finally:
            del vars(self)["clients_turn"]

    def setup_server(self) -> None:
        """Set up the server's state from ``self.task``. Default: none."""

    def prepare_data(self, federation: Federation, traffic: TrafficMeter) -> Federation:
        """The data that every client feeds its model. Default: its own data.

        Methods that exchange something before training (completed hyperedges, mended graphs) do it here,
        and ``traffic`` counts it. Held-out labels are -1 in the federation that is given. The engine does
        not read labels of the federation that is returned.
        """
        return federation

    def add_parameters(self, models: Stack) -> Stack:
        """Add the method's own parameters, such as masks, to what clients keep. Default: none."""
        return models

    def first_upload(self, clients: Clients, models: Stack, traffic: TrafficMeter) -> Update:
        """Do the clients' work before the first round, and return their upload. Default: nothing.

        The engine counts the upload. ``traffic`` counts what is exchanged in addition.
        """
        return Update(models)

    def receive_first(self, message: Message) -> None:
        """Receive the clients' first uploads at the server. Default: do nothing."""

    def shared(self) -> Collection[str]:
        """The names of the parameters that ``upload`` sends. Default: all of the client model's."""
        return self.task.parameters

    def broadcast(self) -> Message:
        """Return the server's message to every client for a round. Parameters may be left out."""
        return Message()

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        """The models that clients start a round with. Default: parameters that are sent replace their own."""
        return {**own, **message.model}

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """The clients' part of a round. Default: local epochs on the received model."""
        return self.upload(clients.fit(received))

    def upload(self, trained: Stack, **extras: Tensor) -> Update:
        """Keep everything that was trained, and send the ``shared`` parameters with some ``extras``."""
        return Update(trained, Message({name: trained[name] for name in self.shared()}, extras))

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """The server's part of a round.

        Args:
            participants: the clients that took part, int64 ``[p]``, ascending.
            received: the models that they received; only parameters whose names the upload has, too.
            upload: the message that they sent. Both have a row for each participant.
        """

    def logits(self, models: Stack, batch: Batch) -> Tensor:
        """Predictions ``[c, items, classes]`` of the clients' kept models. Default: the client model's."""
        return batch.forward(models).logits

    def onboard(self, newcomers: Clients, message: Message) -> Message:
        """Return the message to clients that the server has never seen, when it no longer learns.

        ``message`` is their first upload. Parameters that are left out stay the newcomers' own. A class
        does not inherit this hook: runs with newcomers are refused unless the class defines it, as by
        ``onboard = FedAvg.onboard``.
        """
        raise NotImplementedError

    def record(self, **values: Tensor) -> None:
        """Keep arrays with the run, such as a collaboration matrix ``[clients, clients]``.

        The last value of a name is kept. If the name ends in ``_by_round``, the values of all rounds are
        kept and stacked.
        """
        for name, value in values.items():
            if name.endswith("_by_round"):
                self.records_by_round.setdefault(name, {})[self.round] = value.float()
            else:
                self.records[name] = value
