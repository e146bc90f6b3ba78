"""The result database: runs, what every client got, curves, environments and partitions."""

from bench.store.store import Store, open_store

__all__ = ["Store", "open_store"]
