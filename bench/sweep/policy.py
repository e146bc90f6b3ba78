"""What a sweep may do and what it decides, as functions of what they are given: they ask no machine.

Where runs go (``Placement``), how they are packed onto devices (``place``), what is tried again
(``Attempt``), what is held back (``Pauses``), and when the sweep stops (``Limits``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from bench.engine.states import SETTLED
from bench.errors import RequestError

if TYPE_CHECKING:  # the command line refuses what it can before anything large is imported
    from bench.engine.result import RunResult
    from bench.spec import RunSpec

Backend = Literal["local", "ray", "slurm"]
"""Where runs are made: here, on a Ray cluster, or as Slurm jobs."""

Level = Literal["stale", "failed", "changed"]
"""Stored runs that a person may want to have redone, and nothing else."""

# What may be asked for -----------------------------------------------------------------------------

PACKAGES = {"ray": "ray", "slurm": "submitit"}
"""The package that a backend needs, from the extra of the backend's name."""


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
    for option, value, backend in (
        ("--address", placement.address, "ray"),
        ("--slurm", placement.slurm, "slurm"),
    ):
        if value and placement.backend != backend:
            raise RequestError(f"{option} goes with --backend {backend}, got --backend {placement.backend}")
    for setting in placement.slurm:
        key, equals, value = setting.partition("=")
        if not (key and equals and value):
            raise RequestError(f"--slurm expects KEY=VALUE such as partition=gpu, got '{setting}'")
    if placement.backend != "local" and placement.devices not in (None, "cpu", "cuda"):
        raise RequestError(
            f"--devices expects cpu or cuda with --backend {placement.backend}, got '{placement.devices}'"
        )
    package = PACKAGES.get(placement.backend)  # last: who installs an extra should not be refused afterwards
    if package is not None and find(package) is None:
        raise RequestError(
            f"--backend {placement.backend} needs the extra '{placement.backend}': "
            f"pip install 'pfl-bench[{placement.backend}]'"
        )


@dataclass(frozen=True)
class Limits:
    """Failures after which nothing new starts, seconds that a run may take, seconds that the sweep
    may take; None where there is no such limit.
    """

    failures: int | None = None
    timeout: float | None = None
    budget: float | None = None


# Packing ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Device:
    """Where runs go: at most ``slots`` at a time, in ``memory`` bytes (None: slots alone decide)."""

    name: str
    slots: int
    memory: int | None = None


@dataclass(frozen=True)
class Demand:
    """What a run needs: bytes (None: never measured), and whether nothing else may run beside it."""

    memory: int | None = None
    alone: bool = False


def must_be_alone(demand: Demand, device: Device) -> bool:
    """Whether a run has the device to itself: asked for, or its memory is unknown or too much."""
    if demand.alone or device.memory is None:
        return demand.alone
    return demand.memory is None or demand.memory > device.memory


def place(
    waiting: Iterable[Demand], running: Mapping[str, Sequence[Demand]], devices: Sequence[Device]
) -> tuple[int, str] | None:
    """Position in ``waiting`` of the run to start now, and its device; None where nothing can start.

    ``running`` holds the demands of what runs, by device. Runs start in order; one that fits nowhere
    yet keeps the device with the fewest runs from taking anything else, so that its turn comes.
    """
    free_devices = [device for device in devices if len(running.get(device.name, ())) < device.slots]
    reserved: set[str] = set()
    if not free_devices:
        return None
    for position, demand in enumerate(waiting):
        fitting = [
            device
            for device in free_devices
            if device.name not in reserved and _fits(demand, running.get(device.name, ()), device)
        ]
        if fitting:
            return position, min(fitting, key=lambda device: len(running.get(device.name, ()))).name
        candidates = [device for device in devices if device.name not in reserved]
        reserved.add(min(candidates, key=lambda device: len(running.get(device.name, ()))).name)
        if len(reserved) == len(devices):
            return None
    return None


def _fits(demand: Demand, load: Sequence[Demand], device: Device) -> bool:
    if not load:
        return True
    if any(must_be_alone(entry, device) for entry in (demand, *load)):
        return False
    return device.memory is None or sum(entry.memory or 0 for entry in (demand, *load)) <= device.memory


PER_GPU = 4
"""Runs that share a GPU where memory allows and nobody says otherwise."""

CONTEXT_BYTES = 640 * 2**20
"""Set aside on a GPU for every process that uses it: its context and what the allocator holds back."""


