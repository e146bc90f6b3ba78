"""The seam for methods: what a federated algorithm is to the engine.

All clients are handled at once. A *stack* maps a parameter's name to a tensor ``[clients, ...]``.
The engine calls, for every round,

    broadcast -> load -> (evaluate received) -> update -> (evaluate trained) -> aggregate

where ``load`` runs for every client, and ``update`` and ``aggregate`` see the clients that take part in
the round: their stacks and messages have a row for each of them. A method holds mathematics;
batches, devices, bytes, attacks, storage and held-out labels are the engine's.
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
from bench.spec import STAGES

__all__ = ["Batch", "Clients", "Message", "Method", "Stack", "Update"]


class Method:
    """A federated algorithm. A subclass with a ``name`` of its own is found by the registry.

    Class attributes: ``title`` for tables; ``reference`` the paper; ``families`` of data it runs
    on; ``client_models`` those whose layers it works on, where not any will do; ``client`` and
    ``protocol`` the settings that are part of the algorithm (a GraphSAGE, one initial model for all), which
    replace the data set's but not the request's; ``numerics`` is raised when a change alters the
    method's numbers, so that older runs show as stale; ``trains`` False ends a run after one round;
    ``reads`` names the method whose run this one reports another stage of; ``stage`` is the model that
    the method deploys;
    ``derived`` names attributes that a run which is set up anew has again without a checkpoint;
    ``predicts_with`` names the attributes that ``logits`` reads in addition to the models, and that change
    over rounds; ``prolongable``: a run can be continued to more rounds and gives the same numbers as a longer
    run.

    The engine sets ``round`` at the start of every round; before the first one it is -1.

    Attributes are the server's. Hooks of clients (``first_upload``, ``load``, ``update``) set none of them.
    What an instance keeps in attributes is saved with a run, and has to be numbers, text, tensors,
    networks, optimisers, generators, or lists, tuples and dicts of them.
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
    prolongable: ClassVar[bool] = True

    Hyper: ClassVar[type[HyperParameters]] = HyperParameters

    def __init_subclass__(cls) -> None:
        """Raises ``TypeError`` for a stage, hyper-parameters or families that are none."""
        super().__init_subclass__()
        if cls.stage not in STAGES:
            raise TypeError(f"stage of {cls.__name__}: expected {' or '.join(STAGES)}, got {cls.stage!r}")
        if not (isinstance(cls.Hyper, type) and issubclass(cls.Hyper, HyperParameters)):
            raise TypeError(f"Hyper of {cls.__name__} has to extend HyperParameters")
        if isinstance(cls.families, str):
            raise TypeError(f"families of {cls.__name__}: expected a tuple of names, got {cls.families!r}")

    def __init__(self, task: Task, hyper: HyperParameters) -> None:
        self.task = task
        self.hyper = hyper
        self.round = -1
        self.records: dict[str, Tensor] = {}
        self.records_by_round: dict[str, dict[int, Tensor]] = {}
        self.setup_server()

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; raises ``AttributeError`` while a hook of clients is running."""
        if "clients_turn" in vars(self):
            raise AttributeError(
                f"a hook of clients sets '{name}' of the server: upload what the server shall know, and keep "
                "what clients keep by add_parameters() or clients.note()"
            )
        super().__setattr__(name, value)

    @contextmanager
    def as_clients(self) -> Iterator[None]:
        """Meanwhile no attribute can be set."""
        vars(self)["clients_turn"] = True
        try:
            yield
        finally:
            del vars(self)["clients_turn"]

    def setup_server(self) -> None:
        """Set up the server's state from ``self.task``. Default: none."""

    def prepare_data(self, federation: Federation, traffic: TrafficMeter) -> Federation:
        """What every client feeds its model: its own data by default.

        Methods that exchange something before training (completed hyperedges, mended graphs) do
        it here and have ``traffic`` count it. Held-out labels are -1 in the federation that comes and
        are not read from the one that is returned.
        """
        return federation

    def add_parameters(self, models: Stack) -> Stack:
        """What clients keep at the start: a method adds parameters of its own (masks, second models)."""
        return models

    def first_upload(self, clients: Clients, models: Stack, traffic: TrafficMeter) -> Update:
        """What all clients do and upload before the first round. Default: nothing.

        The upload is counted. Have ``traffic`` count whatever else is exchanged.
        """
        return Update(models)

    def receive_first(self, message: Message) -> None:
        """The server receives the first uploads. Default: nothing."""

    def shared(self) -> Collection[str]:
        """Names of the parameters that ``upload`` sends. Default: the client model's."""
        return self.task.parameters

    def broadcast(self) -> Message:
        """What the server sends every client at the start of a round; may leave parameters out."""
        return Message()

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        """The models that clients start a round with. Default: what they are sent replaces what they keep."""
        return {**own, **message.model}

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Client side of a round. Default: local epochs on the received model."""
        return self.upload(clients.fit(received))

    def upload(self, trained: Stack, **extras: Tensor) -> Update:
        """Clients keep what they trained, and send what of it is ``shared`` with some ``extras``."""
        return Update(trained, Message({name: trained[name] for name in self.shared()}, extras))

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Server side of a round.

        ``participants`` int64 ``[p]``, ascending, are the clients that took part; ``received`` (what of
        their received models is uploaded by name) and ``upload`` have a row for each of them.
        """

    def logits(self, models: Stack, batch: Batch) -> Tensor:
        """Predictions ``[c, items, classes]`` from what clients keep. Default: the client model's."""
        return batch.forward(models).logits

    def onboard(self, newcomers: Clients, message: Message) -> Message:
        """What the server, which no longer learns, sends clients that it has never seen.

        ``message`` is their first upload; what is left out is completed from their own models. A class
        does not inherit it: runs with newcomers are refused unless the class itself defines the hook, as
        by ``onboard = FedAvg.onboard``.
        """
        raise NotImplementedError

    def record(self, **values: Tensor) -> None:
        """Keep arrays with the run, such as a collaboration matrix ``[clients, clients]``.

        The last value of a name is kept. Where the name ends in ``_by_round``, the value of every round is
        kept, and they are stacked.
        """
        for name, value in values.items():
            if name.endswith("_by_round"):
                self.records_by_round.setdefault(name, {})[self.round] = value.float()
            else:
                self.records[name] = value
