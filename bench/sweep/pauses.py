"""Holding back a method that fails everywhere in the same way."""

from __future__ import annotations

import re

from bench.engine.result import RunResult
from bench.sweep.plan import SETTLED, Step

CELLS = 3
"""Cells of a method that fail alike before the rest of its runs is held back."""

FRAME = re.compile(r'^\s*File "(?P<file>.+)", line (?P<line>\d+), in ', re.MULTILINE)


def fingerprint(result: RunResult) -> str | None:
    """Type and place of the exception that a run itself raised; None where it raised none."""
    if not result.raised:
        return None
    frames = list(FRAME.finditer(result.traceback))
    place = f" in {frames[-1]['file'].rpartition('/')[2]}:{frames[-1]['line']}" if frames else ""
    return result.reason.partition(":")[0] + place


class Pauses:
    """Which methods are held back, and why.

    A method is held back when its first ``CELLS`` distinct cells (seeds apart) failed with one and
    the same exception. A run of it that is settled clears it for good.
    """

    def __init__(self) -> None:
        self.paused: dict[str, str] = {}
        self._cleared: set[str] = set()
        self._failures: dict[str, tuple[str, set[str]]] = {}

    def ended(self, step: Step, result: RunResult) -> str | None:
        """Take note of a run that has ended; returns why its method is held back from now on."""
        method = step.spec.method
        found = fingerprint(result)
        if found is None:
            if result.state in SETTLED:
                self._cleared.add(method)
            return None
        known, cells = self._failures.get(method, ("", set()))
        if known != found:
            cells = set()
        cells.add(step.spec.cell_on_any_partition)
        self._failures[method] = (found, cells)
        if len(cells) < CELLS or method in self._cleared or method in self.paused:
            return None
        self.paused[method] = f"its first {CELLS} cells failed alike: {found}"
        return self.paused[method]
