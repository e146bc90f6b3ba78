"""The seam for methods: what a federated algorithm is to the engine.

All clients are handled at once. A *stack* maps a parameter's name to a tensor ``[clients, ...]``.
The engine calls, for every round,

    send -> (evaluate received) -> train -> report -> (evaluate trained) -> collect

and completes what ``send`` leaves out (a head that stays at its client) from the client's own
model. A method holds mathematics; batches, devices, bytes, attacks, storage and held-out labels
are the engine's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from bench.data import FAMILIES, Family
from bench.errors import NotApplicableError
from bench.federation.types import Federation
from bench.hyper import HyperParameters

if TYPE_CHECKING:
    from bench.engine.clients import Block, Clients
    from bench.engine.task import Task, Wire

Stack = Mapping[str, Tensor]
"""Parameter name -> tensor ``[clients, ...]``."""


class Method:
    """A federated algorithm. A subclass with a ``name`` of its own is found by the registry.

    Class attributes: ``title`` for tables; ``reference`` the paper; ``families`` of data it runs
    on; ``client_models`` those whose layers it works on, where not any will do; ``client`` the
    client settings that are part of the algorithm (a GraphSAGE), which replace the data set's but
    not the request's; ``numerics`` is raised when a change alters the method's numbers, so that
    older runs show as stale; ``trains`` False ends a run after one round; ``reads`` names the method
    whose run this one reports another stage of; ``stage`` is the model that the method deploys.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[str] = ""
    families: ClassVar[tuple[Family, ...]] = FAMILIES
    client_models: ClassVar[tuple[str, ...]] = ()
    client: ClassVar[Mapping[str, Any]] = {}
    numerics: ClassVar[int] = 1
    trains: ClassVar[bool] = True
    reads: ClassVar[str | None] = None
    stage: ClassVar[str] = "trained"

    Hyper: ClassVar[type[HyperParameters]] = HyperParameters

    def __init__(self, task: Task, hyper: HyperParameters) -> None:
        self.task = task
        self.hyper = hyper
        self.start()

    def start(self) -> None:
        """Set up the server's state from ``self.task``. Default: none."""

    def inputs(self, federation: Federation, wire: Wire) -> Federation:
        """What every client feeds its model: its own data by default.

        Methods that exchange something before training (completed hyperedges, mended graphs) do
        it here, through ``wire``. Held-out labels are -1 in the federation that comes and are not
        read from the one that is returned.
        """
        return federation

    def extend(self, models: Stack) -> Stack:
        """The clients' initial models; a method adds parameters of its own (masks, gates) here."""
        return models

    def warm_up(self, clients: Clients, models: Stack) -> Stack:
        """What the clients do before the first round; returns their models. Default: nothing."""
        return models

    def shared(self) -> Collection[str]:
        """Names of the parameters that a client uploads. Default: all of them."""
        return self.task.parameters

    def send(self, round: int) -> Stack:
        """What the server sends every client at the start of a round; may leave parameters out."""
        return {}

    def receive(self, own: Stack, sent: Stack) -> Stack:
        """What clients make of their own model and of what they are sent. Default: replace."""
        return {**own, **sent}

    def train(self, clients: Clients, received: Stack) -> Stack:
        """Client side of a round. Default: local epochs on the received model."""
        return clients.fit(received)

    def report(self, clients: Clients, trained: Stack) -> Tensor | None:
        """What a client sends besides its model, ``[clients, ...]``; called after a warm-up, too."""
        return None

    def enrol(self, reports: Tensor | None) -> None:
        """Server side of the warm-up: the first reports. Default: nothing."""

    def collect(self, received: Stack, trained: Stack, reports: Tensor | None) -> None:
        """Server side of a round; both stacks hold the shared parameters only."""

    def logits(self, models: Stack, block: Block) -> Tensor:
        """Predictions ``[clients of the block, items, classes]``. Default: the client model's."""
        return block.forward(models).logits

    def refuses_newcomers(self) -> str:
        """Why the server has nothing for clients that it has never seen; empty where it has."""
        unwelcome = type(self).welcome is Method.welcome
        return f"{self.name} has nothing for clients that it has never seen" if unwelcome else ""

    def welcome(self, newcomers: Clients, reports: Tensor | None) -> Stack:
        """What the server, which no longer learns, sends clients that it has never seen.

        ``reports`` are theirs after their warm-up; what is left out is completed from their own models.
        Methods that do not say it are not asked (``refuses_newcomers``).
        """
        raise NotApplicableError(self.refuses_newcomers())

    def artefacts(self) -> dict[str, Tensor]:
        """Arrays kept with the run, such as the last collaboration matrix. Default: none."""
        return {}
