"""FedProx: Federated Optimization in Heterogeneous Networks.

Li et al., MLSys 2020, Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.hyper import tunable

from .fedavg import FedAvg


class FedProx(FedAvg):
    """FedAvg with a proximal term in the local objective.

    Client i minimises F_i(w) + mu/2 ||w - W||^2 over all parameters, W being the received model.
    The norm is squared and its gradient flows through w: an un-squared norm has none at w = W,
    where every round starts. The gradient mu (w - W) is added to that of F_i as it stands, which
    costs less than to differentiate the norm.
    """

    name = "fedprox"
    title = "FedProx"
    reference = "Li et al., MLSys 2020"
    stage = "trained"
    onboard = FedAvg.onboard

    class Hyper(FedAvg.Hyper):
        """The subgraph papers leave ``mu`` open."""

        mu: float = tunable(
            0.001,
            search=[0.001, 0.01, 0.1],
            ge=0,
            description="weight of the proximal term, half the squared distance from the received model",
        )

    hyper: Hyper

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train on cross-entropy plus the proximal term for the local epochs."""

        def proximal(gradients: Mapping[str, Tensor], models: Stack, batch: Batch) -> None:
            for name in self.shared():
                difference = models[name] - batch.of(received[name])
                gradients[name].add_(difference.mul_(self.hyper.mu))

        return self.upload(clients.fit(received, adjust=proximal))


class FedProxFT(FedProx):
    """FedProx after local training (fine-tuned on each client), read from FedProx's own run."""

    name = "fedprox_ft"
    title = "FedProx + fine-tuning"
    stage = "trained"
