"""What people and programs see of plans, of runs as they end, and of stored runs and cells."""

from __future__ import annotations

import difflib
import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import median
from typing import Any, Self

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from bench import paths
from bench.engine.result import RunResult
from bench.errors import RequestError, unknown
from bench.resolve import resolve
from bench.spec import RunSpec, difference
from bench.store import Store
from bench.store.store import accuracies
from bench.sweep.plan import Plan, Step
from bench.sweep.policy import SETTLED


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def runs(number: int) -> str:
    """``1 run``, ``1,440 runs``."""
    return f"{number:,} run{'' if number == 1 else 's'}"


def states(counts: Mapping[str, int]) -> str:
    """Counts by state in one phrase, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {state.replace('_', ' ')}" for state, count in ordered if count)


def side_by_side(seconds: Sequence[float], slots: int) -> float:
    """What runs of so many seconds take together: spread evenly over the slots, and no less than the
    longest.
    """
    return max([sum(seconds) / slots, *seconds])


def _seconds(plan: Plan, slots: int) -> float:
    """Seconds that the ready runs whose time is known take."""
    return side_by_side([step.seconds for step in plan.ready if step.seconds is not None], slots)


def to_do(plan: Plan, slots: int) -> str:
    """How many runs are to do, how long they take on so many slots, and what is not known."""
    count, unknowns = len(plan.ready), plan.unknown_times
    blocked_count = len(plan.to_run) - count
    if unknowns == count:
        time = "unknown, no like run is stored"
    else:
        time = f"{duration(_seconds(plan, slots))} on {slots} at a time"
        time += f" and {runs(unknowns)} whose time is unknown" if unknowns else ""
    text = f"{count:,} to run, time {time}" if count else "nothing to run with the data at hand"
    return text + (
        f"; {blocked_count:,} more need data that the sweep tries to download" if blocked_count else ""
    )


def all_done(plan: Plan) -> str:
    """That a sweep had nothing left to run."""
    number = len(plan.steps)
    return "the only run is done" if number == 1 else f"all {number:,} runs are done"


def nothing(plan: Plan, rerun: str | None) -> str:
    """Why a sweep had nothing to run."""
    text = f"none to be made again as {rerun}" if rerun else "nothing to run"
    return f"{runs(len(plan.steps))}: {states(plan.counts)}; {text}"


def took(plan: Plan, slots: int, seconds: float, whole: bool) -> str:
    """How long a sweep took; beside it what was expected, if that is known and the ``whole`` plan was run."""
    forecast = f", expected {duration(_seconds(plan, slots))}" if whole and not plan.unknown_times else ""
    return f"took {duration(seconds)}{forecast}"


def _cells(plan: Plan) -> list[tuple[tuple[str, str, int, str], list[Step]]]:
    cells: dict[tuple[str, str, int, str], list[Step]] = {}
    for step in plan.steps:
        cells.setdefault(step.planned.names[:4], []).append(step)
    return list(cells.items())


def table(plan: Plan) -> Table:
    """One row a cell: where its runs stand, how long the rest takes, and the first reason."""
    grid = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for title in ("dataset", "scenario", "clients", "method", "runs", "time", "reason"):
        grid.add_column(title, justify="right" if title in ("clients", "time") else "left", overflow="fold")
    for (dataset, scenario, clients, method), steps in _cells(plan):
        todo = [step for step in steps if step.to_run]
        times = [step.seconds for step in todo if step.seconds is not None]
        time = "" if not todo else duration(sum(times)) if len(times) == len(todo) else "unknown"
        reason = next((step.reason for step in steps if step.reason), "")
        counts = Counter("changed" if step.changed else step.status for step in steps)
        grid.add_row(dataset, scenario, str(clients), method, states(counts), time, reason)
    return grid


def methods(plan: Plan) -> Table:
    """One row a method with runs to do: how many, and how long they take one after the other."""
    grid = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for title in ("method", "to run", "one run", "together"):
        grid.add_column(title, justify="left" if title == "method" else "right")
    for method in dict.fromkeys(step.spec.method for step in plan.ready):
        steps = [step for step in plan.ready if step.spec.method == method]
        times = [step.seconds for step in steps if step.seconds is not None]
        unknown_text = f"{runs(len(steps) - len(times))} unknown" if len(times) < len(steps) else ""
        total_text = ", ".join(filter(None, [duration(sum(times)) if times else "", unknown_text]))
        grid.add_row(method, f"{len(steps):,}", duration(median(times)) if times else "", total_text)
    return grid


def levels(plan: Plan) -> dict[str, dict[str, Any]]:
    """The stored settled runs by how well their code is the installed one.

    ``exact``: the same sources. ``compatible``: other sources, numbers declared the same. ``stale``:
    numbers declared to differ. Of each the number of runs, the first reason and the seconds that
    making them again takes (None: not known of all).
    """
    reasons = {
        "exact": "",
        "compatible": "the code's sources differ, its numerics version does not",
        "stale": "",
    }
    by_level: dict[str, list[Step]] = {level: [] for level in reasons}
    for step in plan.steps:
        if step.status in SETTLED:
            by_level["compatible" if step.changed else "exact"].append(step)
        elif step.status == "stale":
            by_level["stale"].append(step)
    return {
        level: {
            "runs": len(steps),
            "reason": next((step.reason for step in steps if level == "stale"), reasons[level]),
            "seconds": None
            if any(step.seconds is None for step in steps)
            else sum(step.seconds or 0.0 for step in steps),
        }
        for level, steps in by_level.items()
    }


def level_lines(plan: Plan) -> list[str]:
    """The levels that call for a decision, with reason and cost."""
    advice = {
        "compatible": "kept unless --rerun changed asks for them",
        "stale": "made again by a sweep; --rerun stale makes only them",
    }
    by_level = levels(plan)
    lines = []
    for level, text in advice.items():
        count, reason, seconds = by_level[level].values()
        time = "time unknown" if seconds is None else duration(seconds)
        if count:
            lines.append(f"{level}: {runs(count)} ({reason}), {time} to make again; {text}")
    return lines


def cost(plan: Plan, bytes_a_run: float | None) -> str:
    """Device time and disk of the ready runs."""
    unknowns = plan.unknown_times
    hours = f"{plan.seconds / 3600:.2f} device-hours" + (f" and {runs(unknowns)} unknown" if unknowns else "")
    if plan.ready and unknowns == len(plan.ready):
        hours = "device-hours unknown"
    if bytes_a_run is None:
        return f"{hours}; disk unknown, nothing is stored yet"
    return f"{hours}; about {decimal(round(bytes_a_run * len(plan.ready)))} of disk"


def as_json(plan: Plan, slots: int, bytes_a_run: float | None) -> dict[str, Any]:
    """The plan with every run's names, spec hash, status, reason and expected seconds.

    ``seconds`` is what the ready runs whose time is known take side by side, ``device_hours`` what they take
    together; None where that of no run is known.
    """
    is_known = len(plan.ready) > plan.unknown_times or not plan.ready
    return {
        "counts": plan.counts,
        "levels": levels(plan),
        "to_run": len(plan.ready),
        "seconds": _seconds(plan, slots) if is_known else None,
        "device_hours": plan.seconds / 3600 if is_known else None,
        "unknown_times": plan.unknown_times,
        "bytes": None if bytes_a_run is None else round(bytes_a_run * len(plan.ready)),
        "runs": [
            {
                "dataset": step.planned.dataset,
                "scenario": step.planned.scenario,
                "clients": step.planned.clients,
                "method": step.planned.method,
                "seed": step.planned.seed,
                "spec_hash": step.planned.spec.hash if step.planned.spec else None,
                "status": step.status,
                "reason": step.reason,
                "run_id": step.stored.id if step.stored else None,
                "seconds": step.seconds,
                "code_changed": step.changed,
            }
            for step in plan.steps
        ],
    }


# Runs as they end ---------------------------------------------------------------------------------


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


# Stored runs and cells -----------------------------------------------------------------------------


def command(spec: RunSpec, seeds: Sequence[int] = ()) -> str:
    """A ``bench sweep`` line with whatever differs from the defaults written out.

    ``seeds`` makes the same runs with these seeds, in place of the spec's own.

    Raises:
        RequestError: the method or data set is not installed.
    """
    names = (spec.dataset, spec.scenario, spec.clients, spec.method, spec.seed)
    default = resolve(*names)
    words = ["bench", "sweep"]
    for option, value in zip(("-d", "-s", "-k", "-m"), names, strict=False):
        words += [option, str(value)]
    for seed in seeds or (spec.seed,):
        words += ["--seed", str(seed)]
    for key, (value, _) in difference(spec, default).items():
        if key in spec.settings():
            # JSON writes numbers, truth values, lists and quoted texts as TOML does.
            words += ["--set", f"{key}={json.dumps(value, ensure_ascii=False)}"]
    return shlex.join(words)


def run_list(store: Store, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Names, state, seconds and test accuracy (percent; mean over clients of the trained model at
    the round of best validation accuracy; None without one) of the runs that the filters leave.
    """
    runs = store.runs(**filters)
    results = store.client_results(runs["id"], stage="trained", split="test", rule="best_val")
    means = (100 * results.groupby("run_id")["value"].mean()).round(2).to_dict()
    names = ["id", "dataset", "scenario", "clients", "method", "seed", "rounds", "state", "reason"]
    rows: list[dict[str, Any]] = json.loads(runs[names].to_json(orient="records"))
    for row, seconds in zip(rows, runs["seconds_total"], strict=True):
        row["seconds"] = round(float(seconds), 2)
        row["test"] = means.get(row["id"])
    return rows


