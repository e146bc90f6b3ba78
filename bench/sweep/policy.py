"""What may be asked of a sweep: where its runs go (``Placement``), and when it stops (``Limits``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from bench.errors import RequestError

Backend = Literal["local", "ray", "slurm"]
"""Where runs are made: here, on a Ray cluster, or as Slurm jobs."""

Level = Literal["stale", "failed", "changed"]
"""Stored runs that a person may want to have redone, and nothing else."""

PACKAGES = {"ray": "ray", "slurm": "submitit"}
"""The package that a backend needs, from the extra of the backend's name."""

PER_GPU = 4
"""Runs that share a GPU unless somebody says otherwise."""


@dataclass(frozen=True)
class Placement:
    """What the command line says of where runs go (``bench sweep --help``)."""

    jobs: int | None = None
    threads: int | None = None
    devices: str | None = None
    backend: Backend = "local"
    address: str | None = None
    slurm: Sequence[str] = ()


def check(placement: Placement, find: Callable[[str], object] = find_spec) -> None:
    """Refuse what does not go together or cannot be had here; ``find`` says whether a package is installed.

    Raises:
        RequestError: an option of another backend, no setting, or an extra that is not installed.
    """
    backend = placement.backend
    for option, owner, value in (("address", "ray", placement.address), ("slurm", "slurm", placement.slurm)):
        if value and backend != owner:
            raise RequestError(f"--{option} goes with --backend {owner}, got --backend {backend}")
    for setting in placement.slurm:
        key, _, text = setting.partition("=")
        if not (key and text):
            raise RequestError(f"--slurm expects KEY=VALUE such as partition=gpu, got '{setting}'")
    if backend != "local" and placement.devices not in (None, "cpu", "cuda"):
        raise RequestError(
            f"--devices expects cpu or cuda with --backend {backend}, got '{placement.devices}'"
        )
    # Last: who installs an extra should not be refused afterwards.
    if backend in PACKAGES and find(PACKAGES[backend]) is None:
        raise RequestError(
            f"--backend {backend} needs the extra '{backend}': pip install 'pfl-bench[{backend}]'"
        )


@dataclass(frozen=True)
class Limits:
    """When nothing new starts: after so many failures, or at the end of a budget of seconds. ``timeout`` is
    how many seconds a run may take. None is no limit.
    """

    failures: int | None = None
    timeout: float | None = None
    budget: float | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True)
class Slots:
    """A device name for each run at a time (``cpu``, ``cuda:0``), and the threads of a run. ``elsewhere``: a
    cluster chooses the machine of each run and sees that there is room.
    """

    devices: tuple[str, ...]
    threads: int
    elsewhere: bool = False


def sort_of(device: str) -> str:
    """``cuda`` of ``cuda:0``."""
    return device.partition(":")[0]
