"""The base class of all methods, whose hooks the engine calls.

All clients are handled at once. A *stack* maps a parameter's name to a tensor ``[clients, ...]``. The
engine calls, for every round,

    broadcast -> load -> (evaluate received) -> update -> (evaluate trained) -> aggregate

``load`` runs for every client. ``update`` and ``aggregate`` see the clients that take part in the round:
their stacks and messages have a row for each of these clients. A method holds the mathematics. Batches,
devices, bytes, attacks, storage and held-out labels belong to the engine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from torch import Tensor

from bench.data import FAMILIES, Family
from bench.engine.batch import Batch, Stack
from bench.engine.clients import Clients
from bench.engine.message import Message, Update
from bench.engine.task import Task
from bench.federation.traffic import TrafficMeter
from bench.federation.types import Federation
from bench.hyper import HyperParameters

__all__ = ["Batch", "Clients", "Message", "Method", "Stack", "Update"]


FORMER_HOOKS = {
    "adapt": "a part of load()",
    "warm_up": "first_upload()",
    "enrol": "receive_first()",
    "artefacts": "record(), called where a value is known",
}
"""Hooks of version 0.2.0 -> what does the same."""


class Method:
    """A federated algorithm. The registry finds every subclass with a ``name`` of its own.

    Attributes:
        title: the name in tables.
        reference: the paper.
        families: the families of data that the method runs on.
        client_models: the client models that it runs on; empty for any.
        client: client settings that are part of the algorithm, such as a GraphSAGE. They replace the data
            set's settings. A request replaces them.
        protocol: settings of the protocol that are part of the algorithm, in the same way.
        numerics: the version of the method's numbers. Raise it when a change alters them: older runs then
            show as stale.
        trains: False ends a run after one round.
        reads: the method whose runs this one reports another stage of.
        stage: the model that the method deploys, ``received`` or ``trained``.
        derived: names of attributes that are not saved with a run, since setting it up makes them again.
        predicts_with: names of attributes that ``logits`` reads in addition to the models and that change
            over rounds.
        round: the round that is running, set by the engine; -1 before the first round.

    An instance's attributes are the server's. Hooks of clients (``first_upload``, ``load``, ``update``)
    cannot set them. They are saved with a run, and must be numbers, text, tensors, networks, optimisers,
    generators, or lists, tuples and dicts of these.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[str] = ""
    families: ClassVar[tuple[Family, ...]] = FAMILIES
    client_models: ClassVar[tuple[str, ...]] = ()
    client: ClassVar[Mapping[str, Any]] = {}
    protocol: ClassVar[Mapping[str, Any]] = {}
    numerics: ClassVar[int] = 1
    trains: ClassVar[bool] = True
    reads: ClassVar[str | None] = None
    stage: ClassVar[str] = "trained"
    derived: ClassVar[frozenset[str]] = frozenset()
    predicts_with: ClassVar[tuple[str, ...]] = ()

    Hyper: ClassVar[type[HyperParameters]] = HyperParameters

    def __init_subclass__(cls) -> None:
        """Check the names of hooks.

        Raises:
            TypeError: the class has a hook of version 0.2.0 that nothing calls any more, which would change
                numbers in silence.
        """
        super().__init_subclass__()
        for name in FORMER_HOOKS.keys() & vars(cls).keys():
            raise TypeError(f"{cls.__name__}.{name}() is not called any more: it is {FORMER_HOOKS[name]} now")

    def __init__(self, task: Task, hyper: HyperParameters) -> None:
        self.task = task
        self.hyper = hyper
        self.round = -1
        self.records: dict[str, Tensor] = {}
        self.records_by_round: dict[str, dict[int, Tensor]] = {}
        self.setup_server()

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute.

        Raises:
            AttributeError: a hook of clients is running.
        """
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
        """Add the method's own parameters, such as masks or second models, to what clients keep. Default:
        none.
        """
        return models

    def first_upload(self, clients: Clients, models: Stack, traffic: TrafficMeter) -> Update:
        """What all clients do and upload before the first round. Default: nothing.

        The engine counts the upload. ``traffic`` counts what is exchanged in addition.
        """
        return Update(models)

    def receive_first(self, message: Message) -> None:
        """Receive the clients' first uploads at the server. Default: do nothing."""

    def shared(self) -> Collection[str]:
        """The names of the parameters that ``upload`` sends. Default: all of the client model's."""
        return self.task.parameters

    def broadcast(self) -> Message:
        """What the server sends every client at the start of a round. Parameters may be left out."""
        return Message()

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        """The models that clients start a round with. Default: parameters that are sent replace the clients'
        own.
        """
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
            received: the models that they received, as far as the upload has parameters of the same name.
            upload: what they sent. Both have a row for each participant.
        """

    def logits(self, models: Stack, batch: Batch) -> Tensor:
        """Predictions ``[c, items, classes]`` from what clients keep. Default: those of the client model."""
        return batch.forward(models).logits

    def onboard(self, newcomers: Clients, message: Message) -> Message:
        """What the server sends clients that it has never seen, once it no longer learns.

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
