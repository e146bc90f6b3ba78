"""What running sweeps are at, as their databases say it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from bench import process
from bench.store import open_store
from bench.store.connect import Database
from bench.store.models import Claim, RunningSweep
from bench.store.store import now
from bench.sweep.display import duration, runs, states

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
    entries: list[Sweep] = []
    for row, claims in rows:
        if process.runs(row.owner) is False:
            continue
        host, pid = row.owner.split(":")[:2]
        entry: Sweep = {"host": host, "pid": int(pid), "database": database.name}
        entry |= _values(row, "started", "jobs", "total", "counts", "left", "ends", "unknown_times")
        entry["counts"] = json.loads(row.counts)
        entry["running"] = [_values(claim, "run", "spec_hash", "device", "since") for claim in claims]
        entries.append(entry)
    return entries


def _values(row: RunningSweep | Claim, *names: str) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in names}
    for name, value in values.items():
        if isinstance(value, datetime):
            values[name] = value.isoformat(timespec="seconds")
    return values


def text(sweeps_now: list[Sweep]) -> str:
    """What runs where, how far each sweep is, and when it ends."""
    return "\n\n".join(map(_text_of, sweeps_now)) if sweeps_now else NONE


def _text_of(sweep: Sweep) -> str:
    count, unknown = sum(sweep["counts"].values()), sweep["unknown_times"]
    end = "at an unknown time"
    if sweep["ends"]:
        seconds = -_age(sweep["ends"])
        end = f"in {duration(seconds)}" if seconds > 0 else "any moment"
        end += f", without {runs(unknown)} whose time is unknown" if unknown else ""
    lines = [
        f"sweep {sweep['pid']} on {sweep['host']} into {sweep['database']}, for "
        f"{duration(_age(sweep['started']))}",
        f"{count:,} of {runs(sweep['total'])} ended" + (f": {states(sweep['counts'])}" if count else ""),
        f"{len(sweep['running'])} running, {sweep['left']:,} waiting; ends {end}",
    ]
    lines += [
        f"  {run['device']}: {run['run']}, for {duration(_age(run['since']))}" for run in sweep["running"]
    ]
    return "\n".join(lines)


def _age(moment: str) -> float:
    """Seconds since a moment."""
    return (now() - datetime.fromisoformat(moment)).total_seconds()


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
