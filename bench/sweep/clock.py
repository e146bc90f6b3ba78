"""Time as it is stored and written: UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """UTC without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def written(moment: datetime) -> str:
    """ISO 8601 to the second, for a moment in UTC without a zone."""
    return moment.isoformat(timespec="seconds")
