"""What a sweep does with its database: claiming runs, and storing what came of them."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple, Self, TypeVar

from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

import bench
from bench import process
from bench.engine.result import RunResult
from bench.engine.states import FAILURES, SETTLED
from bench.environment import describe
from bench.errors import BusyError, RequestError
from bench.store import Context, Store
from bench.store.connect import PATIENCE
from bench.store.models import Claim, RunningSweep
from bench.store.queries import clock
from bench.store.store import now
from bench.sweep import fingerprint
from bench.sweep.cluster import NodeResult
from bench.sweep.federations import Federations
from bench.sweep.plan import Step, numerics_change
from bench.sweep.policy import Slots

BUSY_PAUSE = 1.0
"""Seconds after which a database that is busy is asked again."""

RENEW = 15.0
"""Seconds after which claims are renewed."""

LEASE = PATIENCE + 60.0
"""Seconds that a claim lasts unless it is renewed: longer than its sweep may have to wait to renew it."""

T = TypeVar("T")


class Progress(NamedTuple):
    """How far a sweep is: runs at a time, runs in all, ended ones by state and those that wait; when they
    will have ended, and for how many the time is unknown.
    """

    jobs: int
    total: int
    counts: dict[str, int]
    left: int
    ends: datetime | None
    unknown_times: int


class RunClaims:
    """The claims of one sweep on a database, so that several on one database share a grid; all that it does
    raises ``RequestError`` where that cannot be written.

    A claim ends when it is released, when its owner is seen to run no more, or by itself when nobody renews
    it: a sweep that was killed elsewhere holds up nobody for longer than a lease. Time is the database's own,
    since the clocks of several hosts differ.
    """

    def __init__(self, store: Store, lease: float = LEASE) -> None:
        self.owner = f"{process.name()}:{secrets.token_hex(4)}"
        self._lease = lease
        self._store = store
        self._hashes: set[str] = set()
        self._started = now()

    def take(self, spec_hash: str, run: str = "", device: str = "", progress: Progress | None = None) -> bool:
        """Claim a run, which is to be made on a device; False where another sweep holds it."""
        with self._store.transaction() as session:
            moment = clock(session)
            claim = session.get(Claim, spec_hash)
            if (
                claim is not None
                and claim.until > moment
                and claim.owner != self.owner
                and process.runs(claim.owner) is not False
            ):
                return False
            until = moment + self._lease
            session.merge(
                Claim(spec_hash=spec_hash, owner=self.owner, until=until, run=run, device=device, since=now())
            )
            self._say(session, progress, until)
        self._hashes.add(spec_hash)
        return True

    def renew(self, progress: Progress | None = None) -> set[str]:
        """Let all claims of this sweep last another lease from now; returns the runs lost meanwhile."""
        with self._store.transaction() as session:
            until = clock(session) + self._lease
            session.execute(update(Claim).where(Claim.owner == self.owner).values(until=until))
            hashes = set(session.scalars(select(Claim.spec_hash).where(Claim.owner == self.owner)))
            self._say(session, progress, until)
        lost_hashes = self._hashes - hashes
        self._hashes = hashes
        return lost_hashes

    def _say(self, session: Session, progress: Progress | None, until: float) -> None:
        if progress is not None:
            counts = json.dumps(progress.counts)
            row = {**progress._asdict(), "counts": counts, "started": self._started, "until": until}
            session.merge(RunningSweep(owner=self.owner, **row))

    def drop(self, spec_hash: str) -> None:
        """Give up one claim."""
        with self._store.transaction() as session:
            session.execute(delete(Claim).where(Claim.spec_hash == spec_hash, Claim.owner == self.owner))
        self._hashes.discard(spec_hash)

    def release(self) -> None:
        """Give up all claims of this sweep, and remove those that have run out."""
        with self._store.transaction() as session:
            moment = clock(session)
            for model in (Claim, RunningSweep):
                session.execute(delete(model).where(or_(model.owner == self.owner, model.until <= moment)))


class Writer:
    """The only one in a sweep that writes. Several sweeps may share a database: each claims a run
    before it starts it, and says so again while it runs. Use as a context manager.

    ``stopping`` says whether the sweep is to stop now: then a busy database is not waited for, else for
    ``patience`` seconds. Claims are renewed after ``renew_seconds``, and ``environment`` describes this
    machine for a device and a number of threads.
    """

    def __init__(
        self,
        store: Store,
        federations: Federations,
        slots: Slots,
        stopping: Callable[[], bool],
        environment: Callable[[str, int], Mapping[str, Any]] = describe,
        renew_seconds: float = RENEW,
        patience: float = PATIENCE,
    ) -> None:
        self._store = store
        self._federations = federations
        self._slots = slots
        self._stopping = stopping
        self._environment = environment
        self._renew_seconds = renew_seconds
        self._patience = patience
        self._claims = RunClaims(store)
        self._renewed = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(RequestError):  # they run out by themselves
            self._claims.release()

    def _retry(self, ask: Callable[[], T]) -> T:
        """The database's answer, waited for while it is locked or its server is away.

        Raises:
            RequestError: the database cannot be used: full, read-only, or busy for minutes.
            KeyboardInterrupt: it is busy, and the sweep is to stop now.
        """
        end = time.monotonic() + self._patience
        while True:
            try:
                return ask()
            except BusyError as error:
                if self._stopping():
                    raise KeyboardInterrupt from error
                if time.monotonic() > end:
                    raise
                time.sleep(BUSY_PAUSE)

    def take(self, step: Step, device: str, progress: Callable[[], Progress]) -> bool:
        """Claim a step's run until the sweep ends; False where another sweep holds it."""
        return self._retry(lambda: self._claims.take(step.spec.hash, step.name, device, progress()))

    def drop(self, step: Step) -> None:
        """Give up the claim on a step's run, which another sweep has made."""
        self._retry(lambda: self._claims.drop(step.spec.hash))

    def renew(self, progress: Callable[[], Progress]) -> Collection[str]:
        """Keep the claims; to be called every few seconds. Returns the spec hashes of those that are lost."""
        if time.monotonic() - self._renewed < self._renew_seconds:
            return ()
        lost_hashes = self._retry(lambda: self._claims.renew(progress()))
        self._renewed = time.monotonic()
        return lost_hashes

    def elsewhere(self, step: Step) -> str | None:
        """The state in which another sweep has stored a step's run since the plan was made: settled or failed
        by code of no older numerics, which spares making it. None where it has not.
        """
        row = self._retry(lambda: self._store.stored(step.spec.hash))
        if row is None or not step.is_new(row):
            return None
        is_older = numerics_change(row, fingerprint.of(step.spec))
        return row.state if row.state in (*SETTLED, *FAILURES) and not is_older else None

    def made_on(self, result: RunResult) -> Mapping[str, Any]:
        """Description of the machine that made a result; empty where that was lost with it."""
        if isinstance(result, NodeResult):
            return result.environment
        return {} if self._slots.elsewhere else self._environment(result.device, self._slots.threads)

    def save(self, step: Step, result: RunResult, started: datetime) -> str:
        """Store a result by the rule of ``Store.save``, and return where the run stands now.

        Raises:
            RequestError: the database cannot be written: full, read-only, or busy for minutes.
        """
        code = result.code or fingerprint.of(step.spec)
        shared = self._federations.get(step.spec.federation_key)
        context = Context(
            started=started,
            environment=self.made_on(result),
            code_version=bench.__version__,
            method_numerics=code.method_numerics,
            engine_numerics=code.engine_numerics,
            source_hash=code.source,
            provenance=shared.provenance if shared else {},
        )
        self._retry(lambda: self._store.save(step.spec, result, context))
        if result.state in SETTLED:
            return result.state
        row = self._retry(lambda: self._store.stored(step.spec.hash))
        return step.status if row is None or not step.is_new(row) else row.state


MakeWriter = Callable[[Store, Federations, Slots, Callable[[], bool]], Writer]
"""The writer of a sweep, from the arguments of ``Writer`` that have no default."""
