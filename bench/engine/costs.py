"""Seconds and memory of a run, and the settings of its process."""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import torch

TRIM_THRESHOLD, MMAP_MAX = -1, -4
"""Parameters of glibc's ``mallopt``."""

NEVER, USUAL_TRIM, USUAL_MMAPS = 2**31 - 1, 128 * 1024, 65536


class Stopwatch:
    """Adds up the seconds of named parts. The device is synchronised at every boundary.

    A part inside another one stops the outer one's clock, so the parts add up to the whole.
    """

    def __init__(self, device: torch.device) -> None:
        self.seconds: dict[str, float] = {}
        self._device = device
        self._running: list[str] = []
        self._since = 0.0

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add the time of the ``with`` block to a part."""
        self._credit()
        self._running.append(name)
        try:
            yield
        finally:
            self._credit()
            self._running.pop()

    def _credit(self) -> None:
        """Add the time since the last call to the part that runs."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        now = time.perf_counter()
        if self._running:
            part = self._running[-1]
            self.seconds[part] = self.seconds.get(part, 0.0) + now - self._since
        self._since = now


@contextmanager
def run_conditions() -> Iterator[None]:
    """Count denormal floats as zero and keep freed memory within the ``with`` block.

    Weight decay takes the weights of dead units below 1e-38, where a processor multiplies matrices a
    hundred times slower. Steps of methods that work on all parameters of a block (masks, mixtures,
    generated models) free temporaries of many megabytes. Returning these to the system and requesting them
    again in the next step took a quarter of FED-PUB's round on Cora with 50 clients. A C library other than
    glibc is left as it is.
    """
    before = bool(torch.tensor(1e-38) * 0.1 == 0)
    torch.set_flush_denormal(True)
    _call_glibc("mallopt", TRIM_THRESHOLD, NEVER)
    _call_glibc("mallopt", MMAP_MAX, 0)
    try:
        yield
    finally:
        _call_glibc("mallopt", TRIM_THRESHOLD, USUAL_TRIM)
        _call_glibc("mallopt", MMAP_MAX, USUAL_MMAPS)
        _call_glibc("malloc_trim", 0)
        torch.set_flush_denormal(before)


def _call_glibc(name: str, *arguments: int) -> None:
    with suppress(OSError, TypeError, AttributeError):  # no handle on the process, no such function
        getattr(ctypes.CDLL(None), name)(*arguments)


def reset_peak_memory(device: torch.device) -> None:
    """Start measuring the peak anew (on the CPU, if the system allows it).

    Memory that earlier runs of the process left behind is given back first. Live objects and imported
    libraries still count.
    """
    gc.collect()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    _call_glibc("malloc_trim", 0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory(device: torch.device) -> int:
    """Peak bytes since the last reset: allocated on an accelerator, else resident in this process.

    On a CPU that is everything that the process holds: Python, libraries, data and the work itself.
    """
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    from resource import RUSAGE_SELF, getrusage  # not there on Windows

    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
