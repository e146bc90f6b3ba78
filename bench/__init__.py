"""A benchmark suite for personalised federated learning."""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

FRAMES = ("cells", "clients", "curves", "ranks", "runs")
"""Results as pandas frames: functions of ``bench.frames``, imported with the first that is asked for."""


CALLS = ("compare", "run", "sweep")
"""What the commands do: functions of ``bench.api``."""


def __getattr__(name: str) -> Any:
    if name in FRAMES:
        return getattr(import_module("bench.frames"), name)
    if name in CALLS:
        return getattr(import_module("bench.api"), name)
    if name == "Dataset":
        return import_module("bench.dataset").Dataset
    raise AttributeError(f"module 'bench' has no attribute '{name}'")


def __dir__() -> list[str]:
    """What a notebook completes: the frames, too, though they are not imported yet."""
    return sorted((*globals(), *FRAMES, *CALLS, "Dataset"))
