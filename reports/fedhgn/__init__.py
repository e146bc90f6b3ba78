"""FedHGN: hypergraphs with and without completion."""

from .study import FedHGN

__all__ = ["FedHGN"]
