"""The result database: runs, results of every client, curves, environments and partitions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.store.store import Store, open_store

__all__ = ["Store", "open_store"]


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: bundles can be read without SQLAlchemy."""
    return getattr(import_module("bench.store.store"), name)
