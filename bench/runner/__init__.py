"""Making runs: the plan of a sweep, its loop, workers, claims, and what is said of them.

Here is what may be asked of a sweep; light to import, as the command line has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Backend = Literal["local", "ray", "slurm"]
"""Where runs are made: here, on a Ray cluster, or as Slurm jobs."""

Level = Literal["stale", "failed", "changed"]
"""Stored runs that a person may want to have redone, and nothing else."""


@dataclass(frozen=True)
class Placement:
    """What the command line says of where runs go (``bench sweep --help``)."""

    jobs: int | None = None
    threads: int | None = None
    devices: str | None = None
    backend: Backend = "local"
    slurm: Sequence[str] = ()
