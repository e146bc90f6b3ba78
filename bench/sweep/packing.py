"""Which waiting run starts next, and on which device: a decision on numbers alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


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
    free = [device for device in devices if len(running.get(device.name, ())) < device.slots]
    kept: set[str] = set()
    if not free:
        return None
    for position, demand in enumerate(waiting):
        fitting = [
            device
            for device in free
            if device.name not in kept and _fits(demand, running.get(device.name, ()), device)
        ]
        if fitting:
            return position, min(fitting, key=lambda device: len(running.get(device.name, ()))).name
        others = [device for device in devices if device.name not in kept]
        kept.add(min(others, key=lambda device: len(running.get(device.name, ()))).name)
        if len(kept) == len(devices):
            return None
    return None


def _fits(demand: Demand, beside: Sequence[Demand], device: Device) -> bool:
    if not beside:
        return True
    if any(must_be_alone(each, device) for each in (demand, *beside)):
        return False
    return device.memory is None or sum(each.memory or 0 for each in (demand, *beside)) <= device.memory