def run_detail(store: Store, run_id: int) -> dict[str, Any]:
    """Everything stored of a run but its arrays, the log it left if it failed here, and the command that
    makes it again.

    Accuracies are mean, sample standard deviation (None for one client) and minimum over clients.

    Raises:
        RequestError: no such run.
    """
    runs = store.runs(id=run_id)
    if runs.empty:
        raise RequestError(f"no run {run_id} in {store.url}: 'bench runs list' prints the ids")
    row: dict[str, Any] = json.loads(runs.to_json(orient="records", date_format="iso"))[0]
    row["spec"] = json.loads(row["spec"])
    environments = store.environments().set_index("id")["description"]
    row["environment"] = json.loads(environments.loc[row.pop("environment_id")])
    results = store.client_results([run_id])
    readings = results["stage"] + " " + results["split"] + " " + results["rule"]
    clients = results["value"].groupby(readings).agg(["mean", "std", "min"])
    row["accuracy"] = {
        str(reading): {name: None if isnan(value) else round(value, 6) for name, value in values.items()}
        for reading, values in clients.to_dict(orient="index").items()
    }
    row["arrays"] = store.artefact_names(run_id)
    log = paths.home() / "logs" / f"{row['spec_hash']}.log"
    row["log"] = str(log) if log.exists() else None
    try:
        row["command"] = command(RunSpec.model_validate(row["spec"]))
    except RequestError as error:
        row["command"] = f"not available here: {error}"
    return row


