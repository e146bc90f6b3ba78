"""Which sweep does which run, so that several on one database share a grid.

A claim ends when it is released, when its owner is seen to run no more, or by itself when nobody renews
it: a sweep that was killed elsewhere holds up nobody for longer than a lease. Time is the database's own,
since the clocks of several hosts differ.
"""

from __future__ import annotations

import secrets

from sqlalchemy import delete, or_, select, text, update
from sqlalchemy.orm import Session

from bench import process
from bench.store.connect import PATIENCE
from bench.store.models import Claim
from bench.store.store import Store

LEASE = PATIENCE + 60.0
"""Seconds that a claim lasts unless it is renewed: longer than its sweep may have to wait to renew it."""

CLOCKS = {
    "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
}


class RunClaims:
    """The claims of one sweep on a database; all that it does raises ``RequestError`` where that cannot be
    written.
    """

    def __init__(self, store: Store, lease: float = LEASE) -> None:
        self.owner = f"{process.name()}:{secrets.token_hex(4)}"
        self._lease = lease
        self._store = store
        self._hashes: set[str] = set()

    def take(self, spec_hash: str) -> bool:
        """Claim a run; False where another sweep holds it."""
        with self._store.transaction() as session:
            time = _now(session)
            claim = session.get(Claim, spec_hash)
            if (
                claim is not None
                and claim.until > time
                and claim.owner != self.owner
                and process.runs(claim.owner) is not False
            ):
                return False
            session.merge(Claim(spec_hash=spec_hash, owner=self.owner, until=time + self._lease))
        self._hashes.add(spec_hash)
        return True

    def renew(self) -> set[str]:
        """Let all claims of this sweep last another lease from now; returns the runs lost meanwhile."""
        with self._store.transaction() as session:
            end = _now(session) + self._lease
            session.execute(update(Claim).where(Claim.owner == self.owner).values(until=end))
            hashes = set(session.scalars(select(Claim.spec_hash).where(Claim.owner == self.owner)))
        lost_hashes = self._hashes - hashes
        self._hashes = hashes
        return lost_hashes

    def release(self) -> None:
        """Give up all claims of this sweep, and remove those that have run out."""
        with self._store.transaction() as session:
            condition = or_(Claim.owner == self.owner, Claim.until <= _now(session))
            session.execute(delete(Claim).where(condition))


def _now(session: Session) -> float:
    clock = CLOCKS[session.get_bind().dialect.name]
    return float(session.execute(text(clock)).scalar_one())
