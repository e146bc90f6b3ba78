"""What runs will take, from what like ones took: seconds, and memory on an accelerator."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from statistics import median

from bench.spec import RunSpec
from bench.store import connect
from bench.store.queries import Timing
from bench.sweep.devices import sort_of

Kind = tuple[str, str, int, str]

MARGIN = 1.25
"""Memory set aside for a run, as a multiple of the most that a like one needed."""


def kind_of(spec: RunSpec) -> Kind:
    """Data set, scenario, clients and method: runs of one kind take alike."""
    return (spec.dataset, spec.scenario, spec.clients, spec.method)


class Estimator:
    """What a run takes on a sort of device (``cpu``, ``cuda``), from runs of the same kind there alone.

    Seconds: the median of their seconds per local epoch, times the run's rounds and local epochs.
    Bytes: the greatest of their peaks, and a margin.
    """

    def __init__(self, history: Iterable[Timing], device: str) -> None:
        self._device = device
        self._rates: defaultdict[Kind, list[float]] = defaultdict(list)
        self._medians: dict[Kind, float] = {}
        self._peaks: dict[Kind, int] = {}
        for timing in history:
            protocol = json.loads(timing.spec)["protocol"]
            kind = (timing.dataset, timing.scenario, timing.clients, timing.method)
            steps = protocol["rounds"] * protocol["local_epochs"]
            self._add(kind, steps, timing.seconds, timing.device, timing.peak_memory)

    def add(self, spec: RunSpec, seconds: float, device: str, peak_memory: int) -> None:
        """Take a run that has just ended into account."""
        steps = spec.protocol.rounds * spec.protocol.local_epochs
        self._add(kind_of(spec), steps, seconds, device, peak_memory)

    def _add(self, kind: Kind, steps: int, seconds: float, device: str, peak_memory: int) -> None:
        if sort_of(device) != self._device:
            return
        self._rates[kind].append(seconds / steps)
        self._medians.pop(kind, None)
        if peak_memory:
            self._peaks[kind] = max(peak_memory, self._peaks.get(kind, 0))

    def seconds(self, spec: RunSpec) -> float | None:
        """Expected seconds; None where no like run is known on such a device."""
        kind = kind_of(spec)
        if kind not in self._rates:
            return None
        if kind not in self._medians:
            self._medians[kind] = median(self._rates[kind])
        return self._medians[kind] * spec.protocol.rounds * spec.protocol.local_epochs

    def memory(self, spec: RunSpec) -> int | None:
        """Bytes to set aside; None where no like run was measured on such a device."""
        peak = self._peaks.get(kind_of(spec))
        return None if peak is None else int(MARGIN * peak)


def bytes_a_run(url: str, runs: int) -> float | None:
    """Bytes of disk that a stored run takes in a database of so many runs; None where there is none."""
    return connect.database(url).size() / runs if runs else None
