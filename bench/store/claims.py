"""Which sweep does which run, so that several on one database share a grid.

A claim ends when it is released, or by itself when its owner no longer renews it: a sweep that was
killed holds up nobody for longer than a lease. Time is the database's own, since the clocks of
several hosts differ.
"""

from __future__ import annotations

import os
import secrets
import socket

from sqlalchemy import delete, text, update
from sqlalchemy.orm import Session

from bench.store.models import Claim
from bench.store.store import Store

LEASE = 60.0
"""Seconds that a claim lasts unless it is renewed."""

CLOCKS = {
    "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
}


class Claims:
    """The claims of one sweep on a database."""

    def __init__(self, store: Store, lease: float = LEASE) -> None:
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.lease = lease
        self._store = store

    def take(self, spec_hash: str) -> bool:
        """Claim a run; False where another sweep holds it.

        Raises:
            RequestError: the database cannot be written.
        """
        with self._store.transaction() as session:
            now = _now(session)
            held = session.get(Claim, spec_hash)
            if held is not None and held.until > now and held.owner != self.owner:
                return False
            session.merge(Claim(spec_hash=spec_hash, owner=self.owner, until=now + self.lease))
        return True

    def renew(self) -> None:
        """Let all claims of this sweep last another lease from now.

        Raises:
            RequestError: the database cannot be written.
        """
        with self._store.transaction() as session:
            until = _now(session) + self.lease
            session.execute(update(Claim).where(Claim.owner == self.owner).values(until=until))

    def release(self) -> None:
        """Give up all claims of this sweep.

        Raises:
            RequestError: the database cannot be written.
        """
        with self._store.transaction() as session:
            session.execute(delete(Claim).where(Claim.owner == self.owner))


def _now(session: Session) -> float:
    clock = CLOCKS[session.get_bind().dialect.name]
    return float(session.execute(text(clock)).scalar_one())
