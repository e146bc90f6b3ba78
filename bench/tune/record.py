"""The file of a finished search: the request, the budget used, every trial, and the winner.

Sweeps and reports read it: planned runs get the tuned configuration of their cell.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from bench import __version__, paths
from bench.errors import RequestError, first_problem
from bench.grids import Planned
from bench.grids.grid import Part
from bench.spec import RunSpec
from bench.tune.tuning import STAGE, Tuning, Value, configured, no_search, numerics

State = Literal["complete", "pruned", "cut", "diverged", "oom", "failed"]
"""``cut``: the trial used more client epochs than were left. ``pruned``: only in records of version 0.2.0."""


class Trial(Part):
    """A trial that counts. ``validation`` is its best mean validation accuracy over clients, averaged over
    the seeds; None if the trial gave no number.
    """

    number: int
    parameters: dict[str, Value]
    state: State
    validation: float | None
    client_epochs: float
    seconds: float
    reason: str = ""


class Budget(Part):
    """A number of trials and a number of client epochs."""

    trials: int
    client_epochs: float


class Winner(Part):
    """The configuration with the best validation accuracy; of equal ones, the earliest."""

    number: int
    overrides: dict[str, Value]
    validation: float


class Record(Part):
    """A finished search. ``study``: the search's name. ``cell``: the default configuration's spec without its
    seed. ``clients``: the hash of the federation on which the trials were made. ``own``: the record is the
    user's and does not come with the suite; not stored in the file.
    """

    format: Literal[1] = 1
    study: str
    cell: dict[str, Any]
    clients: str
    stage: Literal["trained"] = STAGE
    space: dict[str, tuple[Value, ...]]
    seeds: tuple[int, ...]
    budget: Budget
    used: Budget
    numerics: dict[str, int]
    packages: dict[str, str]
    winner: Winner
    default_validation: float | None
    trials: tuple[Trial, ...]
    own: bool = Field(default=False, exclude=True)

    @property
    def spec(self) -> RunSpec:
        """The cell's default configuration; its seed has no effect."""
        return RunSpec.model_validate({**self.cell, "seed": self.seeds[0]})

    @property
    def tuning(self) -> Tuning:
        """The search that was made."""
        return Tuning(self.spec, self.space, self.seeds, self.budget.trials)

    @property
    def is_current(self) -> bool:
        """Whether the search's numerics versions are those installed; the method must be installed."""
        return self.numerics == numerics(self.spec.method)

    def apply(self, spec: RunSpec) -> RunSpec:
        """Return the spec in the winner's configuration."""
        return configured(spec, self.winner.overrides)


def winner_of(trials: Sequence[Trial]) -> Winner | None:
    """Return the trial of best validation accuracy, the first of equal ones; None if none has a number."""
    candidates = [
        Winner(number=trial.number, overrides=trial.parameters, validation=trial.validation)
        for trial in trials
        if trial.state == "complete" and trial.validation is not None
    ]
    return max(candidates, key=lambda winner: winner.validation, default=None)


def record(tuning: Tuning, clients: str, winner: Winner, trials: Sequence[Trial]) -> Record:
    """Return the record of a search on these clients whose budget is used up."""
    used = sum(trial.client_epochs for trial in trials)
    default = next((trial for trial in trials if trial.parameters == tuning.default), None)
    return Record(
        study=tuning.name,
        cell=tuning.spec.cell_tree(),
        clients=clients,
        space=tuning.space,
        seeds=tuning.seeds,
        budget=Budget(trials=tuning.trials, client_epochs=tuning.budget),
        used=Budget(trials=len(trials), client_epochs=used),
        numerics=numerics(tuning.spec.method),
        packages={"bench": __version__, **{name: version(name) for name in ("numpy", "optuna", "torch")}},
        winner=winner,
        default_validation=default.validation if default else None,
        trials=tuple(trials),
    )


def write(folder: Path, result: Record) -> None:
    """Write a record; the file is complete or missing. Raises ``OSError`` if it cannot be written."""
    spec = result.spec
    path = folder / f"{spec.method}-{spec.dataset}-{spec.scenario}-{spec.clients}.json"
    folder.mkdir(parents=True, exist_ok=True)
    with paths.replacing_file(path) as temporary:
        temporary.write_text(json.dumps(result.model_dump(mode="json"), indent=1) + "\n")


# Applied -----------------------------------------------------------------------------------------


Configurations = dict[str, list[Record]]
"""Finished searches by tuned cell, for any partition; the user's own come before the suite's."""


def configurations(home: Path | None = None, shipped: Path | None = None) -> Configurations:
    """Read the files of ``BENCH_HOME/tuned`` and of the suite, or of the given home and folder; a damaged
    file is a ``RequestError``.
    """
    by_cell: Configurations = {}
    own = (home or paths.home()) / "tuned"
    suite = shipped or Path(str(files("bench.results"))) / "tuned"
    for path in (*sorted(own.glob("*.json")), *sorted(suite.glob("*.json"))):
        try:
            record = Record.model_validate_json(path.read_bytes())
            cell = record.spec.cell_on_any_partition
        except ValidationError as error:
            raise RequestError(f"tuned configuration {path.name}: {first_problem(error)}") from None
        by_cell.setdefault(cell, []).append(record.model_copy(update={"own": path.parent == own}))
    return by_cell


def tuned(planned_runs: Iterable[Planned], winners: Configurations | None = None) -> list[Planned]:
    """Return the planned runs in their cells' tuned configurations, with the clients of the search. Partition
    seeds may differ. A run stays as it is if its method does not train, or does not run on the data set.

    Raises:
        RequestError: a cell has no configuration, or only of other numerics versions; a run's seed was used
            in the search.
    """
    by_cell = configurations() if winners is None else winners
    runs = []
    for run in planned_runs:
        if no_search(run):
            runs.append(run)
            continue
        found = by_cell.get(run.spec.cell_on_any_partition, [])
        winner = next((each for each in found if each.is_current), None)
        if winner is None:
            note = "tuned by code of other numerics" if found else run.variant
            cell = f"{run.cell_title} ({note})" if note else run.cell_title
            problem = f"no tuned configuration with these settings for {cell}"
            raise RequestError(f"--use-tuned: {problem}: run bench tune for it, or leave it out")
        if run.spec.seed in winner.seeds:
            problem = f"seed {run.spec.seed} was used to tune {run.method} on {run.spec.dataset}"
            raise RequestError(f"--use-tuned: {problem}: name seeds that the search has not seen")
        is_same = winner.spec.federation_key == run.spec.federation_key
        runs.append(replace(run, spec=winner.apply(run.spec), tuned_on=winner.clients if is_same else ""))
    return runs
