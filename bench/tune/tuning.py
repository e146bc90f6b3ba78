"""The definition of a search: a cell, its space, the search's seeds and the budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final

from pydantic import ValidationError

from bench.dataset import DATASETS
from bench.engine import NUMERICS
from bench.engine.methods import METHODS
from bench.errors import RequestError, first_problem
from bench.grids import Planned
from bench.spec import RunSpec, canonical_json, sha256

Value = bool | int | float | str
Space = dict[str, tuple[Value, ...]]
"""Values to try by dotted key (``client.learning_rate``, ``method.mu``)."""

CLIENT: Space = {
    "client.learning_rate": (0.001, 0.003, 0.01, 0.03),
    "client.weight_decay": (0.0, 1e-6, 0.0005, 0.005),
    "client.dropout": (0.0, 0.3, 0.5),
}

STAGE: Final = "trained"
"""The model that is scored: for every method, the model that the studies' tables compare."""

SEEDS = (1000, 1001)
"""Default seeds of a search."""

REPORT_SEEDS = range(20)
"""Seeds that reports use; a search must not use them."""


@dataclass(frozen=True)
class Tuning:
    """One search. ``spec`` is the cell's default configuration; its seed has no effect.

    ``trials`` is a total. The budget in client epochs (passes of a client over its training items, the mean
    over clients) follows from ``trials`` and the protocol, so it is the same for all methods.
    """

    spec: RunSpec
    space: Space
    seeds: tuple[int, ...]
    trials: int

    @property
    def run_epochs(self) -> int:
        """Client epochs of a trial without warm-up."""
        return self.spec.protocol.rounds * self.spec.protocol.local_epochs * len(self.seeds)

    @property
    def budget(self) -> int:
        """Client epochs of the whole search."""
        return self.trials * self.run_epochs

    @cached_property
    def configurations(self) -> list[dict[str, Value]]:
        """Every configuration of the space; its position in this list is its number."""
        return [dict(zip(self.space, values, strict=True)) for values in product(*self.space.values())]

    @property
    def default(self) -> dict[str, Value]:
        """The cell's own configuration, as values of the space's keys."""
        settings = self.spec.settings()
        return {key: settings[key] for key in self.space}

    @property
    def title(self) -> str:
        """The cell's name for people."""
        return Planned(self.spec, self.spec.method).cell_title

    @cached_property
    def name(self) -> str:
        """The search's name; it depends on everything that decides a trial's numbers except the budget."""
        identity = {
            "cell": self.spec.cell_tree(),
            "stage": STAGE,
            "space": {key: list(values) for key, values in self.space.items()},
            "seeds": self.seeds,
            "numerics": numerics(self.spec.method),
        }
        return f"{self.title} {sha256(canonical_json(identity))[:12]}"

    def specs(self, overrides: Mapping[str, Value]) -> tuple[RunSpec, ...]:
        """Return the runs of a configuration, one for each seed of the search."""
        spec = configured(self.spec, overrides)
        return tuple(spec.model_copy(update={"seed": seed}) for seed in self.seeds)

    def place_of(self, spec: RunSpec) -> int | None:
        """Return the number of a run's configuration; None if the run does not belong to the search."""
        settings = spec.settings()
        parameters = {key: settings.get(key) for key in self.space}
        if parameters not in self.configurations or spec not in self.specs(parameters):
            return None
        return self.configurations.index(parameters)


def search_space(spec: RunSpec) -> Space:
    """Return the space of a spec's method on its data set; it contains the spec's own configuration.

    The space leaves out client settings that are part of the method's algorithm. It leaves out dropout for
    client models that train on batches, since these have no dropout.
    """
    kind = METHODS.named(spec.method)
    fixed_keys = set(kind.settings)
    if spec.client.batch_size is not None:
        fixed_keys.add("client.dropout")
    space = {key: values for key, values in CLIENT.items() if key not in fixed_keys}
    space |= {f"method.{name}": tuple(values) for name, values in kind.Hyper.search_space().items()}
    defaults = spec.settings()
    for key, values in space.items():
        if defaults[key] not in values:
            values = (*values, defaults[key])
        is_text = any(isinstance(value, str) for value in values)
        space[key] = values if is_text else tuple(sorted(values))
    return space


def configured(spec: RunSpec, overrides: Mapping[str, Value]) -> RunSpec:
    """Return the spec with other client settings and hyper-parameters; ``RequestError`` if forbidden."""
    try:
        tuned_spec = spec.with_settings(overrides)
        hyper = METHODS.named(spec.method).Hyper.model_validate(tuned_spec.hyper).model_dump()
    except ValidationError as error:
        raise RequestError(f"{spec.method}: {first_problem(error)}") from None
    return tuned_spec.model_copy(update={"hyper": hyper})


def numerics(method: str) -> dict[str, int]:
    """Return the declared versions of the installed code that makes a method's numbers."""
    return {"method": METHODS.named(method).numerics, "engine": NUMERICS}


def search_seeds(seeds: Sequence[int]) -> tuple[int, ...]:
    """Return the search's seeds; default seeds if none are given. Seeds of reports are a ``RequestError``."""
    if seeds and min(seeds) < REPORT_SEEDS.stop:
        expected = f"seeds that no report uses, {REPORT_SEEDS.stop} or more"
        raise RequestError(f"--seed expects {expected}, got {', '.join(map(str, seeds))}")
    return tuple(seeds) or SEEDS


def tunings(
    runs: Iterable[Planned], trials: int, seeds: tuple[int, ...]
) -> tuple[list[Tuning], dict[str, str]]:
    """Return the searches of planned runs, and the reasons for cells without one. A method that only reads
    another method's run is tuned with it. If nothing can be tuned, raise ``RequestError``.
    """
    by_name: dict[str, Tuning] = {}
    reasons: dict[str, str] = {}
    for run in runs:
        spec = run.spec
        if reason := no_search(run):
            reasons[run.cell_title] = reason
        elif run.variant or spec.attack or spec.newcomers:
            raise RequestError(f"{run.cell_title}: expected plain cells to tune, no variants or attacks")
        else:
            tuning = Tuning(spec, search_space(spec), seeds, trials)
            by_name.setdefault(tuning.name, tuning)
    if not by_name:
        raise RequestError(f"nothing to tune: {'; '.join(reasons.values())}")
    return list(by_name.values()), reasons


def no_search(run: Planned) -> str:
    """Return why a planned run cannot be tuned; empty if it can."""
    kind = METHODS.named(run.method)
    if not kind.trains:
        return f"{run.method} does not train"
    family = DATASETS.named(run.spec.dataset).family
    if family not in kind.families:
        return f"{run.method} runs on {', '.join(kind.families)} data, not on {family}"
    return ""
