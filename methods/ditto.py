"""Ditto: Fair and Robust Federated Learning Through Personalization.

Li et al., ICML 2021, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field
from torch import Tensor

from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.stacks import part, prefixed
from bench.hyper import tunable

from .fedavg import FedAvg, SampleWeights

GLOBAL = "global."
"""Prefix of what a client keeps of its copy of the global model."""


class Ditto(FedAvg):
    """FedAvg, and beside it a personal model that a penalty holds near the average.

    In a round client i takes the global model w^t and

    1. trains its personal model v_i on F_i(v_i) + lambda/2 ||v_i - w^t||^2 (Ditto) for
       ``personal_epochs``, w^t being what was received; the gradient lambda (v_i - w^t) is added as it is;
    2. trains w from w^t on F_i for the protocol's local epochs and sends it; the server averages.

    v_i predicts, never leaves the client, and is not replaced by what comes: *received* is the client's
    own last model. Both models have running statistics and an optimiser of their own. v_i starts as w^0
    (Algorithm 1), which is the same for all.

    What is open, and what is done here: the paper takes s steps on v_i after the step on w; its
    released code alternates the two batch by batch, PFLlib and pFedGraph train v_i first for whole
    epochs, as here (the study's s = 5). Either way both start from the same w^t. With lambda = 0
    a client's v_i is that of ``local``, bit by bit.
    """

    name = "ditto"
    title = "Ditto"
    reference = "Li et al., ICML 2021"
    stage = "trained"
    settings: ClassVar[dict[str, str]] = {"protocol.initial": "common"}

    class Hyper(SampleWeights):
        mu: float = tunable(
            1.0,
            search=[0.05, 0.1, 0.2, 1.0, 2.0],
            ge=0,
            description="the paper's lambda: how strongly a personal model is drawn to the common one",
        )
        personal_epochs: int = Field(
            5, ge=1, description="the paper's s: epochs on the personal model a round"
        )

    hyper: Hyper

    def add_parameters(self, models: Stack) -> Stack:
        """Add running statistics for w. Its parameters come anew in every round."""
        statistics = {name: value for name, value in models.items() if name not in self.task.parameters}
        return {**models, **prefixed(GLOBAL, statistics)}

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        """Keep the client's own model, which predicts."""
        return own

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train v_i, then w."""

        def pull(gradients: Mapping[str, Tensor], models: Stack, batch: Batch) -> None:
            for name, w in batch.of(message.model).items():
                gradients[name].add_(models[name] - w, alpha=self.hyper.mu)

        v = {name: value for name, value in received.items() if not name.startswith(GLOBAL)}
        personal = clients.fit(v, adjust=pull, epochs=self.hyper.personal_epochs)
        trained = clients.fit({**part(GLOBAL, received), **message.model}, copy="global")
        statistics = {name: trained[name] for name in part(GLOBAL, received)}
        upload = Message({name: trained[name] for name in self.shared()})
        return Update({**personal, **prefixed(GLOBAL, statistics)}, upload)
