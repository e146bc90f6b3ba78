"""The result database: runs, what every client got, curves, environments and partitions."""

from bench.store.store import Context, Store, open_store

__all__ = ["Context", "Store", "open_store"]
