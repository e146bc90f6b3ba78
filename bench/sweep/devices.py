"""Where runs go: slots on devices, and threads for each."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from bench.errors import RequestError


@dataclass(frozen=True)
class Slots:
    """One device name a run at a time (``cpu``, ``cuda:0``, ...), and threads for each."""

    devices: tuple[str, ...]
    threads: int


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _visible() -> list[str]:
    import torch

    return (
        [f"cuda:{index}" for index in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    )


def choose(device: str | None, jobs: int | None, threads: int | None, runs: int) -> Slots:
    """Slots for ``runs`` runs.

    Without ``device``: one slot a visible GPU, else one a core. ``jobs`` sets the number of slots,
    spread over the devices. A run has one thread unless ``threads`` says otherwise: the number of
    threads changes the last bits of sums, so it must not follow from how many runs there are.

    Raises:
        RequestError: no such device, or fewer than one job or thread.
    """
    if threads is not None and threads < 1:
        raise RequestError(f"--threads expects at least 1, got {threads}")
    if jobs is not None and jobs < 1:
        raise RequestError(f"--jobs expects at least 1, got {jobs}")
    if device is not None and device != "cpu" and not re.fullmatch(r"cuda(:\d+)?", device):
        raise RequestError(f"--device expects cpu, cuda or cuda:NUMBER, got '{device}'")
    devices = ["cpu"] if device == "cpu" else _visible()
    if device is not None and device != "cpu":
        wanted = devices if device == "cuda" else [device]
        if not wanted or not set(wanted) <= set(devices):
            raise RequestError(f"--device {device}: there is {', '.join(['cpu', *devices])}")
        devices = wanted
    devices = devices or ["cpu"]
    count = jobs or (cores() if devices == ["cpu"] else len(devices))
    count = max(1, min(count, runs))
    slots = tuple(devices[index % len(devices)] for index in range(count))
    return Slots(slots, threads or 1)
