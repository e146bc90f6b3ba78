"""FedPer: Federated Learning with Personalization Layers.

Arivazhagan et al., arXiv 1912.00818.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from .fedavg import FedAvg


class FedPer(FedAvg):
    """The backbone is averaged as in FedAvg; every client keeps a head of its own.

    The paper's clients draw their heads each for itself; public code, FED-PUB's among it, copies one model
    to all, as here: heads that start alike are better by validation on Cora, Photo and Computers (the
    document ``weight_decay_validation``). ``protocol.initial = "own"`` is the paper's wording.
    """

    name = "fedper"
    title = "FedPer"
    reference = "Arivazhagan et al., 2019"
    stage = "trained"
    settings: ClassVar[dict[str, str]] = {"protocol.initial": "common"}
    onboard = FedAvg.onboard

    def shared(self) -> Collection[str]:
        """Send everything but the head."""
        return self.task.backbone
