"""Where runs go: slots on devices, threads for each, and how much memory there is."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.errors import RequestError, unknown
from bench.sweep.packing import Device

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


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _visible() -> dict[str, int]:
    """Bytes of memory of every visible GPU, by name."""
    import torch

    if not torch.cuda.is_available():
        return {}
    count = torch.cuda.device_count()
    return {f"cuda:{index}": torch.cuda.get_device_properties(index).total_memory for index in range(count)}


def _named(devices: str, gpus: Mapping[str, int]) -> list[str]:
    """The devices that ``--devices`` names."""
    if devices == "cpu":
        return ["cpu"]
    names = list(gpus) if devices == "cuda" and gpus else [name.strip() for name in devices.split(",")]
    for name in names:
        if not re.fullmatch(r"cuda(:\d+)?", name):
            raise RequestError(
                f"--devices expects cpu, cuda or GPUs such as cuda:0,cuda:1, got '{devices}': "
                f"there is {', '.join(['cpu', *gpus])}"
            )
        if name not in gpus:
            raise RequestError(f"--devices: {unknown('device', name, ['cpu', *gpus])}")
    if len(set(names)) < len(names):
        raise RequestError(f"--devices expects every device once, got '{devices}'")
    return names


def check_counts(jobs: int | None, threads: int | None) -> None:
    """Refuse fewer than one job or thread.

    Raises:
        RequestError: fewer than one.
    """
    for option, count in (("--threads", threads), ("--jobs", jobs)):
        if count is not None and count < 1:
            raise RequestError(f"{option} expects at least 1, got {count}")


def choose(devices: str | None, jobs: int | None, threads: int | None, runs: int) -> Slots:
    """Slots for ``runs`` runs.

    Without ``devices``: every visible GPU, else the CPU. ``jobs`` is the number of slots over all
    devices; without it, one a core on the CPU, and on GPUs as many as there are cores, at most
    ``PER_GPU`` and at least one on each. A run has one thread unless ``threads`` says otherwise: the
    number of threads changes the last bits of sums, so it must not follow from how many runs there
    are.

    Raises:
        RequestError: no such device, or fewer than one job or thread.
    """
    check_counts(jobs, threads)
    gpus = {} if devices == "cpu" else _visible()
    names = _named(devices, gpus) if devices is not None else list(gpus) or ["cpu"]
    usual = cores() if names == ["cpu"] else min(PER_GPU * len(names), max(cores(), len(names)))
    count = max(1, min(jobs or usual, runs))
    slots = tuple(names[index % len(names)] for index in range(count))
    return Slots(slots, threads or 1, {name: gpus[name] for name in slots if name in gpus})
