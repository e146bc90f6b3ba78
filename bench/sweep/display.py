"""What people and programs see of plans and of a sweep while it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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

from bench.dataset import DATASETS
from bench.engine.result import RunResult
from bench.engine.states import SETTLED
from bench.store.store import accuracies
from bench.sweep.plan import Plan, Step

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


def to_do(plan: Plan, slots: int) -> str:
    """How many runs are to do, how long they take on so many slots, and what is not known."""
    count, times = len(plan.ready), plan.times
    if times or not count:
        time = f"{duration(side_by_side(times, slots))} on {slots} at a time"
        time += f" and {runs(plan.unknown_times)} whose time is unknown" if plan.unknown_times else ""
    else:
        time = "unknown, no like run is stored"
    text = f"{count:,} to run, time {time}" if count else "nothing to run with the data at hand"
    datasets = [DATASETS.all()[step.spec.dataset] for step in plan.to_run if step.status == "no_data"]
    offered_count = sum(all(file.has_address for file in dataset.files) for dataset in datasets)
    if offered_count:
        text += f"; {offered_count:,} more need data that the sweep tries to download"
    if offered_count < len(datasets):
        text += f"; {len(datasets) - offered_count:,} more need files that have no public address"
    return text


def nothing(plan: Plan, rerun: str | None) -> str:
    """Why a sweep had nothing to run."""
    text = f"none to be made again as {rerun}" if rerun else "nothing to run"
    return f"{runs(len(plan.steps))}: {states(plan.counts)}; {text}"


def shipped_line(count: int) -> str:
    """What the runs that come with the suite are to a plan that has ``count`` of them to run."""
    verb = "comes" if count == 1 else "come"
    return f"{runs(count)} of these {verb} with the suite: bench report shows them without a sweep"


def table(plan: Plan) -> Table:
    """One row a cell: where its runs stand, how long the rest takes, and the first reason."""
    grid = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for title in ("dataset", "scenario", "clients", "method", "runs", "time", "reason"):
        grid.add_column(title, justify="right" if title in ("clients", "time") else "left", overflow="fold")
    cells: dict[tuple[str, str, int, str], list[Step]] = {}
    for step in plan.steps:
        cells.setdefault(step.planned.names[:4], []).append(step)
    for (dataset, scenario, clients, method), steps in cells.items():
        times = [step.seconds for step in steps if step.to_run]
        time = "unknown" if None in times else duration(sum(filter(None, times))) if times else ""
        reason = next((step.reason for step in steps if step.reason), "")
        counts = Counter("changed" if step.changed else step.status for step in steps)
        grid.add_row(dataset, scenario, str(clients), method, states(counts), time, reason)
    return grid


def _level(steps: Sequence[Step], reason: str = "") -> dict[str, Any]:
    """Stored runs of one level: how many, the first reason, and the seconds that making them again takes;
    None where these are not known of all.
    """
    seconds = [step.seconds for step in steps]
    total = None if None in seconds else sum(filter(None, seconds))
    return {"runs": len(steps), "reason": reason, "seconds": total}


def as_json(plan: Plan, slots: int, bytes_a_run: float | None, shipped: int = 0) -> dict[str, Any]:
    """The plan with every run's names, spec hash, status, reason and expected seconds.

    ``seconds`` is what the ready runs whose time is known take side by side, ``device_hours`` what they take
    together; None where that of no run is known. ``shipped`` of the runs to do come with the suite.

    ``levels`` are of stored settled runs. ``exact``: made by the installed sources. ``compatible``: by other
    sources, numbers declared the same. ``stale``: numbers declared to differ.
    """
    is_known = bool(plan.times) or not plan.ready
    settled_steps = [step for step in plan.steps if step.status in SETTLED]
    stale_steps = [step for step in plan.steps if step.status == "stale"]
    stale_reason = next((step.reason for step in stale_steps), "")
    same = "the code's sources differ, its numerics version does not"
    return {
        "counts": plan.counts,
        "levels": {
            "exact": _level([step for step in settled_steps if not step.changed]),
            "compatible": _level([step for step in settled_steps if step.changed], same),
            "stale": _level(stale_steps, stale_reason),
        },
        "to_run": len(plan.ready),
        "shipped": shipped,
        "seconds": side_by_side(plan.times, slots) if is_known else None,
        "device_hours": sum(plan.times) / 3600 if is_known else None,
        "unknown_times": plan.unknown_times,
        "bytes": None if bytes_a_run is None else round(bytes_a_run * len(plan.ready)),
        "runs": [
            {
                "dataset": step.spec.dataset,
                "scenario": step.spec.scenario,
                "clients": step.spec.clients,
                "method": step.planned.method,
                "seed": step.spec.seed,
                "spec_hash": step.spec.hash,
                "status": step.status,
                "reason": step.reason,
                "run_id": step.stored.id if step.stored else None,
                "seconds": step.seconds,
                "code_changed": step.changed,
            }
            for step in plan.steps
        ],
    }


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


class Reporter:
    """Hears of everything that a sweep does, and passes on what else a person should know, as ``note``; used
    as a context manager around it.
    """

    def __init__(self, note: Callable[[str], None] = lambda text: None) -> None:
        self.note = note

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def started(self, total: int) -> None:
        """``total`` runs are to be done."""

    def finished(self, step: Step, result: RunResult) -> None:
        """A run has ended and is stored."""


class Display(Reporter):
    """One numbered line a run and, in a terminal, a progress bar with the time left below the lines."""

    def __init__(self, console: Console) -> None:
        super().__init__(partial(console.print, markup=False, highlight=False, soft_wrap=True))
        self._total = self._done = 0
        columns = (
            TextColumn("runs"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("runs", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def started(self, total: int) -> None:
        """Set the bar's length."""
        self._total = total
        self._bar.update(self._task, total=total)

    def finished(self, step: Step, result: RunResult) -> None:
        """Print the line and advance the bar."""
        self._done += 1
        number = str(self._done).rjust(len(str(self._total)))
        self.note(f"[{number}/{self._total}] {line(step, result)}")
        self._bar.advance(self._task)
