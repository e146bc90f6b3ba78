"""A method under test: its toy federations, and the runs for the rules.

The client model and the number of rounds are small.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

from bench.contract.toys import linked, make_spec, play, random_federation, random_images
from bench.data import FAMILIES, Family
from bench.engine.execute import run
from bench.engine.method import Method
from bench.engine.methods import METHODS
from bench.engine.result import RunResult
from bench.engine.run import Run
from bench.federation.types import Federation
from bench.spec import RunSpec

SIZES = (24, 40, 9, 31)
HIDDEN = 8
ROUNDS = 3


CLIENT: dict[Family, dict[str, Any]] = {
    "graph": {},
    "hypergraph": {"model": "hgnn"},
    "images": {
        "model": "cnn",
        "batch_size": 8,
        "dropout": 0.0,
        "optimizer": "sgd",
        "learning_rate": 0.05,
        "weight_decay": 0.0,
    },
}
"""The client settings for the toys of every family."""


SHORT = {"warm_up_epochs": 5, "generator_epochs": 2, "federated_epochs": 2}
"""Hyper-parameters that shorten the work before the first round, for methods that have them."""


def families(kind: type[Method]) -> list[Family]:
    """The families that a method is checked on: graphs, or else hypergraphs; and images."""
    left_out = {"hypergraph"} if "graph" in kind.families else set()
    return [family for family in FAMILIES if family in kind.families and family not in left_out]


NODES: dict[str, Any] = {
    "rounds": 40,
    "local_epochs": 5,
    "client": {"hidden": 16, "learning_rate": 0.02, "dropout": 0.3},
}
IMAGES: dict[str, Any] = {
    "rounds": 8,
    "local_epochs": 3,
    "client": {"hidden": 16, "optimizer": "adam", "learning_rate": 0.01},
}
"""Settings to learn the learnable toys. They use Adam: generated networks start near zero, where a few dozen
steps of plain SGD lead nowhere.
"""


class Subject:
    """A method under test on one family of data."""

    def __init__(self, method: str, family: Family | None = None) -> None:
        self.method = method
        self.kind: type[Method] = METHODS.named(method)
        self.family: Family = family or families(self.kind)[0]

    @cached_property
    def federation(self) -> Federation:
        """Four clients of unequal sizes. Clients with graphs know their cross edges and hyperedges."""
        if self.family == "images":
            return random_images()
        return replace(linked(random_federation(SIZES, seed=11, width=30)), family=self.family)

    @cached_property
    def learnable(self) -> Federation:
        """Four larger clients whose features (and edges) tell the classes apart."""
        if self.family == "images":
            return random_images((40, 30, 35, 45), tinted=True)
        federation = random_federation((70, 60, 65, 75), seed=4, width=45, isolated=0, lean=0.1)
        return replace(linked(federation), family=self.family)

    def spec(self, federation: Federation | None = None, **settings: Any) -> RunSpec:
        """The spec of a short run with ``client`` settings. The method's own settings have priority.

        A ``whole`` run does not shorten the work before the first round.
        """
        fields = self.kind.Hyper.model_fields
        base = {} if settings.pop("whole", False) else SHORT
        hyper = {name: value for name, value in base.items() if name in fields} | settings.pop("hyper", {})
        client = {"hidden": HIDDEN, **CLIENT[self.family], **settings.pop("client", {})}
        settings = {"rounds": ROUNDS, "client": client, "hyper": hyper, **settings}
        spec = make_spec(self.method, federation or self.federation, **settings)
        own = {key: value for key, value in self.kind.settings.items() if key.startswith("client.")}
        return spec.with_settings(own)

    def play(self, block_size: int | None = None, **settings: Any) -> Run:
        """Make a short run, with all of its rounds."""
        return play(self.spec(**settings), self.federation, block_size=block_size)

    @cached_property
    def short(self) -> Run:
        """The short run with default settings."""
        return self.play()

    @cached_property
    def lesson(self) -> RunResult:
        """The longer run on the learnable toy. The work before the first round is not shortened."""
        settings = IMAGES if self.family == "images" else NODES
        return run(self.spec(self.learnable, whole=True, **settings), self.learnable)
