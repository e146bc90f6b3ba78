"""FedAGHN: personalised image classifiers."""

from .study import FedAGHN

__all__ = ["FedAGHN"]
