"""What a rule raises where a method does not keep it."""

from __future__ import annotations


class Broken(Exception):
    """A rule is not kept; the message says what to mend."""


def require(holds: bool, problem: str) -> None:
    """Raise ``Broken`` unless the rule is kept."""
    if not holds:
        raise Broken(problem)
