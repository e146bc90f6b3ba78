"""What identifies a cell: where it is measured, and the settings of its runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SECTIONS = {"protocol": "protocol", "client": "client", "hyper": "method"}
"""Part of a spec -> the section of ``--set`` that changes it."""

PER_SEED = "that of the run"
"""Stands for the partition seed of runs that each draw their own partition and split."""


@dataclass(frozen=True, order=True)
class Column:
    """Where a method is measured: a data set spread over clients."""

    dataset: str
    scenario: str
    clients: int

    def described(self, dataset: str) -> str:
        """``Cora, non-overlapping, 10 clients``, by the data set's title."""
        return f"{dataset}, {self.scenario}, {self.clients} client{'s' if self.clients > 1 else ''}"


Settings = Mapping[str, Any]
"""Dotted key as in ``--set`` (``protocol.rounds``, ``method.mu``) -> value."""


def settings_of(spec: Mapping[str, Any], per_seed: bool = False) -> dict[str, Any]:
    """The settings of a spec (its JSON): everything but names and seed, flat.

    With ``per_seed`` a partition seed that equals the run's seed becomes ``PER_SEED``.
    """
    settings = {
        f"{section}.{key}": value
        for part, section in SECTIONS.items()
        for key, value in sorted(spec[part].items())
    }
    if per_seed and settings["protocol.partition_seed"] == spec["seed"]:
        settings["protocol.partition_seed"] = PER_SEED
    return settings


def difference(settings: Settings, reference: Settings) -> str:
    """``key=value;...`` for what ``settings`` has other than ``reference``; empty where nothing."""
    return ";".join(
        f"{key}={_text(value)}"
        for key, value in sorted(settings.items())
        if key not in reference or reference[key] != value
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
