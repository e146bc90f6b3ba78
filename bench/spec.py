"""The specification of a run: all settings that determine its numbers, its canonical form and its hash.

A spec holds no path, device, block size or number of workers. Two specs are the same run if and only if
their canonical JSON is the same.
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
"""The largest count and seed that databases, arrays and clocks can hold."""

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
"""Section of a dotted key (``method.mu``) -> field of ``RunSpec``."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)


class Protocol(_Part):
    """Rounds, local epochs, and the drawing of the clients' data.

    ``partition_seed``, not the run's seed, draws the partition and the split. Runs with different seeds thus
    have the same clients, as in the papers. ``split`` gives the shares of training, validation and test items
    in percent. ``initial``: all clients start from one ``common`` model, or each from an ``own`` random one.
    ``evaluate``: once a ``round``, after local training, or after every local ``epoch``, as FedHGN's released
    checkpoint rule requires. ``participation`` is the share of clients that train in a round. ``metric`` of
    the validation items chooses the round; the area under the ROC curve requires two classes.
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
        """Number of clients, out of ``clients``, that train in a round."""
        return round(self.participation * clients)


class ClientSettings(_Part):
    """The client's model and optimiser, the same for every method until tuned.

    ``batch_size`` None means one full-batch step an epoch. ``dropout`` is rounded to a multiple of 1/256 (see
    ``bench.nn.randomness``). ``optimizer_state``: a client's optimiser continues from the client's last round
    (``keep``) or is reset in every round (``reset``).
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
    """Some clients are malicious and send wrong messages.

    ``ratio`` is the share of malicious clients, drawn from the run's seed. The engine replaces their messages
    by Gaussian numbers with standard deviation ``tau``, drawn anew for every client and message (FedSheafHN,
    Section 4.6): the same number for all entries (``same``) or independent ones (``gaussian``). ``target`` is
    the replaced part of a message: the ``model``, the ``extras`` that come with a model, or ``all``.
    """

    kind: Literal["same", "gaussian"] = "same"
    ratio: Annotated[float, Field(ge=0, lt=1)] = 0.0
    tau: Annotated[float, Field(gt=0)] = 5.0
    target: Literal["extras", "model", "all"] = added("extras")

    def count(self, clients: int) -> int:
        """Number of malicious clients out of ``clients``."""
        return round(self.ratio * clients)


class Newcomers(_Part):
    """Some clients join after the last round, when the server no longer learns.

    ``ratio`` is the share of newcomers, drawn from the run's seed. Each newcomer receives a model and
    trains it for ``epochs`` local epochs. The run's results are the newcomers' results.
    """

    ratio: Annotated[float, Field(ge=0, lt=1)] = 0.0
    epochs: Count = 3

    def count(self, clients: int) -> int:
        """Number of newcomers out of ``clients``."""
        return round(self.ratio * clients)


class FederationKey(NamedTuple):
    """The settings that determine a federation; ``split`` in percent."""

    dataset: str
    scenario: str
    clients: int
    partition_seed: int
    split: tuple[float, float, float]


class RunSpec(_Part):
    """One run. ``hyper`` holds every hyper-parameter of the method, defaults filled in.

    Without an attack or newcomers, the field is None and absent from the canonical form.
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
        """The spec as JSON values, without optional sections that are None."""
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
        """The spec with another seed. If ``partition_per_seed``, it is also the partition seed."""
        protocol = self.protocol
        if partition_per_seed:
            protocol = protocol.model_copy(update={"partition_seed": seed})
        return self.model_copy(update={"seed": seed, "protocol": protocol})

    @property
    def cell(self) -> str:
        """Hash of the run's cell: SHA-256 of the canonical form without the seed, hexadecimal."""
        return cell_of(self.canonical())

    @property
    def cell_on_any_partition(self) -> str:
        """Hash without both seeds, hexadecimal: the cell of runs that each draw their own partition."""
        tree = self.cell_tree()
        del tree["protocol"]["partition_seed"]
        return sha256(canonical_json(tree))

    def cell_tree(self) -> dict[str, Any]:
        """``tree`` without the seed."""
        return {key: value for key, value in self.tree().items() if key != "seed"}

    def settings(self) -> dict[str, Any]:
        """All settings except names and seed, as JSON values, by the dotted keys of ``--set``."""
        return {
            f"{section}.{key}": list(value) if isinstance(value, tuple) else value
            for section, part in SECTIONS.items()
            for key, value in dict(getattr(self, part) or {}).items()
        }

    def with_settings(self, settings: Mapping[str, Any]) -> RunSpec:
        """The spec with other values for some dotted keys; values of ``method.*`` are not checked."""
        tree = self.tree()
        for key, value in settings.items():
            section, _, name = key.partition(".")
            tree.setdefault(SECTIONS[section], {})[name] = value
        return RunSpec.model_validate(tree)

    @property
    def federation_key(self) -> FederationKey:
        """The settings that determine the federation: runs with equal keys have the same clients."""
        p = self.protocol
        return FederationKey(self.dataset, self.scenario, self.clients, p.partition_seed, p.split)


def run_name(dataset: str, scenario: str, clients: int, method: str, seed: int | None = None) -> str:
    """The name of a run in words; without ``seed``, the name of its cell."""
    cell = f"{method} {dataset} {scenario} {clients}"
    return cell if seed is None else f"{cell} seed {seed}"


def cell_of(canonical: str) -> str:
    """Compute ``RunSpec.cell`` from a spec's canonical form. The last key of the form is the seed."""
    return sha256(canonical.rpartition(',"seed":')[0] + "}")


def sha256(data: str | bytes) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def canonical_json(tree: Mapping[str, Any]) -> str:
    """JSON with sorted keys and no spaces; raises ``ValueError`` for NaN and infinity."""
    return json.dumps(tree, sort_keys=True, separators=(",", ":"), allow_nan=False)
