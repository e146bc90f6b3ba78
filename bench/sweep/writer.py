"""What a sweep does with its database: claiming runs, and storing what came of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any, Self, TypeVar

import psutil
from sqlalchemy import delete, select

import bench
from bench.engine.result import RunResult
from bench.environment import describe
from bench.errors import RequestError
from bench.store import Context, Store
from bench.store.claims import Claims
from bench.store.models import Claim
from bench.sweep import fingerprint
from bench.sweep.federations import Prepared
from bench.sweep.plan import FAILURES, Step, made_by_this_code

WAITS = 10
"""How often a locked database is waited for, half a minute each, before the sweep gives up."""

T = TypeVar("T")


def patiently(write: Callable[[], T]) -> T:
    """The result of a write, waited for while the database is locked.

    Raises:
        RequestError: the database cannot be written: full, gone, or locked for minutes.
    """
    for left in reversed(range(WAITS)):
        try:
            return write()
        except RequestError as error:
            if "locked" not in str(error) or not left:
                raise
    raise AssertionError


class Writer:
    """The only one in a sweep that writes. Several sweeps may share a database: each claims a run
    before it starts it, and says so again while it runs. Use as a context manager.
    """

    def __init__(self, store: Store, prepared: Prepared, threads: int) -> None:
        self._store = store
        self._prepared = prepared
        self._environment = cache(lambda device: describe(device, threads))
        self._claims = Claims(store)
        self._renewed = time.monotonic()

    def __enter__(self) -> Self:
        patiently(self._clear)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(RequestError):  # they run out by themselves
            self._claims.release()

    def _clear(self) -> None:
        """Remove the claims of sweeps on this host that are no more; those elsewhere run out."""
        host = self._claims.owner.partition(":")[0]
        with self._store.transaction() as session:
            owners = set(session.scalars(select(Claim.owner)))
            dead = [owner for owner in owners if owner.startswith(f"{host}:") and not _alive(owner)]
            session.execute(delete(Claim).where(Claim.owner.in_(dead)))

    def take(self, step: Step) -> bool:
        """Claim a step's run until the sweep ends; False where another sweep holds it."""
        return patiently(lambda: self._claims.take(step.spec.hash))

    def renew(self) -> None:
        """Keep the claims; to be called every few seconds."""
        if time.monotonic() - self._renewed > self._claims.lease / 4:
            patiently(self._claims.renew)
            self._renewed = time.monotonic()

    def elsewhere(self, step: Step) -> str | None:
        """The state in which another sweep has stored a step's run since the plan was made."""
        old = self._store.stored(step.spec.hash)
        if old is None:
            return None
        if made_by_this_code(old, fingerprint.code(step.spec.method)):
            return old.state
        return old.state if step.run_id is None and old.state in FAILURES else None

    def made_on(self, result: RunResult) -> Mapping[str, Any]:
        """Description of the machine that made a result: this one."""
        return self._environment(result.device)

    def save(self, step: Step, result: RunResult, started: datetime) -> str:
        """Store a result and return the state that is stored now.

        A failure does not replace what another sweep has settled meanwhile.

        Raises:
            RequestError: the database cannot be written: full, gone, or locked for minutes.
        """
        state = self.elsewhere(step) if result.state in FAILURES else None
        if state is None:
            code = fingerprint.code(step.spec.method)
            context = Context(
                started=started,
                environment=self.made_on(result),
                code_version=bench.__version__,
                method_numerics=code.method_numerics,
                engine_numerics=code.engine_numerics,
                source_hash=code.source,
                provenance=self._prepared.provenance.get(step.spec.federation_key, {}),
            )
            patiently(lambda: self._store.save(step.spec, result, context))
            state = result.state
        return state


def _alive(owner: str) -> bool:
    """Whether a claim's owner (``HOST:PID:TOKEN``), a sweep on this host, still runs."""
    return bool(psutil.pid_exists(int(owner.split(":")[1])))
