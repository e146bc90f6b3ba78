"""Searches as a table and lines for people, and as plain values for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from bench.sweep.display import duration
from bench.sweep.plan import Estimator
from bench.tune.record import Record, Trial
from bench.tune.run import Searches
from bench.tune.search import SearchProgress
from bench.tune.tuning import Tuning, Value

TEXTS = ("cell", "state")
COLUMNS = ("cell", "space", "trials", "runs", "client epochs", "best", "time", "state")


@dataclass(frozen=True)
class SearchStatus:
    """How far a search is. ``seconds`` is what the rest takes, one run after the other; None where no like
    run is known. ``lacking`` says why its data are not at hand. ``runs`` are stored, those of trials that
    have not ended included, whose client epochs do not count yet.
    """

    tuning: Tuning
    progress: SearchProgress
    seconds: float | None
    lacking: str = ""
    runs: int = 0


def status(
    tuning: Tuning, progress: SearchProgress, history: Estimator, data_gap: str, runs: int = 0
) -> SearchStatus:
    """How far a search is, with the time that its unused client epochs take, by its own trials or else by
    stored runs.
    """
    used_epochs = progress.client_epochs
    seconds: float | None = 0.0
    if not progress.ended:
        run = history.seconds(tuning.spec)
        rate = None if run is None else run * len(tuning.seeds) / tuning.run_epochs
        if used_epochs:
            rate = sum(trial.seconds for trial in progress.trials) / used_epochs
        seconds = None if rate is None else rate * (tuning.budget - used_epochs)
    return SearchStatus(tuning, progress, seconds, data_gap, runs)


def table(searches: Sequence[SearchStatus]) -> Table:
    """One row a search."""
    grid = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for title in COLUMNS:
        grid.add_column(
            title, justify="left" if title in TEXTS else "right", overflow="fold", no_wrap=title not in TEXTS
        )
    for entry in searches:
        spec, tuning, end = entry.tuning.spec, entry.tuning, entry.progress.ended
        grid.add_row(
            f"{spec.dataset}/{spec.scenario}/{spec.clients}/{spec.method}",
            f"{tuning.size:,}",
            f"{len(entry.progress.trials)}/{tuning.trials}",
            f"{entry.runs:,}",
            f"{entry.progress.client_epochs:,.0f}/{tuning.budget:,}",
            percent(entry.progress.best),
            "unknown" if entry.seconds is None else duration(entry.seconds) if entry.seconds else "-",
            entry.lacking or (f"done: {end}" if end else "to do"),
        )
    return grid


def side_by_side(searches: Sequence[SearchStatus], width: int) -> int:
    """Runs that some searches can have at a time: a trial of each seed, ``width`` trials of each search."""
    return sum(width * len(entry.tuning.seeds) for entry in searches)


def cost(searches: Sequence[SearchStatus], slots: int, width: int) -> str:
    """How many searches are to be done, and how long that takes."""
    to_do = [entry for entry in searches if not entry.progress.ended and not entry.lacking]
    times = [(entry, entry.seconds) for entry in to_do if entry.seconds is not None]
    text = f"{len(searches)} search{'' if len(searches) == 1 else 'es'}, {len(to_do)} to do"
    if times:
        maximum = max(seconds / min(slots, side_by_side([entry], width)) for entry, seconds in times)
        minimum = max(maximum, sum(seconds for _, seconds in times) / slots)
        text += f", {duration(minimum)} on {slots} at a time"
    unknowns = len(to_do) - len(times)
    text += f"; the time of {unknowns} is unknown, no like run is stored" if unknowns else ""
    gap = slots - side_by_side(to_do, width)
    return text + (f"; {gap} slots stay idle, a larger --batch fills them" if 0 < gap < slots else "")


def percent(accuracy: float | None) -> str:
    """An accuracy as people read it; ``-`` where there is none."""
    return "-" if accuracy is None else f"{100 * accuracy:.2f}"


def settings(parameters: Mapping[str, Value]) -> str:
    """A configuration in one phrase."""
    return " ".join(f"{key}={value}" for key, value in parameters.items())


def line(tuning: Tuning, progress: SearchProgress, trial: Trial) -> str:
    """One line on a trial that has ended."""
    score_text = "" if trial.validation is None else f", validation {percent(trial.validation)}"
    reason = f" ({trial.reason})" if trial.reason else ""
    return (
        f"trial {trial.number + 1} of {tuning.trials}, {tuning.title}: {trial.state}{score_text}{reason}, "
        f"best {percent(progress.best)}, {trial.seconds:.1f} s: {settings(trial.parameters)}"
    )


def result(record: Record) -> str:
    """One line on a finished search."""
    usage, budget = record.used, record.budget
    return (
        f"{record.tuning.title}: validation "
        f"{percent(record.winner.validation)}, default {percent(record.default_validation)}, after "
        f"{usage.trials} of {budget.trials} trials and {usage.client_epochs:,.0f} of "
        f"{budget.client_epochs:,.0f} client epochs: {settings(record.winner.overrides)}"
    )


def as_json(searches: Sequence[SearchStatus], skipped: Mapping[str, str], slots: int) -> dict[str, Any]:
    """A dry run for programs."""
    rows = [
        {
            "search": entry.tuning.name,
            "method": entry.tuning.spec.method,
            "dataset": entry.tuning.spec.dataset,
            "scenario": entry.tuning.spec.scenario,
            "clients": entry.tuning.spec.clients,
            "space": {key: list(values) for key, values in entry.tuning.space.items()},
            "trials": {"done": len(entry.progress.trials), "asked": entry.tuning.trials},
            "runs": entry.runs,
            "client_epochs": {"used": entry.progress.client_epochs, "asked": entry.tuning.budget},
            "best_validation": entry.progress.best,
            "seconds": entry.seconds,
            "ended": entry.progress.ended,
            "lacking": entry.lacking,
        }
        for entry in searches
    ]
    return {"searches": rows, "skipped": dict(skipped), "slots": slots}


def outcome_json(searches: Searches) -> dict[str, Any]:
    """What a request came to, for programs."""
    rows = [
        {
            "search": record.study,
            "file": str(path),
            "winner": record.winner.model_dump(),
            "default_validation": record.default_validation,
            "budget": record.budget.model_dump(),
            "used": record.used.model_dump(),
        }
        for record, path in searches.records
    ]
    return {"finished": rows, "failed": searches.failed}
