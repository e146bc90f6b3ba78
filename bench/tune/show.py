"""Searches as a table and lines for people, and as plain values for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from bench.sweep.plan import Estimator
from bench.sweep.show import duration
from bench.tune.record import Record, Trial, best_of, client_epochs
from bench.tune.run import Searches
from bench.tune.search import Standing
from bench.tune.tuning import Tuning, Value

TEXTS = ("dataset", "scenario", "method", "state")
COLUMNS = (*TEXTS[:2], "clients", "method", "space", "trials", "client epochs", "best", "time", "state")


@dataclass(frozen=True)
class Progress:
    """How far a search is. ``seconds`` is what the rest takes if no trial is stopped, one run after the
    other; None where no like run is known. ``lacking`` says why its data are not at hand.
    """

    tuning: Tuning
    standing: Standing
    seconds: float | None
    lacking: str = ""

    @property
    def client_epochs(self) -> float:
        """Used so far."""
        return client_epochs(self.standing.trials)

    @property
    def best(self) -> float | None:
        """The best validation accuracy so far."""
        best = best_of(self.standing.trials)
        return None if best is None else best.validation


def progress(tuning: Tuning, standing: Standing, history: Estimator, lacking: str) -> Progress:
    """How far a search is, with the time that its unused client epochs take, by its own trials or else by
    stored runs.
    """
    used = client_epochs(standing.trials)
    seconds: float | None = 0.0
    if not standing.ended:
        run = history.seconds(tuning.spec)
        rate = None if run is None else run * len(tuning.seeds) / tuning.run_epochs
        if used:
            rate = sum(trial.seconds for trial in standing.trials) / used
        seconds = None if rate is None else rate * (tuning.budget - used)
    return Progress(tuning, standing, seconds, lacking)


def table(searches: Sequence[Progress]) -> Table:
    """One row a search."""
    grid = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for title in COLUMNS:
        grid.add_column(title, justify="left" if title in TEXTS else "right", overflow="fold")
    for each in searches:
        spec, tuning, ended = each.tuning.spec, each.tuning, each.standing.ended
        grid.add_row(
            spec.dataset,
            spec.scenario,
            str(spec.clients),
            spec.method,
            f"{tuning.size:,}",
            f"{len(each.standing.trials)}/{tuning.trials}",
            f"{each.client_epochs:,.0f}/{tuning.budget:,}",
            percent(each.best),
            "unknown" if each.seconds is None else duration(each.seconds) if each.seconds else "-",
            each.lacking or (f"done: {ended}" if ended else "to do"),
        )
    return grid


def side_by_side(searches: Sequence[Progress], width: int) -> int:
    """Runs that some searches can have at a time: a trial of each seed, ``width`` trials of each search."""
    return sum(width * len(each.tuning.seeds) for each in searches)


def cost(searches: Sequence[Progress], slots: int, width: int) -> str:
    """How many searches are to be done, and how long that takes if no trial is stopped."""
    to_do = [each for each in searches if not each.standing.ended and not each.lacking]
    known = [(each, each.seconds) for each in to_do if each.seconds is not None]
    text = f"{len(searches)} search{'' if len(searches) == 1 else 'es'}, {len(to_do)} to do"
    if known:
        longest = max(seconds / min(slots, side_by_side([each], width)) for each, seconds in known)
        least = max(longest, sum(seconds for _, seconds in known) / slots)
        text += f", {duration(least)} on {slots} at a time if no trial is stopped"
    unknown = len(to_do) - len(known)
    text += f"; the time of {unknown} is unknown, no like run is stored" if unknown else ""
    idle = slots - side_by_side(to_do, width)
    return text + (f"; {idle} slots stay idle, a larger --batch fills them" if 0 < idle < slots else "")


def percent(accuracy: float | None) -> str:
    """An accuracy as people read it; ``-`` where there is none."""
    return "-" if accuracy is None else f"{100 * accuracy:.2f}"


def settings(parameters: Mapping[str, Value]) -> str:
    """A configuration in one phrase."""
    return " ".join(f"{key}={value}" for key, value in parameters.items())


def line(tuning: Tuning, standing: Standing, trial: Trial) -> str:
    """One line on a trial that has ended."""
    best = best_of(standing.trials)
    reached = "" if trial.validation is None else f", validation {percent(trial.validation)}"
    why = f" ({trial.reason})" if trial.reason else ""
    return (
        f"[{trial.number + 1}/{tuning.trials}] {tuning.title}: {trial.state}{reached}{why}, best "
        f"{percent(best.validation if best else None)}, {trial.seconds:.1f} s: {settings(trial.parameters)}"
    )


def result(record: Record) -> str:
    """One line on a finished search."""
    used, budget = record.used, record.budget
    return (
        f"{record.tuning.title}: validation "
        f"{percent(record.winner.validation)}, default {percent(record.default_validation)}, after "
        f"{used.trials} of {budget.trials} trials and {used.client_epochs:,.0f} of "
        f"{budget.client_epochs:,.0f} client epochs: {settings(record.winner.overrides)}"
    )


def as_json(searches: Sequence[Progress], skipped: Mapping[str, str], slots: int) -> dict[str, Any]:
    """A dry run for programs."""
    rows = [
        {
            "study": each.tuning.name,
            "method": each.tuning.spec.method,
            "dataset": each.tuning.spec.dataset,
            "scenario": each.tuning.spec.scenario,
            "clients": each.tuning.spec.clients,
            "space": {key: list(values) for key, values in each.tuning.space.items()},
            "trials": {"done": len(each.standing.trials), "asked": each.tuning.trials},
            "client_epochs": {"used": each.client_epochs, "asked": each.tuning.budget},
            "best_validation": each.best,
            "seconds": each.seconds,
            "ended": each.standing.ended,
            "lacking": each.lacking,
        }
        for each in searches
    ]
    return {"studies": rows, "skipped": dict(skipped), "slots": slots}


def outcome_json(tuned: Searches) -> dict[str, Any]:
    """What a request came to, for programs."""
    finished = [
        {
            "study": record.study,
            "file": str(path),
            "winner": record.winner.model_dump(),
            "default_validation": record.default_validation,
            "budget": record.budget.model_dump(),
            "used": record.used.model_dump(),
        }
        for record, path in tuned.records
    ]
    return {"finished": finished, "failed": tuned.failed}
