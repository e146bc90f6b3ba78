"""What people see of a sweep while it runs: a line a run as it ends, and a bar in a terminal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bench.engine.result import RunResult
from bench.store.store import accuracies
from bench.sweep.plan import Step


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


def test_accuracy(result: RunResult) -> float:
    """Mean over clients of the trained models' test accuracy in percent, at the round of best mean
    validation accuracy, as ``bench runs list`` has it.
    """
    values: list[float] = [
        row["value"]
        for row in accuracies(result)
        if (row["stage"], row["split"], row["rule"]) == ("trained", "test", "best_val")
    ]
    return 100 * sum(values) / len(values)


def line(step: Step, result: RunResult) -> str:
    """One line on a finished run."""
    if result.state == "done":
        return f"{step.name}: done {result.seconds['total']:.1f} s, test {test_accuracy(result):.1f} %"
    return f"{step.name}: {result.state.replace('_', ' ')}: {result.reason}"


class Display(Reporter):
    """One numbered line a run and, in a terminal, a progress bar with the time left below the lines."""

    def __init__(self, console: Console) -> None:
        super().__init__(partial(console.print, markup=False, highlight=False, soft_wrap=True))
        self._console = console
        self._total = self._done = 0
        columns = (
            TextColumn("runs"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=console, transient=True)  # shown once it is started
        self._task = self._bar.add_task("runs", total=None)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
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
