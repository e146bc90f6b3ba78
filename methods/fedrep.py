"""FedRep: Exploiting Shared Representations for Personalized Federated Learning.

Collins et al., ICML 2021, Algorithm 1.
"""

from __future__ import annotations

from pydantic import Field

from bench.engine.method import Clients, Message, Stack, Update

from .fedavg import SampleWeights
from .fedper import FedPer


class FedRep(FedPer):
    """A shared representation phi (the backbone) and a head h_i of every client, trained in turn.

    In a round client i takes the averaged phi^t and

    1. trains its head h_i alone for ``head_epochs`` (the paper's tau), phi^t frozen;
    2. trains phi alone for the protocol's local epochs, h_i frozen, and sends it.

    Heads never leave. Running statistics of batch normalisation move in both phases, as in PFLlib.

    The paper takes tau gradient steps on the head and one on the representation, its released code
    ten epochs and one; the study's tau is 5, and its phi has the local epochs that every method has.
    The paper's average is plain; here by training items, as for all methods of the study (``weights``).
    """

    name = "fedrep"
    title = "FedRep"
    reference = "Collins et al., ICML 2021"
    onboard = FedPer.onboard

    class Hyper(SampleWeights):
        head_epochs: int = Field(
            5, ge=0, description="the paper's tau: epochs on the head a round, before those on the body"
        )

    hyper: Hyper

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train the head, then the representation."""
        head = clients.fit(received, trainable=self.task.head, epochs=self.hyper.head_epochs, copy="head")
        return self.upload(clients.fit(head, trainable=self.task.backbone))
