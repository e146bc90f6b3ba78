"""What a run is: everything that decides its numbers, its canonical form and its hash.

A spec holds no path, device, block size or number of workers. Two specs are the same run exactly
when their canonical JSON is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from bench.hyper import added

MOST = 2**31 - 1
LAST_SEED = 2**63 - 1
"""The largest count and the largest seed that databases, arrays and clocks hold."""

Count = Annotated[int, Field(ge=1, le=MOST)]
Seed = Annotated[int, Field(ge=0, le=LAST_SEED)]

Stage = Literal["received", "trained"]
STAGES: tuple[Stage, ...] = ("received", "trained")

SECTIONS = {
    "protocol": "protocol",
    "client": "client",
    "method": "hyper",
    "attack": "attack",
    "newcomers": "newcomers",
}
"""Section of a dotted key (``method.mu``) -> the part of a spec that it sets."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)


class Protocol(_Part):
    """Rounds, local epochs and how the clients' data are drawn.

    ``partition_seed`` draws the partition and the split; the run's own seed does not, so that runs over seeds
    share their clients as in the papers. ``split`` gives the shares of training, validation and test items in
    percent. ``initial``: every client starts from its ``own`` random model or all from one ``common`` model.
    ``evaluate``: once a ``round`` after local training, or after every local ``epoch`` as FedHGN's released
    checkpoint rule needs. ``participation`` is the share of clients that train in a round. ``metric`` of
    validation items chooses the round; the area under the ROC curve is of two classes.
    """

    rounds: Count = 100
    local_epochs: Count = 3
    partition_seed: Seed = 123
    split: tuple[float, float, float] = (40.0, 30.0, 30.0)
    initial: Literal["own", "common"] = "own"
    evaluate: Literal["round", "epoch"] = "round"
    participation: Annotated[float, Field(gt=0, le=1)] = added(1.0)
    metric: Literal["accuracy", "roc_auc"] = added("accuracy")

    def participants(self, clients: int) -> int:
        """Number of clients that train in a round, among so many."""
        return round(self.participation * clients)


class ClientSettings(_Part):
    """The client's model and optimiser, the same for every method until tuned.

    ``batch_size`` None means one full-batch step an epoch. ``dropout`` is rounded to a multiple of 1/256 (see
    ``bench.nn.randomness``). ``optimizer_state``: every client's optimiser goes on from its last round
    (``keep``) or starts anew in every round (``reset``).
    """

    model: str = "gcn"
    hidden: Count = 128
    dropout: Annotated[float, Field(ge=0, le=0.99)] = 0.5
    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: Annotated[float, Field(gt=0)] = 0.01
    weight_decay: Annotated[float, Field(ge=0)] = 5e-4
    batch_size: Count | None = None
    optimizer_state: Literal["keep", "reset"] = added("keep")


class Attack(_Part):
    """Some clients send something else than they should.

    ``ratio`` is the share of clients, drawn from the run's seed, whose messages the engine replaces: by one
    Gaussian number in every place (``same``) or by independent ones (``gaussian``), of standard deviation
    ``tau``, drawn anew for every client and message (FedSheafHN, Section 4.6). ``target`` is what of a
    message: the ``extras`` that come with a model, the ``model`` itself, or ``all``.
    """

    kind: Literal["same", "gaussian"] = "same"
    ratio: Annotated[float, Field(ge=0, lt=1)] = 0.0
    tau: Annotated[float, Field(gt=0)] = 5.0
    target: Literal["extras", "model", "all"] = added("extras")

    def count(self, clients: int) -> int:
        """Number of malicious clients among so many."""
        return round(self.ratio * clients)


class Newcomers(_Part):
    """Some clients join after the last round, when the server no longer learns.

    ``ratio`` is the share of clients, drawn from the run's seed, that are held out. Each trains
    ``epochs`` local epochs on the model that it is welcomed with; the run's results are theirs.
    """

    ratio: Annotated[float, Field(ge=0, lt=1)] = 0.0
    epochs: Count = 3

    def count(self, clients: int) -> int:
        """Number of clients held out of so many."""
        return round(self.ratio * clients)