FORM = "DATASET/SCENARIO/CLIENTS/METHOD"

NEAR = 5
"""Cells that a message names where there is none of the name asked for."""


@dataclass(frozen=True)
class CellPart:
    """Runs of a cell that one command makes: their seeds, states and origins."""

    command: str
    seeds: tuple[int, ...]
    states: dict[str, int]
    origins: tuple[str, ...]


def rows_of_cell(runs: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of the cell ``name`` (``FORM``); ``runs`` has a row a run, as a report's source gives them.

    Raises:
        RequestError: the name is none, or there is no run of such a cell.
    """
    if name.count("/") != 3:
        raise RequestError(
            f"expected a run's id or {FORM} such as cora/non-overlapping/10/fedavg, got '{name}'"
        )
    names = (
        runs["dataset"] + "/" + runs["scenario"] + "/" + runs["clients"].astype(str) + "/" + runs["method"]
    )
    rows = runs[names == name]
    if rows.empty:
        matches = difflib.get_close_matches(name, sorted(set(names)), n=NEAR, cutoff=0.4)
        raise unknown("cell", name, matches)
    return rows


def cell(runs: pd.DataFrame, name: str) -> list[CellPart]:
    """The runs of the cell ``name``, by the command that makes them, largest part first.

    Runs that differ in more than their seed are made by different commands. Raises as ``rows_of_cell``.
    """
    rows = rows_of_cell(runs, name)
    parts = []
    for _, part in rows.groupby("cell"):
        specs = [RunSpec.model_validate_json(text) for text in part["spec"]]
        seeds = tuple(sorted({spec.seed for spec in specs}))
        origins = tuple(sorted(set(part["origin"])))
        parts.append(CellPart(command(specs[0], seeds), seeds, dict(Counter(part["state"])), origins))
    return sorted(parts, key=lambda part: (-len(part.seeds), part.command))
