"""FED-PUB's protocol, on which most papers on personalised learning of subgraphs report."""

from .study import FedPubProtocol

__all__ = ["FedPubProtocol"]
