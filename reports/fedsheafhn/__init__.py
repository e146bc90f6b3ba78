"""FedSheafHN: eleven methods on six graphs."""

from .study import FedSheafHN

__all__ = ["FedSheafHN"]
