"""Show plans and sweeps, to people as text and to programs as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

from bench.engine.result import RunResult
from bench.runner.plan import Estimator, Step, to_run
from bench.store.store import accuracies


def duration(seconds: float) -> str:
    """Format seconds for people; below ten with one decimal."""
    if seconds < 59.5:
        return f"{seconds:.1f} s" if 0 < seconds < 9.95 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5370 else f"{seconds / 3600:.1f} h"


def runs(number: int) -> str:
    """Format a number of runs: ``1 run``, ``1,440 runs``."""
    return f"{number:,} run{'' if number == 1 else 's'}"


def states(counts: Mapping[str, int]) -> str:
    """Format counts by state as one phrase, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {state.replace('_', ' ')}" for state, count in ordered if count)


def as_json(
    plan: Sequence[Step], estimator: Estimator, slots: int, shipped: Collection[str] = ()
) -> dict[str, Any]:
    """Return the plan with every run. ``to_run``: how many runs are to make and have their data at hand.
    ``seconds``: the time of runs of known times: their sum divided by ``slots``, but at least the longest;
    None if no time is known. ``shipped``: the spec hashes that come with the suite.
    """
    ready = [step for step in to_run(plan) if step.status != "no_data"]
    times = [seconds for step in ready if (seconds := estimator.seconds(step.spec)) is not None]
    is_known = bool(times) or not ready
    rows = []
    for step in plan:
        row = dict(zip(("dataset", "scenario", "clients", "method", "seed"), step.planned.names, strict=True))
        row |= {"spec_hash": step.spec.hash, "status": step.status, "reason": step.reason}
        row |= {"seconds": estimator.seconds(step.spec), "code_changed": step.changed}
        rows.append(row)
    return {
        "counts": dict(Counter(step.status for step in plan)),
        "to_run": len(ready),
        "shipped": sum(step.spec.hash in shipped for step in ready),
        "seconds": max([sum(times) / slots, *times]) if is_known else None,
        "device_hours": sum(times) / 3600 if is_known else None,
        "unknown_times": len(ready) - len(times),
        "runs": rows,
    }


def summary(plan: Sequence[Step], estimator: Estimator, slots: int) -> str:
    """Count a plan's runs by status; say how many are to run, and their time on ``slots`` slots."""
    tree, count = as_json(plan, estimator, slots), len(to_run(plan))
    text = f"{runs(len(plan))}: {states(tree['counts'])}"
    if not count:
        return text
    time = f"{duration(tree['seconds'])} on {slots} at a time" if tree["seconds"] else "unknown"
    others = count - tree["to_run"] + tree["unknown_times"] if tree["seconds"] else 0
    text += f"; {count:,} to run, time {time}"
    return f"{text}, without {runs(others)} whose time is unknown" if others else text


def line(step: Step, result: RunResult) -> str:
    """Return one line on a finished run, with its test accuracy as ``bench runs list`` shows it."""
    if result.state != "done":
        return f"{step.name}: {result.state.replace('_', ' ')}: {result.reason}"
    reading = ("trained", "test", "best_val")
    rows = [row for row in accuracies(result) if (row["stage"], row["split"], row["rule"]) == reading]
    test = 100 * sum(row["value"] for row in rows) / len(rows)
    return f"{step.name}: done {result.seconds['total']:.1f} s, test {test:.1f} %"


class Display:
    """Prints the messages of a sweep; a context manager around the sweep. Unless ``only_notes``, each run has
    a numbered line, and a terminal shows a progress bar with the time left below the lines.
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
        """Set how many runs are to be made."""
        self._total = total
        self._bar.update(self._task, total=total)

    def finished(self, step: Step, result: RunResult) -> None:
        """Print the line of a run that has ended and is stored, and advance the bar."""
        self._done += 1
        self._bar.advance(self._task)
        if not self._only_notes:
            number = str(self._done).rjust(len(str(self._total)))
            self.note(f"[{number}/{self._total}] {line(step, result)}")
