"""Running sweeps as text for people."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from bench.sweep.clock import now
from bench.sweep.show import duration, runs, states
from bench.sweep.status import Sweep, sweeps

NONE = "no sweep is running"
WATCH_SECONDS = 1.0


def text(running: list[Sweep]) -> str:
    """What runs where, how far each sweep is, what failed last and when it ends."""
    return "\n\n".join(map(_sweep, running)) if running else NONE


def _sweep(sweep: Sweep) -> str:
    ended = sum(sweep["counts"].values())
    lines = [
        f"sweep {sweep['pid']} on {sweep['host']} into {sweep['database']}, for {_ago(sweep['started'])}",
        f"{ended:,} of {runs(sweep['total'])} ended" + (f": {states(sweep['counts'])}" if ended else ""),
        f"{len(sweep['running'])} running, {sweep['left']:,} waiting; {_end(sweep)}",
    ]
    for run in sweep["running"]:
        again = f", attempt {run['attempt']}" if run["attempt"] > 1 else ""
        end = f", ends {_in(run['expected_end'])}" if run["expected_end"] else ""
        lines.append(f"  {run['device']}: {run['run']}, for {_ago(run['since'])}{end}{again}")
    lines += [f"  {_failure(failure)}" for failure in sweep["failures"]]
    return "\n".join(lines)


def _failure(failure: dict[str, str]) -> str:
    return f"{failure['state']} {_ago(failure['when'])} ago: {failure['run']}: {failure['reason']}"


def _end(sweep: Sweep) -> str:
    unknown = f", without {runs(sweep['unknown_times'])} whose time is unknown" * bool(sweep["unknown_times"])
    return f"ends {_in(sweep['ends'])}{unknown}" if sweep["ends"] else "its end is unknown"


def _seconds_since(moment: str) -> float:
    return (now() - datetime.fromisoformat(moment)).total_seconds()


def _ago(moment: str) -> str:
    return duration(max(_seconds_since(moment), 0.0))


def _in(moment: str) -> str:
    seconds = -_seconds_since(moment)
    return f"in {duration(seconds)}" if seconds > 0 else "any moment"


def watch(home: Path, show: Callable[[str], None], every_second: bool) -> None:
    """Show the text until no sweep runs: every second, or when a run has begun or ended."""
    before = None
    while running := sweeps(home):
        events = [(sweep["counts"], sweep["running"]) for sweep in running]
        if every_second or events != before:
            show(text(running))
        before = events
        time.sleep(WATCH_SECONDS)
    show(NONE)
