"""The identity of a cell: where it is measured, and the settings of its runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bench.grids.grid import PARTITION_SEED
from bench.spec import RunSpec

PER_SEED = "that of the run"
"""Replaces the partition seed in settings if every run draws its own partition and split."""

Average = Literal["clients", "samples"]
"""``clients``: unweighted mean over clients with samples. ``samples``: pooled over all samples."""


@dataclass(frozen=True)
class Reading:
    """Selects one of a run's numbers by a stage (of ``bench.spec.STAGES``) and a selection rule (of
    ``bench.selection.RULES``).
    """

    stage: str
    rule: str


@dataclass(frozen=True, order=True)
class Column:
    """Where a method is measured: a data set spread over clients."""

    dataset: str
    scenario: str
    clients: int


Settings = Mapping[str, Any]
"""Dotted key as in ``--set`` (``protocol.rounds``, ``method.mu``) -> value."""


def settings_of(spec: RunSpec, per_seed: bool = False) -> dict[str, Any]:
    """Return the settings of a spec. ``per_seed``: ``PER_SEED`` replaces the run's own partition seed."""
    settings = spec.settings()
    if per_seed and spec.protocol.partition_seed == spec.seed:
        settings[PARTITION_SEED] = PER_SEED
    return settings


def difference_text(settings: Settings, reference: Settings) -> str:
    """Return ``key=value;...`` for the ``settings`` that differ from ``reference``; empty if none differs."""
    parts = []
    for key in sorted({*settings, *reference}):
        value = settings.get(key, "absent")
        if key not in reference or value != reference[key]:
            text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            parts.append(f"{key}={text}")
    return ";".join(parts)
