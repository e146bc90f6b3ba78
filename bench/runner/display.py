"""What people and programs see of plans and of sweeps."""

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


def as_json(
    plan: Sequence[Step], estimator: Estimator, slots: int, shipped: Collection[str] = ()
) -> dict[str, Any]:
    """The plan with every run. ``to_run`` counts those to make whose data are at hand; ``seconds`` is what
    those of known times take on so many slots: spread over the slots, and no less than the longest. None:
    no time is known. ``shipped`` are the spec hashes that come with the suite.
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
    """The runs of a plan by status; how many are to be made, and how long they take on so many slots."""
    tree, count = as_json(plan, estimator, slots), len(to_run(plan))
    text = f"{runs(len(plan))}: {states(tree['counts'])}"
    if not count:
        return text
    time = f"{duration(tree['seconds'])} on {slots} at a time" if tree["seconds"] else "unknown"
    others = count - tree["to_run"] + tree["unknown_times"] if tree["seconds"] else 0
    text += f"; {count:,} to run, time {time}"
    return f"{text}, without {runs(others)} whose time is unknown" if others else text


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
