"""The exception of a rule that a method does not keep."""

from __future__ import annotations


class Broken(Exception):
    """A method does not keep a rule. The message says what to correct."""


def require(holds: bool, problem: str) -> None:
    """Raise ``Broken`` with this problem unless the rule holds."""
    if not holds:
        raise Broken(problem)
