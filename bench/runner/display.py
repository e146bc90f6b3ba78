"""What people and programs see of plans and of sweeps."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from bench import process
from bench.engine.result import RunResult
from bench.runner.plan import Estimator, Step, side_by_side, to_run
from bench.store import open_store
from bench.store.connect import Database
from bench.store.store import accuracies, now

# Words --------------------------------------------------------------------------------------------


def duration(seconds: float) -> str:
    """Seconds as people say them; a tenth counts below ten."""
    if seconds < 59.5:
        return f"{seconds:.1f} s" if 0 < seconds < 9.95 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5370 else f"{seconds / 3600:.1f} h"


def runs(number: int) -> str:
    """``1 run``, ``1,440 runs``."""
    return f"{number:,} run{'' if number == 1 else 's'}"


def states(counts: Mapping[str, int]) -> str:
    """Counts by state in one phrase, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {state.replace('_', ' ')}" for state, count in ordered if count)


# Plans --------------------------------------------------------------------------------------------


def summary(plan: Sequence[Step], estimator: Estimator, slots: int) -> str:
    """The runs of a plan by status, and ``to_do`` where there is anything."""
    text = f"{runs(len(plan))}: {states(Counter(step.status for step in plan))}"
    return f"{text}; {to_do(plan, estimator, slots)}" if to_run(plan) else text


def to_do(plan: Sequence[Step], estimator: Estimator, slots: int) -> str:
    """How many runs are to do, how long they take on so many slots, and what is not known."""
    steps = _ready(plan)
    times = _times(steps, estimator)
    text = f"{len(steps):,} to run, time unknown, no like run is stored" if steps else "nothing to run"
    if times:
        text = f"{len(steps):,} to run, time {duration(side_by_side(times, slots))} on {slots} at a time"
        unknown_count = len(steps) - len(times)
        text += f" and {runs(unknown_count)} whose time is unknown" if unknown_count else ""
    if gap := len(to_run(plan)) - len(steps):
        text += f"; {gap:,} more need data that are not here: the sweep tries to download them"
    return text


def _ready(plan: Sequence[Step]) -> list[Step]:
    """The runs to do whose data are at hand."""
    return [step for step in to_run(plan) if step.status != "no_data"]


def _times(steps: Sequence[Step], estimator: Estimator) -> list[float]:
    """Expected seconds of those runs of which they are known."""
    times = [estimator.seconds(step.spec) for step in steps]
    return [seconds for seconds in times if seconds is not None]


def table(plan: Sequence[Step], estimator: Estimator) -> Table:
    """One row a cell: where its runs stand, how long the rest takes, and the first reason."""
    grid = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for title in ("dataset", "scenario", "clients", "method", "runs", "time", "reason"):
        grid.add_column(title, justify="right" if title in ("clients", "time") else "left", overflow="fold")
    cells: dict[tuple[str, str, int, str], list[Step]] = {}
    for step in plan:
        cells.setdefault(step.planned.names[:4], []).append(step)
    for names, steps in cells.items():
        rest = [step for step in steps if step.to_run]
        times = _times(rest, estimator)
        time_left = "unknown" if len(times) < len(rest) else duration(sum(times)) if rest else ""
        reason = next((step.reason for step in steps if step.reason), "")
        counts = Counter("changed" if step.changed else step.status for step in steps)
        grid.add_row(*map(str, names), states(counts), time_left, reason)
    return grid


def as_json(
    plan: Sequence[Step], estimator: Estimator, slots: int, shipped: Collection[str] = ()
) -> dict[str, Any]:
    """The plan with every run's names, spec hash, status, reason and expected seconds.

    ``seconds`` is what the ready runs whose time is known take side by side, ``device_hours`` what they take
    together; None where that of no run is known. ``shipped`` are the spec hashes that come with the suite.
    """
    steps = _ready(plan)
    times = _times(steps, estimator)
    is_known = bool(times) or not steps
    names = ("dataset", "scenario", "clients", "method", "seed")
    rows = []
    for step in plan:
        row = dict(zip(names, step.planned.names, strict=True))
        row |= {"spec_hash": step.spec.hash, "status": step.status, "reason": step.reason}
        row |= {"seconds": estimator.seconds(step.spec), "code_changed": step.changed}
        rows.append(row)
    return {
        "counts": dict(Counter(step.status for step in plan)),
        "to_run": len(steps),
        "shipped": sum(step.spec.hash in shipped for step in steps),
        "seconds": side_by_side(times, slots) if is_known else None,
        "device_hours": sum(times) / 3600 if is_known else None,
        "unknown_times": len(steps) - len(times),
        "runs": rows,
    }


# Sweeps -------------------------------------------------------------------------------------------


def line(step: Step, result: RunResult) -> str:
    """One line on a finished run, with its test accuracy as ``bench runs list`` has it."""
    if result.state != "done":
        return f"{step.name}: {result.state.replace('_', ' ')}: {result.reason}"
    reading = ("trained", "test", "best_val")
    rows = [row for row in accuracies(result) if (row["stage"], row["split"], row["rule"]) == reading]
    test = 100 * sum(row["value"] for row in rows) / len(rows)
    return f"{step.name}: done {result.seconds['total']:.1f} s, test {test:.1f} %"


class Display:
    """Prints what a sweep says; used as a context manager around it. Unless ``only_notes``, a run has one
    numbered line and, in a terminal, a progress bar with the time left stands below the lines.
    """

    def __init__(self, console: Console, only_notes: bool = False) -> None:
        self._console, self._only_notes = console, only_notes
        self._total = self._done = 0
        columns = (
            "runs",
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            "left",
            TimeRemainingColumn(),
        )
        is_hidden = only_notes or not console.is_terminal
        self._bar = Progress(*columns, console=console, transient=True, disable=is_hidden)
        self._task = self._bar.add_task("runs", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def note(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def started(self, total: int) -> None:
        """Take how many runs are to be made."""
        self._total = total
        self._bar.update(self._task, total=total)

    def finished(self, step: Step, result: RunResult) -> None:
        """Print the line of a run that has ended and is stored, and advance the bar."""
        self._done += 1
        self._bar.advance(self._task)
        if not self._only_notes:
            number = str(self._done).rjust(len(str(self._total)))
            self.note(f"[{number}/{self._total}] {line(step, result)}")


def status(url: str) -> str:
    """What the sweeps into a database are at, on whatever hosts: how far they are, and what runs where.

    Raises:
        RequestError: the database cannot be read.
    """
    database = Database(url)
    lines = []
    if not database.empty():
        with open_store(url, create=False) as store:
            sweeps = store.sweeps()
        for sweep, claims in sweeps:
            if process.runs(sweep.owner) is False:
                continue
            host, pid = sweep.owner.split(":")[:2]
            counts = json.loads(sweep.counts)
            ended = f"{sum(counts.values()):,} of {runs(sweep.total)} ended: {states(counts) or 'none'}"
            lines.append(f"sweep {pid} on {host} into {database.name}, for {_age(sweep.started)}")
            lines += [ended, f"{len(claims)} running, {sweep.left:,} waiting"]
            lines += [f"  {claim.device}: {claim.run}, for {_age(claim.since)}" for claim in claims]
    return "\n".join(lines) or "no sweep is running"


def _age(moment: datetime | None) -> str:
    """How long ago a moment is."""
    return duration((now() - (moment or now())).total_seconds())
