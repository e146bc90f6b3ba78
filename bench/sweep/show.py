"""A plan as a table for people and as plain values for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from bench.sweep.plan import Plan, Step


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


def to_do(plan: Plan, slots: int) -> str:
    """How many runs are to do, how long they take spread over the slots, and what is not known."""
    ready, unknown = len(plan.ready), plan.unknown_times
    waiting = len(plan.to_run) - ready
    if unknown == ready:
        time = "unknown, no like run is stored"
    else:
        time = f"{duration(plan.seconds / slots)} on {slots} at a time"
        time += f" and {runs(unknown)} whose time is unknown" if unknown else ""
    text = f"{ready:,} to run, time {time}" if ready else "nothing to run with the data at hand"
    return text + (f"; {waiting:,} more need data that the sweep tries to download" if waiting else "")


def _cell(step: Step) -> tuple[str, str, int, str]:
    planned = step.planned
    return planned.dataset, planned.scenario, planned.clients, planned.method


def _cells(plan: Plan) -> list[tuple[tuple[str, str, int, str], list[Step]]]:
    order = {cell: index for index, cell in enumerate(dict.fromkeys(map(_cell, plan.steps)))}
    ordered = sorted(plan.steps, key=lambda step: order[_cell(step)])
    return [(cell, list(steps)) for cell, steps in groupby(ordered, _cell)]


def table(plan: Plan) -> Table:
    """One row a cell: where its runs stand, how long the rest takes, and the first reason."""
    grid = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for title in ("dataset", "scenario", "clients", "method", "runs", "time", "reason"):
        grid.add_column(title, justify="right" if title in ("clients", "time") else "left", overflow="fold")
    for (dataset, scenario, clients, method), steps in _cells(plan):
        todo = [step for step in steps if step.to_run]
        known = [step.seconds for step in todo if step.seconds is not None]
        time = "" if not todo else duration(sum(known)) if len(known) == len(todo) else "unknown"
        reason = next((step.reason for step in steps if step.reason), "")
        counts = Counter[str](step.status for step in steps)
        grid.add_row(dataset, scenario, str(clients), method, states(counts), time, reason)
    return grid


def as_json(plan: Plan, slots: int) -> dict[str, Any]:
    """The plan with every run's names, spec hash, status, reason and expected seconds."""
    return {
        "counts": plan.counts,
        "to_run": len(plan.ready),
        "seconds": plan.seconds / slots,
        "unknown_times": plan.unknown_times,
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
                "run_id": step.run_id,
                "seconds": step.seconds,
                "code_changed": step.changed,
            }
            for step in plan.steps
        ],
    }
