"""What running sweeps are at, in one small file each under ``BENCH_HOME/sweeps``, for other processes."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

from bench import process
from bench.engine.result import RunResult
from bench.engine.states import FAILURES
from bench.replacement import replacing_file
from bench.store.connect import Database
from bench.store.store import now
from bench.sweep.plan import Estimator, Job, Step
from bench.sweep.show import duration, runs, side_by_side, states

FAILURES_KEPT = 20

NONE = "no sweep is running"

WATCH_SECONDS = 1.0

SILENCE = 60.0
"""Seconds without a sign of life after which a sweep that only others can see is taken to be dead."""

Sweep = dict[str, Any]
"""Process (``pid``, ``host``, ``process``: its name), ``started``, ``database``, ``jobs``; ``total`` runs,
``counts`` of ended ones by state, ``left``; ``running`` and the last ``failures``, a dictionary each;
``ends`` (None: nothing known) and for how many runs the time is unknown. Times are UTC, ISO 8601.
"""


class Board:
    """Where a sweep says what it does, and every few seconds that it lives; without a ``home`` it says
    nothing. Others are told that it lives four times in ``silence`` seconds. Use as a context manager.
    """

    def __init__(
        self, home: Path | None, database: str, total: int, jobs: int, silence: float = SILENCE
    ) -> None:
        self._silence = silence
        self.logs = None if home is None else home / "logs"
        self._folder = None if home is None else home / "sweeps"
        self._ended = threading.Event()
        self._counts: Counter[str] = Counter()
        self.total = total
        self._failures: list[dict[str, str]] = []
        self._fixed = {
            "pid": os.getpid(),
            "process": process.name(),
            "host": socket.gethostname(),
            "started": written(now()),
            "database": Database(database).name,
            "jobs": jobs,
        }

    def __enter__(self) -> Self:
        if self._folder is not None and self.logs is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                self.logs.mkdir(exist_ok=True)
                for path in self._folder.iterdir():
                    if _read(path) is None:
                        path.unlink(missing_ok=True)
            except OSError:  # a home that cannot be written, beside a database that can
                self._folder = self.logs = None
            else:
                threading.Thread(target=self._touch, args=(self._path(self._folder),), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._folder is not None:
            self._path(self._folder).unlink(missing_ok=True)

    def _path(self, folder: Path) -> Path:
        return folder / f"{self._fixed['process']}.json"

    def _touch(self, path: Path) -> None:
        """Keep the file fresh: elsewhere nobody can ask after this process."""
        while not self._ended.wait(self._silence / 4):
            with suppress(OSError):  # nothing is shown yet, or the disk fails
                os.utime(path)

    def ended(self, step: Step, result: RunResult) -> None:
        """Count a run that has ended; shown at the next ``show``."""
        self._counts[result.state] += 1
        if result.state in FAILURES:
            failure = {"run": step.name, "state": result.state, "reason": result.reason}
            self._failures = [*self._failures, {**failure, "when": written(now())}][-FAILURES_KEPT:]

    def show(self, jobs: Iterable[Job], waiting: Sequence[Job], estimator: Estimator) -> None:
        """Write which jobs run and which wait; a full disk is no reason to stop."""
        if self._folder is None:
            return
        running = [_entry(job, estimator.seconds(job.step.spec)) for job in jobs]
        times = [estimator.seconds(job.step.spec) for job in waiting]
        ends = [datetime.fromisoformat(run["expected_end"]) for run in running if run["expected_end"]]
        content = {
            **self._fixed,
            "total": self.total,
            "counts": dict(self._counts),
            "left": len(waiting),
            "running": running,
            "failures": self._failures,
            "ends": _ends(ends, [seconds for seconds in times if seconds is not None], self._fixed["jobs"]),
            "unknown_times": times.count(None) + len(running) - len(ends),
        }
        path = self._path(self._folder)
        with suppress(OSError), replacing_file(path) as temporary:
            temporary.write_text(json.dumps(content))


def _entry(job: Job, seconds: float | None) -> dict[str, Any]:
    return {
        "run": job.step.name,
        "spec_hash": job.step.spec.hash,
        "device": job.device,
        "attempt": job.number,
        "since": written(job.started),
        "expected_end": None if seconds is None else written(job.started + timedelta(seconds=seconds)),
    }


def _ends(running: list[datetime], waiting: list[float], jobs: Any) -> str | None:
    """When everything whose time is known will have ended."""
    if not running and not waiting:
        return None
    time = now()
    durations = [max((end - time).total_seconds(), 0.0) for end in running]
    return written(time + timedelta(seconds=side_by_side([*durations, *waiting], jobs)))


def sweeps(home: Path) -> list[Sweep]:
    """The sweeps that run now, the oldest first. Nothing is written."""
    folder = home / "sweeps"
    entries = [_read(path) for path in folder.glob("*.json")] if folder.is_dir() else []
    return sorted((entry for entry in entries if entry is not None), key=lambda sweep: str(sweep["started"]))


def _read(path: Path) -> Sweep | None:
    """What a file says; None where its process is no more, or elsewhere and silent, or it is no such file."""
    try:
        sweep: Sweep = json.loads(path.read_text())
        runs = process.runs(sweep["process"])
        if runs is None:
            runs = time.time() - path.stat().st_mtime < SILENCE
        return sweep if runs else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


# As text for people -------------------------------------------------------------------------------


def text(sweeps_now: list[Sweep]) -> str:
    """What runs where, how far each sweep is, what failed last and when it ends."""
    return "\n\n".join(map(_sweep, sweeps_now)) if sweeps_now else NONE


def _sweep(sweep: Sweep) -> str:
    count = sum(sweep["counts"].values())
    lines = [
        f"sweep {sweep['pid']} on {sweep['host']} into {sweep['database']}, for {_age(sweep['started'])}",
        f"{count:,} of {runs(sweep['total'])} ended" + (f": {states(sweep['counts'])}" if count else ""),
        f"{len(sweep['running'])} running, {sweep['left']:,} waiting; {_end(sweep)}",
    ]
    for run in sweep["running"]:
        attempt = f", attempt {run['attempt']}" if run["attempt"] > 1 else ""
        end = f", ends {_countdown(run['expected_end'])}" if run["expected_end"] else ""
        lines.append(f"  {run['device']}: {run['run']}, for {_age(run['since'])}{end}{attempt}")
    lines += [f"  {_failure(failure)}" for failure in sweep["failures"]]
    return "\n".join(lines)


def _failure(failure: dict[str, str]) -> str:
    return f"{failure['state']} {_age(failure['when'])} ago: {failure['run']}: {failure['reason']}"


def _end(sweep: Sweep) -> str:
    suffix = f", without {runs(sweep['unknown_times'])} whose time is unknown" * bool(sweep["unknown_times"])
    return f"ends {_countdown(sweep['ends'])}{suffix}" if sweep["ends"] else "its end is unknown"


def _seconds_since(moment: str) -> float:
    span: timedelta = now() - datetime.fromisoformat(moment)
    return span.total_seconds()


def _age(moment: str) -> str:
    return duration(max(_seconds_since(moment), 0.0))


def _countdown(moment: str) -> str:
    seconds = -_seconds_since(moment)
    return f"in {duration(seconds)}" if seconds > 0 else "any moment"


def watch(home: Path, show: Callable[[str], None], every_second: bool) -> None:
    """Show the text until no sweep runs: every second, or when a run has begun or ended."""
    before = None
    while sweeps_now := sweeps(home):
        events = [(sweep["counts"], sweep["running"]) for sweep in sweeps_now]
        if every_second or events != before:
            show(text(sweeps_now))
        before = events
        time.sleep(WATCH_SECONDS)
    show(NONE)


def written(moment: datetime) -> str:
    """ISO 8601 to the second, for a moment in UTC without a zone."""
    return moment.isoformat(timespec="seconds")
