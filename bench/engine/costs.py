"""Seconds by part, and peak memory, of a run."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import torch

from bench.engine.conditions import give_back_freed_memory


class Stopwatch:
    """Adds up the seconds of named parts. The device is synchronised at every boundary.

    A part inside another one stops the outer one's clock, so the parts add up to the whole.
    """

    def __init__(self, device: torch.device) -> None:
        self.seconds: dict[str, float] = {}
        self._device = device
        self._running: list[str] = []
        self._since = 0.0

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add the time of the ``with`` block to a part."""
        self._switch(enter=name)
        try:
            yield
        finally:
            self._switch(enter=None)

    def elapsed(self, name: str) -> float:
        """Seconds of a part so far, also while it runs."""
        running_seconds = self._now() - self._since if self._running[-1:] == [name] else 0.0
        return self.seconds.get(name, 0.0) + running_seconds

    def _switch(self, enter: str | None) -> None:
        """Enter a part, or leave the innermost one, and credit the time since the last switch to the part
        that ran.
        """
        time = self._now()
        if self._running:
            part = self._running[-1]
            self.seconds[part] = self.seconds.get(part, 0.0) + time - self._since
        if enter is None:
            self._running.pop()
        else:
            self._running.append(enter)
        self._since = time


def reset_peak_memory(device: torch.device) -> None:
    """Start measuring the peak anew (on the CPU, if the system allows it).

    Memory that earlier runs of the process left behind is given back first. Live objects and imported
    libraries still count.
    """
    gc.collect()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    give_back_freed_memory()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory(device: torch.device) -> int:
    """Peak bytes since the last reset: allocated on an accelerator, else resident in this process.

    On a CPU that is everything that the process holds: Python, libraries, data and the work itself.
    """
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    from resource import RUSAGE_SELF, getrusage  # not there on Windows

    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
