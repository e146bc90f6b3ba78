"""What is tuned: a cell, its space, the seeds of the search and the budget."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from bench.dataset import DATASETS
from bench.engine import NUMERICS
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.grids import Planned
from bench.spec import RunSpec
from bench.tune.space import Space, Value, configured, search_space

STAGE: Final = "trained"
"""The model that is scored: for every method the one that the studies' tables compare."""

SEEDS = (1000, 1001)
"""Seeds of the search where nobody names others."""

REPORT_SEEDS = range(20)
"""Seeds that reports use: a search must not have seen them."""


@dataclass(frozen=True)
class Tuning:
    """One study. ``spec`` is the cell's default configuration; its seed plays no role.

    ``trials`` is a total. The budget in client epochs (passes of a client over its training items,
    on average over clients) follows from it and from the protocol, so it is the same for all methods.
    """

    spec: RunSpec
    space: Space
    seeds: tuple[int, ...]
    trials: int

    @property
    def run_epochs(self) -> int:
        """Client epochs of a run after its warm-up, summed over the seeds."""
        protocol = self.spec.protocol
        return protocol.rounds * protocol.local_epochs * len(self.seeds)

    @property
    def budget(self) -> int:
        """Client epochs of the whole study."""
        return self.trials * self.run_epochs

    @property
    def size(self) -> int:
        """Configurations in the space."""
        return math.prod(map(len, self.space.values()))

    @property
    def default(self) -> dict[str, Value]:
        """The cell's own configuration."""
        settings = self.spec.settings()
        return {key: settings[key] for key in self.space}

    @property
    def title(self) -> str:
        """Method, data set, scenario and clients."""
        return f"{self.spec.method} {self.spec.dataset} {self.spec.scenario} {self.spec.clients}"

    @property
    def numerics(self) -> dict[str, int]:
        """Declared versions of the code that makes the numbers."""
        return numerics(self.spec.method)

    @cached_property
    def name(self) -> str:
        """The study's name; it changes with everything that decides a trial's numbers but the budget."""
        identity = {
            "cell": self.spec.cell_tree(),
            "stage": STAGE,
            "space": {key: list(values) for key, values in self.space.items()},
            "seeds": self.seeds,
            "numerics": self.numerics,
        }
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
        return f"{self.title} {hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def specs(self, overrides: Mapping[str, Value], rounds: int | None = None) -> tuple[RunSpec, ...]:
        """The runs of a configuration, one for each seed of the search; with so many rounds."""
        spec = configured(self.spec, overrides)
        protocol = spec.protocol.model_copy(update={} if rounds is None else {"rounds": rounds})
        return tuple(spec.model_copy(update={"seed": seed, "protocol": protocol}) for seed in self.seeds)

    def configuration(self, spec: RunSpec) -> dict[str, Value] | None:
        """What a run has of the space; None where it is none of the search's, of however many rounds."""
        settings = spec.settings()
        chosen: dict[str, Value] = {key: settings.get(key, "") for key in self.space}
        inside = all(chosen[key] in values for key, values in self.space.items())
        if not inside or spec.seed not in self.seeds:
            return None
        return chosen if spec in self.specs(chosen, spec.protocol.rounds) else None


def numerics(method: str) -> dict[str, int]:
    """Declared versions of the installed code that makes a method's numbers."""
    return {"method": METHODS.named(method).numerics, "engine": NUMERICS}


def check_request(trials: int, seeds: Sequence[int]) -> tuple[int, ...]:
    """The seeds of the search, the default ones where none are named.

    Raises:
        RequestError: fewer than one trial; a seed that is negative, named twice, or used by reports.
    """
    if trials < 1:
        raise RequestError(f"--trials expects at least 1, got {trials}")
    chosen = tuple(seeds) or SEEDS
    for seed in chosen:
        if seed in REPORT_SEEDS or seed < 0 or chosen.count(seed) > 1:
            raise RequestError(
                f"--seed expects different seeds that no report uses, {REPORT_SEEDS.stop} or more, "
                f"got {', '.join(map(str, chosen))}"
            )
    return chosen


def tunings(
    planned: Iterable[Planned], trials: int, seeds: tuple[int, ...]
) -> tuple[list[Tuning], dict[str, str]]:
    """The studies of some planned runs, and the cells that have none with the reason.

    A method that only reads another one's run is tuned with it.

    Raises:
        RequestError: a run under attack, with newcomers or of a grid's variant; nothing to tune.
    """
    found: dict[str, Tuning] = {}
    skipped: dict[str, str] = {}
    for each in planned:
        name = f"{each.method} {each.dataset} {each.scenario} {each.clients}"
        reason = _no_study(each)
        if reason:
            skipped[name] = reason
            continue
        spec = each.spec
        assert spec is not None
        if each.variant or spec.attack or spec.newcomers:
            what = each.variant or ("an attack" if spec.attack else "newcomers")
            raise RequestError(
                f"{name}: expected plain cells to tune, got one with {what}: name another grid, or -m and -d"
            )
        tuning = Tuning(spec, search_space(spec), seeds, trials)
        found.setdefault(tuning.name, tuning)
    if not found:
        raise RequestError(f"nothing to tune: {'; '.join(f'{n}: {why}' for n, why in skipped.items())}")
    return list(found.values()), skipped


def _no_study(planned: Planned) -> str:
    """Why a planned run cannot be tuned; empty where it can."""
    if planned.spec is None:
        return planned.reason
    kind = METHODS.named(planned.method)
    if not kind.trains:
        return f"{planned.method} does not train"
    family = DATASETS.named(planned.dataset).family
    if family not in kind.families:
        return f"{planned.method} runs on {', '.join(kind.families)} data, not on {family}"
    return ""
