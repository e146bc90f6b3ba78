"""The result database: runs, what every client got, curves, environments and partitions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.store.store import Store, open_store

__all__ = ["Store", "open_store"]


def __getattr__(name: str) -> Any:
    """Imported with the first that is asked for: bundles are read without SQLAlchemy."""
    return getattr(import_module("bench.store.store"), name)
