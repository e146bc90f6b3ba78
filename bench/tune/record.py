"""The file of a finished search: what was asked, what was used, every trial, and the winner."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from bench import __version__
from bench.replacement import replacing_file
from bench.spec import RunSpec
from bench.tune.tuning import STAGE, Tuning, Value, numerics

State = Literal["complete", "pruned", "cut", "diverged", "oom", "failed"]
"""``cut``: fewer client epochs were left than it used. ``pruned`` is in records of version 0.2.0 alone."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Trial(_Part):
    """A trial that counts. ``validation`` is the best mean validation accuracy that it reached, mean over
    the seeds; None where it gave no number.
    """

    number: int
    parameters: dict[str, Value]
    state: State
    validation: float | None
    client_epochs: float
    seconds: float
    reason: str = ""


class Budget(_Part):
    """Trials and client epochs."""

    trials: int
    client_epochs: float


class Winner(_Part):
    """The configuration of best validation accuracy; the earliest of equal ones."""

    number: int
    overrides: dict[str, Value]
    validation: float


class Record(_Part):
    """A finished search. ``study`` is its name, ``cell`` the default configuration's spec without its seed,
    ``clients`` the hash of the federation that the trials were made on.
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

    @property
    def spec(self) -> RunSpec:
        """The cell's default configuration; its seed plays no role."""
        return RunSpec.model_validate({**self.cell, "seed": self.seeds[0]})

    @property
    def tuning(self) -> Tuning:
        """What was searched."""
        return Tuning(self.spec, self.space, self.seeds, self.budget.trials)


def winner_of(trials: Sequence[Trial]) -> Winner | None:
    """The trial of best validation accuracy, the first of equal ones; None where none gave a number."""
    candidates = [
        Winner(number=trial.number, overrides=trial.parameters, validation=trial.validation)
        for trial in trials
        if trial.state == "complete" and trial.validation is not None
    ]
    return max(candidates, key=lambda winner: winner.validation, default=None)


def record(tuning: Tuning, clients: str, winner: Winner, trials: Sequence[Trial]) -> Record:
    """The record of a search on these clients whose budget is used up."""
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


def write(folder: Path, result: Record) -> Path:
    """Write a record; the file is there in full or not at all. Raises ``OSError`` where it cannot be."""
    spec = result.spec
    path = folder / f"{spec.method}-{spec.dataset}-{spec.scenario}-{spec.clients}.json"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing_file(path) as temporary:
        temporary.write_text(json.dumps(result.model_dump(mode="json"), indent=1) + "\n")
    return path
