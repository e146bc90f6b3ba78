"""What running sweeps are at, in one small file each under ``BENCH_HOME/sweeps``, for other processes."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bench import process
from bench.engine.result import RunResult
from bench.store import connect
from bench.sweep.clock import now, written
from bench.sweep.plan import FAILURES, Step
from bench.sweep.show import side_by_side

if TYPE_CHECKING:
    from bench.sweep.schedule import Running, Scheduler

FAILURES_KEPT = 20

SILENCE = 60.0
"""Seconds without a sign of life after which a sweep that only others can see is taken to be dead."""

Sweep = dict[str, Any]
"""Process (``pid``, ``host``, ``process``: its name), ``started``, ``database``, ``jobs``; ``total`` runs,
``counts`` of ended ones by state, ``left``; ``running`` and the last ``failures``, a dictionary each;
``ends`` (None: nothing known) and for how many runs the time is unknown. Times are UTC, ISO 8601.
"""


class Board:
    """Where a sweep says what it does, and every few seconds that it lives; without a ``home`` it says
    nothing. Use as a context manager.
    """

    def __init__(self, home: Path | None, database: str, total: int, jobs: int) -> None:
        self.logs = None if home is None else home / "logs"
        self._folder = None if home is None else home / "sweeps"
        self._ended = threading.Event()
        self._counts: Counter[str] = Counter()
        self._failures: list[dict[str, str]] = []
        self._fixed = {
            "pid": os.getpid(),
            "process": process.name(),
            "host": socket.gethostname(),
            "started": written(now()),
            "database": connect.database(database).name,
            "jobs": jobs,
            "total": total,
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
                threading.Thread(target=self._live, args=(self._path(self._folder),), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._folder is not None:
            self._path(self._folder).unlink(missing_ok=True)

    def _path(self, folder: Path) -> Path:
        return folder / f"{self._fixed['process']}.json"

    def _live(self, path: Path) -> None:
        """Keep the file fresh: elsewhere nobody can ask after this process."""
        while not self._ended.wait(SILENCE / 4):
            with suppress(OSError):  # nothing is shown yet, or the disk fails
                os.utime(path)

    def ended(self, step: Step, result: RunResult) -> None:
        """Count a run that has ended; shown at the next ``show``."""
        self._counts[result.state] += 1
        if result.state in FAILURES:
            failure = {"run": step.name, "state": result.state, "reason": result.reason}
            self._failures = [*self._failures, {**failure, "when": written(now())}][-FAILURES_KEPT:]

    def show(self, scheduler: Scheduler) -> None:
        """Write what the sweep is at; a full disk is no reason to stop."""
        if self._folder is None:
            return
        running = [_running(each, scheduler) for each in scheduler.running.values()]
        waiting = [scheduler.estimator.seconds(each.step.spec) for each in scheduler.waiting]
        ends = [datetime.fromisoformat(run["expected_end"]) for run in running if run["expected_end"]]
        shown = {
            **self._fixed,
            "counts": dict(self._counts),
            "left": len(scheduler.waiting),
            "running": running,
            "failures": self._failures,
            "ends": _ends(ends, [each for each in waiting if each is not None], self._fixed["jobs"]),
            "unknown_times": waiting.count(None) + len(running) - len(ends),
        }
        path = self._path(self._folder)
        with suppress(OSError):
            path.with_suffix(".tmp").write_text(json.dumps(shown))
            os.replace(path.with_suffix(".tmp"), path)


def _running(running: Running, scheduler: Scheduler) -> dict[str, Any]:
    seconds = scheduler.estimator.seconds(running.step.spec)
    return {
        "run": running.step.name,
        "spec_hash": running.step.spec.hash,
        "device": running.device,
        "attempt": running.attempt.number,
        "since": written(running.started),
        "expected_end": None if seconds is None else written(running.started + timedelta(seconds=seconds)),
    }


def _ends(running: list[datetime], waiting: list[float], jobs: Any) -> str | None:
    """When everything whose time is known will have ended."""
    if not running and not waiting:
        return None
    present = now()
    left = [max((end - present).total_seconds(), 0.0) for end in running]
    return written(present + timedelta(seconds=side_by_side([*left, *waiting], jobs)))


def sweeps(home: Path) -> list[Sweep]:
    """The sweeps that run now, the oldest first. Nothing is written."""
    folder = home / "sweeps"
    found = [_read(path) for path in folder.glob("*.json")] if folder.is_dir() else []
    return sorted((each for each in found if each is not None), key=lambda sweep: str(sweep["started"]))


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