class FederationKey(NamedTuple):
    """What decides a federation; ``split`` in percent."""

    dataset: str
    scenario: str
    clients: int
    partition_seed: int
    split: tuple[float, float, float]


class RunSpec(_Part):
    """One run. ``hyper`` holds every hyper-parameter of the method, defaults filled in.

    ``attack`` and ``newcomers`` are None, and absent from the canonical form, where there are none.
    """

    dataset: str
    scenario: str
    clients: Count
    method: str
    seed: Seed
    protocol: Protocol = Protocol()
    client: ClientSettings = ClientSettings()
    hyper: dict[str, bool | int | float | str] = Field(default_factory=dict)
    attack: Attack | None = None
    newcomers: Newcomers | None = None

    def tree(self) -> dict[str, Any]:
        """The spec as JSON values, without the optional sections that it does not have."""
        tree: dict[str, Any] = self.model_dump(mode="json")
        return {key: value for key, value in tree.items() if value is not None}

    def canonical(self) -> str:
        """Canonical JSON: keys sorted, no spaces, numbers in their shortest exact form."""
        return canonical_json(self.tree())

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical form, hexadecimal."""
        return sha256(self.canonical())

    def with_seed(self, seed: int, partition_per_seed: bool = False) -> RunSpec:
        """The run with another seed, which draws the partition, too, if asked for."""
        protocol = self.protocol
        if partition_per_seed:
            protocol = protocol.model_copy(update={"partition_seed": seed})
        return self.model_copy(update={"seed": seed, "protocol": protocol})

    @property
    def cell(self) -> str:
        """What the run is a sample of: SHA-256 of the canonical form without the seed, hexadecimal."""
        return sha256(canonical_json(self.cell_tree()))

    @property
    def cell_on_any_partition(self) -> str:
        """As ``cell``, without the partition's seed: what runs that each draw their own are samples of."""
        tree = self.cell_tree()
        del tree["protocol"]["partition_seed"]
        return sha256(canonical_json(tree))

    def cell_tree(self) -> dict[str, Any]:
        """The spec without its seed as JSON values, as ``tree`` gives it."""
        return {key: value for key, value in self.tree().items() if key != "seed"}

    def settings(self) -> dict[str, Any]:
        """Every setting but names and seed, as JSON values, by dotted key as ``--set`` takes it."""
        return {
            f"{section}.{key}": list(value) if isinstance(value, tuple) else value
            for section, part in SECTIONS.items()
            for key, value in dict(getattr(self, part) or {}).items()
        }

    def with_settings(self, settings: Mapping[str, Any]) -> RunSpec:
        """The spec with other values for some dotted keys; those of ``method.*`` are taken as they are."""
        tree = self.tree()
        for key, value in settings.items():
            section, _, name = key.partition(".")
            tree.setdefault(SECTIONS[section], {})[name] = value
        return RunSpec.model_validate(tree)

    @property
    def federation_key(self) -> FederationKey:
        """What decides the federation: runs with equal keys have the same clients."""
        p = self.protocol
        return FederationKey(self.dataset, self.scenario, self.clients, p.partition_seed, p.split)


def run_name(dataset: str, scenario: str, clients: int, method: str, seed: int | None = None) -> str:
    """The name of a run in words; without a seed that of its cell."""
    cell = f"{method} {dataset} {scenario} {clients}"
    return cell if seed is None else f"{cell} seed {seed}"


def cell_of(canonical: str) -> str:
    """``RunSpec.cell`` of a spec's canonical form, whose last key is the seed."""
    return sha256(canonical.rpartition(',"seed":')[0] + "}")


def sha256(data: str | bytes) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def canonical_json(tree: Mapping[str, Any]) -> str:
    """JSON with sorted keys and no spaces; raises ``ValueError`` for NaN and infinity."""
    return json.dumps(tree, sort_keys=True, separators=(",", ":"), allow_nan=False)
