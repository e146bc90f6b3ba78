"""What running sweeps are at, as their databases say it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from bench import process
from bench.store import open_store
from bench.store.connect import Database
from bench.store.store import now
from bench.sweep.show import duration, runs, states

NONE = "no sweep is running"

WATCH_SECONDS = 1.0

Sweep = dict[str, Any]
"""``host``, ``pid``, ``database``, ``started``, ``jobs``; ``total`` runs, ``counts`` of ended ones by state,
``left``, ``running`` (a dictionary each); ``ends`` (None: nothing known) and for how many runs the time is
unknown. Times are UTC, ISO 8601.
"""


def sweeps(url: str) -> list[Sweep]:
    """The sweeps that run now on a database, wherever they run, the oldest first.

    Raises:
        RequestError: the database cannot be read.
    """
    database = Database(url)
    if database.empty():
        return []
    with open_store(url, create=False) as store:
        rows = store.sweeps()
    entries = []
    for row in rows:
        owner = row.pop("owner")
        if process.runs(owner) is not False:
            host, pid = owner.split(":")[:2]
            entries.append({"host": host, "pid": int(pid), "database": database.name, **row})
    return entries


def text(sweeps_now: list[Sweep]) -> str:
    """What runs where, how far each sweep is, and when it ends."""
    return "\n\n".join(map(_sweep, sweeps_now)) if sweeps_now else NONE


def _sweep(sweep: Sweep) -> str:
    count = sum(sweep["counts"].values())
    end = _countdown(sweep["ends"]) if sweep["ends"] else "at an unknown time"
    unknown = sweep["unknown_times"]
    lines = [
        f"sweep {sweep['pid']} on {sweep['host']} into {sweep['database']}, for {_age(sweep['started'])}",
        f"{count:,} of {runs(sweep['total'])} ended" + (f": {states(sweep['counts'])}" if count else ""),
        f"{len(sweep['running'])} running, {sweep['left']:,} waiting; ends {end}"
        + (f", without {runs(unknown)} whose time is unknown" if unknown and sweep["ends"] else ""),
    ]
    lines += [f"  {run['device']}: {run['run']}, for {_age(run['since'])}" for run in sweep["running"]]
    return "\n".join(lines)


def _seconds_since(moment: str) -> float:
    span: timedelta = now() - datetime.fromisoformat(moment)
    return span.total_seconds()


def _age(moment: str) -> str:
    return duration(max(_seconds_since(moment), 0.0))


def _countdown(moment: str) -> str:
    seconds = -_seconds_since(moment)
    return f"in {duration(seconds)}" if seconds > 0 else "any moment"


def watch(url: str, show: Callable[[str], None]) -> None:
    """Show the text until no sweep runs, whenever a run has begun or ended."""
    before = None
    while sweeps_now := sweeps(url):
        events = [(sweep["counts"], sweep["running"]) for sweep in sweeps_now]
        if events != before:
            show(text(sweeps_now))
        before = events
        time.sleep(WATCH_SECONDS)
    show(NONE)
