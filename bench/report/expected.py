"""What the grids plan for a cell, whether or not it was run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Expectation:
    """A planned cell: its settings (empty where it cannot be planned) and why it cannot run, if so.

    ``state`` is ``not_run``, ``not_implemented`` or ``no_data``.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    state: str = "not_run"
    reason: str = ""
