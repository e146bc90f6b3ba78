"""What people and programs see of plans and of a sweep while it runs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from bench.engine.result import RunResult
from bench.engine.states import SETTLED
from bench.store.store import accuracies
from bench.sweep.plan import Estimator, Step, to_run

# Words --------------------------------------------------------------------------------------------


def duration(seconds: float) -> str:
    """Seconds as people say them; a tenth counts below ten."""
    if 0 < seconds < 0.05:
        return "under 0.1 s"
    if 0 < seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{max(seconds, 0):.0f} s"
    if seconds < 5370:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def runs(number: int) -> str:
    """``1 run``, ``1,440 runs``."""
    return f"{number:,} run{'' if number == 1 else 's'}"


def states(counts: Mapping[str, int]) -> str:
    """Counts by state in one phrase, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {state.replace('_', ' ')}" for state, count in ordered if count)


# Plans --------------------------------------------------------------------------------------------


def side_by_side(seconds: Sequence[float], slots: int) -> float:
    """What runs of so many seconds take together: spread evenly over the slots, and no less than the
    longest.
    """
    return max([sum(seconds) / slots, *seconds])


def summary(plan: Sequence[Step], estimator: Estimator, slots: int) -> str:
    """The runs of a plan by status, and ``to_do`` where there is anything."""
    text = f"{runs(len(plan))}: {states(Counter(step.status for step in plan))}"
    return f"{text}; {to_do(plan, estimator, slots)}" if to_run(plan) else text


def to_do(plan: Sequence[Step], estimator: Estimator, slots: int) -> str:
    """How many runs are to do, how long they take on so many slots, and what is not known."""
    times, unknown_count = _times(plan, estimator)
    count = len(times) + unknown_count
    text = f"{count:,} to run, time unknown, no like run is stored" if count else "nothing to run"
    if times:
        text = f"{count:,} to run, time {duration(side_by_side(times, slots))} on {slots} at a time"
        text += f" and {runs(unknown_count)} whose time is unknown" if unknown_count else ""
    if gap := len(to_run(plan)) - count:
        text += f"; {gap:,} more need data that are not here: the sweep tries to download them"
    return text


def _times(plan: Sequence[Step], estimator: Estimator) -> tuple[list[float], int]:
    """Expected seconds of the runs to do whose data are at hand, and of how many they are not known."""
    times = [estimator.seconds(step.spec) for step in to_run(plan) if step.status != "no_data"]
    return [seconds for seconds in times if seconds is not None], times.count(None)


def _total(steps: Sequence[Step], estimator: Estimator) -> float | None:
    """Seconds that steps take one after the other; None where these are not known of all."""
    times = [estimator.seconds(step.spec) for step in steps]
    return None if None in times else sum(filter(None, times))


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
        seconds = _total(rest, estimator)
        time = "unknown" if seconds is None else duration(seconds) if rest else ""
        reason = next((step.reason for step in steps if step.reason), "")
        counts = Counter("changed" if step.changed else step.status for step in steps)
        grid.add_row(*map(str, names), states(counts), time, reason)
    return grid


def as_json(
    plan: Sequence[Step],
    estimator: Estimator,
    slots: int,
    bytes_a_run: float | None,
    shipped: Collection[str] = (),
) -> dict[str, Any]:
    """The plan with every run's names, spec hash, status, reason and expected seconds.

    ``seconds`` is what the ready runs whose time is known take side by side, ``device_hours`` what they take
    together; None where that of no run is known. ``shipped`` are the spec hashes that come with the suite.

    ``levels`` are of stored settled runs. ``exact``: made by the installed sources. ``compatible``: by other
    sources, numbers declared the same. ``stale``: numbers declared to differ.
    """

    def level(steps: Sequence[Step], reason: str = "") -> dict[str, Any]:
        return {"runs": len(steps), "reason": reason, "seconds": _total(steps, estimator)}

    ready_steps = [step for step in to_run(plan) if step.status != "no_data"]
    times, unknown_count = _times(plan, estimator)
    is_known = bool(times) or not ready_steps
    settled_steps = [step for step in plan if step.status in SETTLED]
    changed_steps = [step for step in settled_steps if step.changed]
    stale_steps = [step for step in plan if step.status == "stale"]
    return {
        "counts": dict(Counter(step.status for step in plan)),
        "levels": {
            "exact": level([step for step in settled_steps if not step.changed]),
            "compatible": level(changed_steps, "the code's sources differ, its numerics version does not"),
            "stale": level(stale_steps, next((step.reason for step in stale_steps), "")),
        },
        "to_run": len(ready_steps),
        "shipped": sum(step.spec.hash in shipped for step in ready_steps),
        "seconds": side_by_side(times, slots) if is_known else None,
        "device_hours": sum(times) / 3600 if is_known else None,
        "unknown_times": unknown_count,
        "bytes": None if bytes_a_run is None else round(bytes_a_run * len(ready_steps)),
        "runs": [_row(step, estimator) for step in plan],
    }


def _row(step: Step, estimator: Estimator) -> dict[str, Any]:
    names = ("dataset", "scenario", "clients", "method", "seed")
    return {
        **dict(zip(names, step.planned.names, strict=True)),
        "spec_hash": step.spec.hash,
        "status": step.status,
        "reason": step.reason,
        "run_id": step.stored.id if step.stored else None,
        "seconds": estimator.seconds(step.spec),
        "code_changed": step.changed,
    }


def notebook_console() -> Console:
    """Standard output; in a notebook, whose cells show a terminal's bar, it counts as a terminal."""
    return Console(highlight=False, force_terminal="ipykernel" in sys.modules or None, force_jupyter=False)


# A sweep ------------------------------------------------------------------------------------------


def line(step: Step, result: RunResult) -> str:
    """One line on a finished run; ``test`` is the mean over clients of the trained models' test accuracy in
    percent, at the round of best mean validation accuracy, as ``bench runs list`` has it.
    """
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
        self._console = console
        self._only_notes = only_notes
        self._total = self._done = 0
        counted = (TextColumn("runs"), BarColumn(), MofNCompleteColumn())
        timed = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        has_bar = console.is_terminal and not only_notes
        self._bar = Progress(
            *counted, *timed, console=console, transient=True, disable=not has_bar, refresh_per_second=2
        )
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
        if not self._only_notes:
            self._done += 1
            number = str(self._done).rjust(len(str(self._total)))
            self.note(f"[{number}/{self._total}] {line(step, result)}")
            self._bar.advance(self._task)
