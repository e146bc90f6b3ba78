"""Searches and trials in one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench.runner.display import duration
from bench.runner.plan import Estimator
from bench.tune.record import Record, Trial, client_epochs, winner_of
from bench.tune.search import Search
from bench.tune.tuning import Value


class Standing(NamedTuple):
    """How far a search is. ``seconds`` is what its unused client epochs take, one run after the other, by
    runs like its default configuration; None where no such run is known. ``lacking`` says why its data are
    not at hand.
    """

    search: str
    trials: int
    trials_asked: int
    client_epochs: float
    client_epochs_asked: float
    best_validation: float | None
    seconds: float | None
    ended: str
    lacking: str

    def __str__(self) -> str:
        epochs = f"{self.client_epochs:,.0f} of {self.client_epochs_asked:,.0f} client epochs"
        time = "time unknown" if self.seconds is None else duration(self.seconds)
        state = self.lacking or (f"done: {self.ended} used up" if self.ended else f"to do, {time}")
        best = percent(self.best_validation)
        return f"{self.search}: {self.trials} of {self.trials_asked} trials, {epochs}, best {best}: {state}"


def standing(search: Search, estimator: Estimator, data_gap: str) -> Standing:
    """How far a search is by its stored runs."""
    tuning, best, used = search.tuning, winner_of(search.trials), client_epochs(search.trials)
    seconds = 0.0 if search.ended else estimator.seconds(tuning.spec)
    if seconds is not None:
        seconds *= len(tuning.seeds) * (tuning.budget - used) / tuning.run_epochs
    counts = (len(search.trials), tuning.trials, used, tuning.budget)
    best_validation = best.validation if best else None
    return Standing(tuning.title, *counts, best_validation, seconds, search.ended, data_gap)


def cost(rows: Sequence[Standing], slots: int, at_a_time: int) -> str:
    """How many searches are to be done, and how long those take whose time is known; so many runs of each can
    be made at a time.
    """
    to_do = [row for row in rows if not row.ended and not row.lacking]
    text = f"{len(rows)} search{'' if len(rows) == 1 else 'es'}, {len(to_do)} to do"
    if times := [row.seconds for row in to_do if row.seconds is not None]:
        seconds = max(max(times) / min(slots, at_a_time), sum(times) / slots)
        text += f", {duration(seconds)} on {slots} at a time"
    return text


def percent(accuracy: float | None) -> str:
    """An accuracy as people read it; ``-`` where there is none."""
    return "-" if accuracy is None else f"{100 * accuracy:.2f}"


def settings(parameters: Mapping[str, Value]) -> str:
    """A configuration in one phrase."""
    return " ".join(f"{key}={value}" for key, value in parameters.items())


def line(search: Search, trial: Trial) -> str:
    """One line on a trial that has ended."""
    tuning, best = search.tuning, winner_of(search.trials)
    score_text = "" if trial.validation is None else f", validation {percent(trial.validation)}"
    reason = f" ({trial.reason})" if trial.reason else ""
    what = f"trial {trial.number + 1} of {tuning.trials}, {tuning.title}: {trial.state}{score_text}{reason}"
    best_text = percent(best.validation if best else None)
    return f"{what}, best {best_text}, {trial.seconds:.1f} s: {settings(trial.parameters)}"


def result(record: Record) -> str:
    """One line on a finished search."""
    usage, budget, winner = record.used, record.budget, record.winner
    scores = f"validation {percent(winner.validation)}, default {percent(record.default_validation)}"
    epochs = f"{usage.client_epochs:,.0f} of {budget.client_epochs:,.0f} client epochs"
    used = f"after {usage.trials} of {budget.trials} trials and {epochs}"
    return f"{record.tuning.title}: {scores}, {used}: {settings(winner.overrides)}"
