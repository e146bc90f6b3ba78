"""Searches as a table and lines for people, and as plain values for programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from bench.runner.display import duration
from bench.runner.plan import Estimator
from bench.tune.record import Record, Trial, client_epochs, winner_of
from bench.tune.search import Search, Searches
from bench.tune.tuning import Value

TEXTS = ("cell", "state")
COLUMNS = ("cell", "space", "trials", "runs", "client epochs", "best", "time", "state")


def row(search: Search, estimator: Estimator, data_gap: str) -> dict[str, Any]:
    """How far a search is, as a dry run has it for programs.

    ``seconds`` is what the rest takes, one run after the other; None where no like run is known. ``runs`` are
    stored, those of trials that have not ended included, whose client epochs do not count yet. ``lacking``
    says why its data are not at hand.
    """
    tuning, spec, best = search.tuning, search.tuning.spec, winner_of(search.trials)
    return {
        "search": tuning.name,
        "method": spec.method,
        "dataset": spec.dataset,
        "scenario": spec.scenario,
        "clients": spec.clients,
        "space": {key: list(values) for key, values in tuning.space.items()},
        "trials": {"done": len(search.trials), "asked": tuning.trials},
        "runs": sum(map(len, search.runs.values())),
        "client_epochs": {"used": client_epochs(search.trials), "asked": tuning.budget},
        "best_validation": best.validation if best else None,
        "seconds": _seconds_left(search, estimator),
        "ended": search.ended,
        "lacking": data_gap,
    }


def _seconds_left(search: Search, estimator: Estimator) -> float | None:
    """The time that a search's unused client epochs take, by runs like its default configuration."""
    tuning = search.tuning
    seconds = 0.0 if search.ended else estimator.seconds(tuning.spec)
    if seconds is None:
        return None
    epochs_left = tuning.budget - client_epochs(search.trials)
    return seconds * len(tuning.seeds) / tuning.run_epochs * epochs_left


def table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """One row a search."""
    grid = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for title in COLUMNS:
        is_text = title in TEXTS
        grid.add_column(title, justify="left" if is_text else "right", overflow="fold", no_wrap=not is_text)
    for entry in rows:
        seconds, trials, epochs = entry["seconds"], entry["trials"], entry["client_epochs"]
        grid.add_row(
            "/".join(str(entry[name]) for name in ("dataset", "scenario", "clients", "method")),
            f"{math.prod(map(len, entry['space'].values())):,}",
            f"{trials['done']}/{trials['asked']}",
            f"{entry['runs']:,}",
            f"{epochs['used']:,.0f}/{epochs['asked']:,}",
            percent(entry["best_validation"]),
            "unknown" if seconds is None else duration(seconds) if seconds else "-",
            entry["lacking"] or (f"done: {entry['ended']}" if entry["ended"] else "to do"),
        )
    return grid


def cost(rows: Sequence[Mapping[str, Any]], slots: int, at_a_time: int) -> str:
    """How many searches are to be done, and how long that takes; so many runs of each can be made at a
    time.
    """
    to_do = [entry for entry in rows if not entry["ended"] and not entry["lacking"]]
    times = [entry["seconds"] for entry in to_do if entry["seconds"] is not None]
    text = f"{len(rows)} search{'' if len(rows) == 1 else 'es'}, {len(to_do)} to do"
    if times:
        seconds = max(max(times) / min(slots, at_a_time), sum(times) / slots)
        text += f", {duration(seconds)} on {slots} at a time"
    if unknown_count := len(to_do) - len(times):
        text += f"; the time of {unknown_count} is unknown, no like run is stored"
    gap = slots - at_a_time * len(to_do)
    return text + (f"; {gap} slots stay idle, a larger --batch fills them" if 0 < gap < slots else "")


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


def outcome_json(searches: Searches) -> dict[str, Any]:
    """What a request came to, for programs."""
    keys = {"winner", "default_validation", "budget", "used"}
    rows = []
    for record, path in searches.records:
        rows.append({"search": record.study, "file": str(path), **record.model_dump(include=keys)})
    return {"finished": rows, "failed": searches.failed}
