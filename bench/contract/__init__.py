"""The rules that every method must keep, for the tests and for ``bench check-method``."""

from __future__ import annotations


class Broken(Exception):
    """A method does not keep a rule. The message says what to correct."""


def require(holds: bool, problem: str) -> None:
    """Raise ``Broken`` with this problem unless the rule holds."""
    if not holds:
        raise Broken(problem)
