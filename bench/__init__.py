"""A benchmark suite for personalised federated learning."""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

FRAMES = ("cells", "clients", "curves", "ranks", "runs")
"""Functions of ``bench.frames`` that return results as pandas frames. The first use imports the module."""


CALLS = ("compare", "run", "sweep")
"""Functions of ``bench.api``, which do what the commands do."""


def __getattr__(name: str) -> Any:
    if name in FRAMES:
        return getattr(import_module("bench.frames"), name)
    if name in CALLS:
        return getattr(import_module("bench.api"), name)
    if name == "Dataset":
        return import_module("bench.dataset").Dataset
    raise AttributeError(f"module 'bench' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the names that a notebook completes, including functions that are not imported yet."""
    return sorted((*globals(), *FRAMES, *CALLS, "Dataset"))
