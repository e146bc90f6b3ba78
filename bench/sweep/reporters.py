"""What people see of a sweep while it runs: a line a run as it ends, and a bar in a terminal."""

from __future__ import annotations

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
    """Hears of everything that a sweep does, and says nothing; used as a context manager around it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def started(self, total: int) -> None:
        """``total`` runs are to be done."""

    def finished(self, step: Step, result: RunResult) -> None:
        """A run has ended and is stored."""

    def note(self, text: str) -> None:
        """Something else that a person should know."""


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


class PlainLines(Reporter):
    """One numbered line a run."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._total = self._done = 0

    def started(self, total: int) -> None:
        """Remember the total."""
        self._total = total

    def finished(self, step: Step, result: RunResult) -> None:
        """Print the line."""
        self._done += 1
        number = str(self._done).rjust(len(str(self._total)))
        self.note(f"[{number}/{self._total}] {line(step, result)}")

    def note(self, text: str) -> None:
        """Print the text."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class Bar(PlainLines):
    """A progress bar with the time left, below the lines of the finished runs."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        columns = (
            TextColumn("runs"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task("runs", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def started(self, total: int) -> None:
        """Set the bar's length."""
        super().started(total)
        self._progress.update(self._task, total=total)

    def finished(self, step: Step, result: RunResult) -> None:
        """Print the line and advance the bar."""
        super().finished(step, result)
        self._progress.advance(self._task)


def reporter(console: Console) -> Reporter:
    """The display that fits where ``console`` writes to."""
    return Bar(console) if console.is_terminal else PlainLines(console)
