"""The seam for methods: what a federated algorithm is to the engine.

All clients are handled at once. A *stack* maps a parameter's name to a tensor ``[clients, ...]``.
The engine calls, for every round,

    broadcast -> load -> adapt -> (evaluate received) -> update -> (evaluate trained) -> aggregate

where ``load`` and ``adapt`` run for every client, and ``update`` and ``aggregate`` see the clients that
take part in the round: their stacks and messages have a row for each of them. A method holds mathematics;
batches, devices, bytes, attacks, storage and held-out labels are the engine's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
    ``predicts_with`` those that ``logits`` reads beside the models, and that change over rounds.
    ``prolongable``: a run can be continued to more rounds and gives the same numbers as a longer run.

    The engine sets ``round`` at the start of every round; before the first one it is -1.

    Whatever else an instance keeps in attributes is saved with a run, and has to be numbers, text,
    tensors, networks, optimisers, generators, or lists, tuples and dicts of them.
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
        if "onboard" not in vars(cls) and vars(cls).keys() & {"prepare_data", "broadcast", "load"}:
            cls.onboard = Method.onboard  # type: ignore[method-assign]
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
        self.setup_server()

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

    def warm_up(self, clients: Clients, models: Stack) -> Update:
        """What all clients do and upload before the first round. Default: nothing."""
        return Update(models)

    def enrol(self, message: Message) -> None:
        """Server side of the warm-up. Default: nothing."""

    def shared(self) -> Collection[str]:
        """Names of the parameters that ``upload`` sends. Default: the client model's."""
        return self.task.parameters

    def broadcast(self, round: int) -> Message:
        """What the server has for every client at the start of a round; may leave parameters out."""
        return Message()

    def load(self, own: Stack, message: Message) -> Stack:
        """What clients make of what they keep and of what they are sent. Default: replace."""
        return {**own, **message.model}

    def adapt(self, clients: Clients, received: Stack, message: Message) -> Stack:
        """What clients do with their data to a model that they have loaded. Default: nothing."""
        return received

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

        ``message`` is theirs after their warm-up; what is left out is completed from their own models.
        It is inherited unless a class changes what clients are sent or what they make of it
        (``prepare_data``, ``broadcast``, ``load``). A run with newcomers of a method without it is refused.
        """
        raise NotImplementedError

    def artefacts(self) -> dict[str, Tensor]:
        """Arrays kept with the run, such as the last collaboration matrix ``[clients, clients]``
        or ``[layers, clients, clients]``. Default: none."""
        return {}
