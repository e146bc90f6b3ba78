"""Make runs: the plan of a sweep, its loop, workers, claims and display.

This module holds the options of a sweep. It is light to import, since the command line imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Backend = Literal["local", "ray", "slurm"]
"""Where runs are made: on this machine, on a Ray cluster, or as Slurm jobs."""

Level = Literal["stale", "failed", "changed"]
"""The stored runs that ``rerun`` selects: a sweep makes these again, and no other runs."""


@dataclass(frozen=True)
class Placement:
    """Where the command line places runs (see ``bench sweep --help``)."""

    jobs: int | None = None
    threads: int | None = None
    devices: str | None = None
    backend: Backend = "local"
    slurm: Sequence[str] = ()
