"""The file of a finished search: what was asked, what was used, every trial, and the winner."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bench import __version__
from bench.errors import RequestError, first_problem
from bench.replacement import replacing_file
from bench.spec import RunSpec
from bench.tune.tuning import STAGE, Tuning, Value, numerics

PACKAGES = ("numpy", "optuna", "torch")

State = Literal["complete", "pruned", "cut", "diverged", "oom", "failed"]
"""``cut``: fewer client epochs were left than it used. ``pruned`` is in records of version 0.2.0 alone."""

Accuracy = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Trial(_Part):
    """A trial that counts. ``validation`` is the best mean validation accuracy that it reached, mean over
    the seeds; None where it gave no number.
    """

    number: Annotated[int, Field(ge=0)]
    parameters: dict[str, Value]
    state: State
    validation: Accuracy | None
    client_epochs: Amount
    seconds: Amount
    reason: str = ""


class Budget(_Part):
    """Trials and client epochs."""

    trials: Count
    client_epochs: Amount


class Winner(_Part):
    """The configuration of best validation accuracy; the earliest of equal ones."""

    number: Annotated[int, Field(ge=0)]
    overrides: dict[str, Value]
    validation: Accuracy


class Record(_Part):
    """A finished search, called ``study`` in its file. ``cell`` is the default configuration's spec without
    its seed, ``clients`` the hash of the federation that the trials were made on.
    """

    format: Literal[1] = 1
    study: str
    cell: dict[str, Any]
    clients: Annotated[str, Field(min_length=1)]
    stage: Literal["trained"] = STAGE
    space: Annotated[dict[str, Annotated[tuple[Value, ...], Field(min_length=1)]], Field(min_length=1)]
    seeds: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]
    budget: Budget
    used: Budget
    numerics: dict[str, int]
    packages: dict[str, str]
    winner: Winner
    default_validation: Accuracy | None
    trials: Annotated[tuple[Trial, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.winner != winner_of(self.trials):
            raise ValueError("the winner is not the trial of best validation accuracy")
        return self

    @property
    def spec(self) -> RunSpec:
        """The cell's default configuration; its seed plays no role."""
        return RunSpec.model_validate({**self.cell, "seed": self.seeds[0]})

    @property
    def tuning(self) -> Tuning:
        """What was searched."""
        return Tuning(self.spec, self.space, self.seeds, self.budget.trials)


def winner_of(trials: Sequence[Trial]) -> Winner | None:
    """The trial of best validation accuracy, the first of equal ones; None where none gave a number.

    A pruned trial, which was stopped by its curve, is none; in version 0.2.0 cut trials gave a number.
    """
    candidates = [
        Winner(number=trial.number, overrides=trial.parameters, validation=trial.validation)
        for trial in trials
        if trial.state in ("complete", "cut") and trial.validation is not None
    ]
    return max(candidates, key=lambda winner: winner.validation, default=None)


def client_epochs(trials: Sequence[Trial]) -> float:
    """Client epochs that trials used."""
    return sum(trial.client_epochs for trial in trials)


def record(tuning: Tuning, clients: str, winner: Winner, trials: Sequence[Trial]) -> Record:
    """The record of a search on these clients whose budget is used up."""
    defaults = (trial.validation for trial in trials if trial.parameters == tuning.default)
    return Record(
        study=tuning.name,
        cell=tuning.spec.cell_tree(),
        clients=clients,
        space=tuning.space,
        seeds=tuning.seeds,
        budget=Budget(trials=tuning.trials, client_epochs=tuning.budget),
        used=Budget(trials=len(trials), client_epochs=client_epochs(trials)),
        numerics=numerics(tuning.spec.method),
        packages={"bench": __version__, **{name: version(name) for name in PACKAGES}},
        winner=winner,
        default_validation=next(defaults, None),
        trials=tuple(trials),
    )


def file_name(spec: RunSpec) -> str:
    """The name of the file for a spec's cell."""
    return f"{spec.method}-{spec.dataset}-{spec.scenario}-{spec.clients}.json"


def write(folder: Path, result: Record) -> Path:
    """Write a record; the file is there in full or not at all. Raises ``OSError`` where it cannot be."""
    path = folder / file_name(result.spec)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing_file(path) as temporary:
        text = json.dumps(result.model_dump(mode="json"), indent=1) + "\n"
        temporary.write_text(text, encoding="utf-8")
    return path


def parse(text: bytes, name: str) -> Record:
    """A record from a file's content; ``name`` is the file's.

    Raises:
        RequestError: it is no such record, was damaged, or lies under another cell's name.
    """
    try:
        result = Record.model_validate_json(text)
        expected_name = file_name(result.spec)
    except ValidationError as error:
        problem = f"{first_problem(error)}; remove it or run bench tune again"
        raise RequestError(f"tuned configuration {name}: {problem}") from None
    if name != expected_name:
        raise RequestError(f"tuned configuration {name}: it is that of {expected_name}; rename it")
    return result