@dataclass(frozen=True)
class Slots:
    """One device name a run at a time (``cpu``, ``cuda:0``, ...), threads for each, and the bytes of
    memory of those devices on which memory decides how many runs share them. ``elsewhere``: the names
    hold on whatever machine a cluster finds for a run, and the cluster sees to the room there.
    """

    devices: tuple[str, ...]
    threads: int
    memory: Mapping[str, int] = field(default_factory=dict)
    elsewhere: bool = False

    @property
    def sort(self) -> str:
        """``cpu`` or ``cuda``: slots are all of one sort."""
        return sort_of(self.devices[0])

    @property
    def shared(self) -> tuple[Device, ...]:
        """Every device once, with its slots and the memory that its runs may use together."""
        return tuple(
            Device(name, slots, self.memory[name] - slots * CONTEXT_BYTES if name in self.memory else None)
            for name, slots in Counter(self.devices).items()
        )


def sort_of(device: str) -> str:
    """``cuda`` of ``cuda:0``."""
    return device.partition(":")[0]


# Trying again -------------------------------------------------------------------------------------

LOSSES = 3
"""How often a run is tried again whose worker was killed, through no fault of its own."""


@dataclass(frozen=True)
class Attempt:
    """How a run is tried: ``alone`` on its device, in blocks of clients ``shrink`` times smaller than
    usual, of ``block`` clients as far as a worker has said (0: none has); and what was tried before, how
    often it was lost, and the most memory it reached.
    """

    alone: bool = False
    shrink: int = 1
    block: int = 0
    lost: int = 0
    tried: tuple[str, ...] = ()
    peak: int = 0

    @property
    def number(self) -> int:
        """1 for the first attempt."""
        return 1 + self.lost + len(self.tried)

    @property
    def how(self) -> str:
        """The attempt in words."""
        if self.shrink > 1:
            size = f"{self.block} client{'s' if self.block > 1 else ''}"
            return f"in blocks of {size if self.block else f'1/{self.shrink}'}"
        return "alone on the device" if self.alone else "beside other runs"


def after_loss(attempt: Attempt) -> Attempt | None:
    """The next attempt for a run whose worker was lost; None where it was tried often enough."""
    return replace(attempt, lost=attempt.lost + 1) if attempt.lost < LOSSES else None


def noted(attempt: Attempt, result: RunResult) -> Attempt:
    """The attempt with its failure for want of memory noted: how it was tried, and the peak."""
    update = replace(attempt, block=result.block or attempt.block)
    return replace(update, tried=(*update.tried, update.how), peak=max(update.peak, result.peak_memory))


def after_memory(attempt: Attempt, clients: int) -> Attempt | None:
    """The next attempt for a run that ran out of memory: alone, then in blocks of clients half as
    large each time; None where the blocks were of one client already. No number depends on blocks.
    """
    if not attempt.alone:
        return replace(attempt, alone=True)
    smallest = attempt.block == 1 if attempt.block else attempt.shrink >= clients
    return None if smallest else replace(attempt, shrink=2 * attempt.shrink, block=attempt.block // 2)


def out_of_memory(attempt: Attempt, result: RunResult) -> RunResult:
    """The result to store for a run that does not fit: what was tried, and the peak."""
    peak = f"peak {attempt.peak / 2**30:.2f} GiB" if attempt.peak else "peak unknown"
    result.reason = f"{result.reason}; {peak}; tried {', '.join(attempt.tried)}"
    result.peak_memory = attempt.peak
    return result


# Holding back -------------------------------------------------------------------------------------

CELLS = 3
"""Cells of a method that fail alike before the rest of its runs is held back."""

FRAME = re.compile(r'^\s*File "(?P<file>.+)", line (?P<line>\d+), in ', re.MULTILINE)


def exception(result: RunResult) -> str | None:
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

    def ended(self, spec: RunSpec, result: RunResult) -> str | None:
        """Take note of a run that has ended; returns why its method is held back from now on."""
        method = spec.method
        failure = exception(result)
        if failure is None:
            if result.state in SETTLED:
                self._cleared.add(method)
            return None
        last_failure, cells = self._failures.get(method, ("", set()))
        if last_failure != failure:
            cells = set()
        cells.add(spec.cell_on_any_partition)
        self._failures[method] = (failure, cells)
        if len(cells) < CELLS or method in self._cleared or method in self.paused:
            return None
        self.paused[method] = f"its first {CELLS} cells failed alike: {failure}"
        return self.paused[method]
