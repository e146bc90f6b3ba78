"""Claims on runs: several sweeps share a database by them, and ``status`` lists these sweeps."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import psutil
from sqlalchemy import delete, or_, update
from sqlalchemy.orm import Session

from bench.errors import BusyError, RequestError
from bench.store import Store, open_store
from bench.store.connect import Database
from bench.store.models import Claim
from bench.store.store import clock, now

BUSY_PAUSE = 1.0
"""Seconds until a busy database is asked again."""

RENEW = 15.0
"""Seconds between renewals of the claims."""

PATIENCE = 300.0
"""Seconds for which a sweep keeps asking a busy database."""

LEASE = PATIENCE + 60.0
"""Seconds that a claim lasts without renewal; longer than a sweep may have to wait to renew it."""

T = TypeVar("T")


@dataclass(eq=False)
class Claims:
    """The claims of one sweep on a database; a context manager around the sweep.

    A claim ends when it is released, when its owner is seen to have ended, or when it is not renewed in time.
    Times are the database's, since the clocks of hosts differ. A sweep waits for a busy database at most
    ``patience`` seconds; if the sweep is ``stopping``, waiting ends with ``KeyboardInterrupt``.
    """

    store: Store
    stopping: Callable[[], bool] = lambda: False
    lease: float = LEASE
    renew_seconds: float = RENEW
    patience: float = PATIENCE

    def __post_init__(self) -> None:
        self.owner = f"{this_process()}:{secrets.token_hex(4)}"
        self._renewed = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Release all claims of this sweep, and remove expired claims."""
        with suppress(RequestError), self.store.transaction() as session:  # claims also expire by themselves
            is_over = or_(Claim.owner == self.owner, Claim.until <= clock(session))
            session.execute(delete(Claim).where(is_over))

    def ask(self, question: Callable[[], T]) -> T:
        """Return the database's answer; wait while the database is locked or its server is away."""
        end = time.monotonic() + self.patience
        while True:
            try:
                return question()
            except BusyError as error:
                if self.stopping():
                    raise KeyboardInterrupt from error
                if time.monotonic() > end:
                    raise
                time.sleep(BUSY_PAUSE)

    def _write(self, change: Callable[[Session, float], T]) -> T:
        """Make a change in a transaction; the change receives the database's time."""

        def write() -> T:
            with self.store.transaction() as session:
                return change(session, clock(session))

        return self.ask(write)

    def take(self, spec_hash: str, run: str = "", device: str = "") -> bool:
        """Claim a run that is to be made on a device; return False if another sweep holds it."""

        def take(session: Session, moment: float) -> bool:
            claim = session.get(Claim, spec_hash)
            is_held = claim is not None and claim.until > moment and claim.owner != self.owner
            if claim is not None and is_held and still_runs(claim.owner) is not False:
                return False
            names = {"spec_hash": spec_hash, "run": run, "device": device, "owner": self.owner}
            session.merge(Claim(**names, until=moment + self.lease, since=now()))
            return True

        return self._write(take)

    def renew(self) -> None:
        """Extend all claims to another lease from now, if ``renew_seconds`` have passed."""
        if time.monotonic() - self._renewed >= self.renew_seconds:
            mine = update(Claim).where(Claim.owner == self.owner)
            self._write(lambda session, moment: session.execute(mine.values(until=moment + self.lease)))
            self._renewed = time.monotonic()

    def drop(self, spec_hash: str) -> None:
        """Release the claim on a run that another sweep has made."""
        mine = delete(Claim).where(Claim.spec_hash == spec_hash, Claim.owner == self.owner)
        self._write(lambda session, moment: session.execute(mine))


def status(url: str) -> str:
    """Say how many runs each sweep into a database has made and what runs where; raises as ``open_store``."""
    if Database(url).empty():
        return "no sweep is running"
    with open_store(url, create=False) as store:
        claims, stored = store.table("claims"), store.states()
    sweeps: dict[str, list[dict[Any, Any]]] = {}
    for claim in claims[claims["until"] > time.time()].sort_values("since").to_dict("records"):
        if still_runs(claim["owner"]) is not False:
            sweeps.setdefault(claim["owner"], []).append(claim)
    lines = []
    for owner, its in sweeps.items():
        host, pid = owner.split(":")[:2]
        rows = [(claim, stored.get(claim["spec_hash"])) for claim in its]
        running = [claim for claim, row in rows if row is None or row.started < claim["since"]]
        lines.append(f"sweep {pid} on {host}: {len(its) - len(running):,} made, {len(running):,} running")
        lines += [f"  {claim['device']}: {claim['run']}" for claim in running]
    return "\n".join(lines) or "no sweep is running"


# Processes ----------------------------------------------------------------------------------------


def this_process() -> str:
    """Return a name by which others tell whether this process still runs: ``HOST:PID:STARTED``."""
    return f"{socket.gethostname()}:{os.getpid()}:{_start_time(os.getpid()):.2f}"


def still_runs(name: str) -> bool | None:
    """Return whether the process in ``name`` runs; None if only another host or user can tell."""
    host, pid, started = name.split(":")[:3]
    if host != socket.gethostname():
        return None
    try:
        is_there = psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE  # a zombie has ended, too
        return is_there and abs(_start_time(int(pid)) - float(started)) < 1
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return None


def _start_time(pid: int) -> float:
    """Return seconds from the boot to a process's start: on Linux, setting the clock moves both times."""
    return float(psutil.Process(pid).create_time() - psutil.boot_time())
