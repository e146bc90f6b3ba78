"""FedPer: Federated Learning with Personalization Layers.

Arivazhagan et al., arXiv 1912.00818.
"""

from __future__ import annotations

from collections.abc import Collection

from .fedavg import FedAvg


class FedPer(FedAvg):
    """The backbone is averaged as in FedAvg; every client keeps a head of its own.

    With the studies' GCN the personal layer is the linear head after both graph convolutions.
    """

    name = "fedper"
    title = "FedPer"
    reference = "Arivazhagan et al., 2019"
    stage = "trained"

    def shared(self) -> Collection[str]:
        """All but the head."""
        return self.task.backbone
