"""What people and programs see of plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from bench.dataset import DATASETS
from bench.engine.states import SETTLED
from bench.sweep.plan import Plan, Step


def duration(seconds: float) -> str:
    """Seconds as people say them; a tenth counts below ten."""
    if 0 < seconds < 0.05:
        return "under 0.1 s"
    if 0 < seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
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
    datasets = [DATASETS.all()[step.spec.dataset] for step in plan.to_run if step.status == "no_data"]
    offered_count = sum(all(file.has_address for file in dataset.files) for dataset in datasets)
    lacking_count = len(datasets) - offered_count
    if unknowns == count:
        time = "unknown, no like run is stored"
    else:
        time = f"{duration(_seconds(plan, slots))} on {slots} at a time"
        time += f" and {runs(unknowns)} whose time is unknown" if unknowns else ""
    text = f"{count:,} to run, time {time}" if count else "nothing to run with the data at hand"
    if offered_count:
        text += f"; {offered_count:,} more need data that the sweep tries to download"
    if lacking_count:
        text += f"; {lacking_count:,} more need files that have no public address"
    return text


def nothing(plan: Plan, rerun: str | None) -> str:
    """Why a sweep had nothing to run."""
    text = f"none to be made again as {rerun}" if rerun else "nothing to run"
    return f"{runs(len(plan.steps))}: {states(plan.counts)}; {text}"


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


def shipped_line(count: int) -> str:
    """What the runs that come with the suite are to a plan that has ``count`` of them to run."""
    verb = "comes" if count == 1 else "come"
    return f"{runs(count)} of these {verb} with the suite: bench report shows them without a sweep"


def as_json(plan: Plan, slots: int, bytes_a_run: float | None, shipped: int = 0) -> dict[str, Any]:
    """The plan with every run's names, spec hash, status, reason and expected seconds.

    ``seconds`` is what the ready runs whose time is known take side by side, ``device_hours`` what they take
    together; None where that of no run is known. ``shipped`` of the runs to do come with the suite.
    """
    is_known = len(plan.ready) > plan.unknown_times or not plan.ready
    return {
        "counts": plan.counts,
        "levels": levels(plan),
        "to_run": len(plan.ready),
        "shipped": shipped,
        "seconds": _seconds(plan, slots) if is_known else None,
        "device_hours": plan.seconds / 3600 if is_known else None,
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
