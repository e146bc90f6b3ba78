"""Searches and trials in one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.runner.display import duration
from bench.runner.plan import Estimator
from bench.tune.record import Record, Trial, winner_of
from bench.tune.search import Search
from bench.tune.tuning import Value


def standing(search: Search, estimator: Estimator, data_gap: str) -> dict[str, Any]:
    """How far a search is by its stored runs.

    ``seconds`` is what its unused client epochs take, one run after the other, by runs like its default
    configuration; None where no such run is known. ``lacking`` says why its data are not at hand.
    """
    tuning, best = search.tuning, winner_of(search.trials)
    used = sum(trial.client_epochs for trial in search.trials)
    seconds = 0.0 if search.ended else estimator.seconds(tuning.spec)
    if seconds is not None:
        seconds *= len(tuning.seeds) * (tuning.budget - used) / tuning.run_epochs
    return {
        "search": tuning.title,
        "trials": len(search.trials),
        "trials_asked": tuning.trials,
        "client_epochs": used,
        "client_epochs_asked": tuning.budget,
        "best_validation": best.validation if best else None,
        "seconds": seconds,
        "ended": search.ended,
        "lacking": data_gap,
    }


def standing_line(row: Mapping[str, Any]) -> str:
    """One line on a ``standing``."""
    time = "time unknown" if row["seconds"] is None else duration(row["seconds"])
    state = row["lacking"] or (f"done: {row['ended']} used up" if row["ended"] else f"to do, {time}")
    trials = f"{row['trials']} of {row['trials_asked']} trials"
    epochs = f"{row['client_epochs']:,.0f} of {row['client_epochs_asked']:,.0f} client epochs"
    return f"{row['search']}: {trials}, {epochs}, best {percent(row['best_validation'])}: {state}"


def percent(accuracy: float | None) -> str:
    """An accuracy as people read it; ``-`` where there is none."""
    return "-" if accuracy is None else f"{100 * accuracy:.2f}"


def settings(parameters: Mapping[str, Value]) -> str:
    """A configuration in one phrase."""
    return " ".join(f"{key}={value}" for key, value in parameters.items())


def line(search: Search, trial: Trial) -> str:
    """One line on a trial that has ended."""
    score = trial.reason or f"validation {percent(trial.validation)}"
    number = f"trial {trial.number + 1} of {search.tuning.trials}, {search.tuning.title}"
    return f"{number}: {trial.state}, {score}, {trial.seconds:.1f} s: {settings(trial.parameters)}"


def result(record: Record) -> str:
    """One line on a finished search."""
    winner, used = record.winner, f"after {record.used.trials} of {record.budget.trials} trials"
    scores = f"validation {percent(winner.validation)}, default {percent(record.default_validation)}"
    return f"{record.tuning.title}: {scores}, {used}: {settings(winner.overrides)}"
