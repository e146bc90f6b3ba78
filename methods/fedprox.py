"""FedProx: Federated Optimization in Heterogeneous Networks.

Li et al., MLSys 2020, Algorithm 2.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bench.engine.clients import Clients
from bench.engine.method import Stack
from bench.hyper import tunable

from .fedavg import FedAvg


class FedProx(FedAvg):
    """FedAvg with a proximal term in the local objective.

    Client i minimises F_i(w) + mu/2 ||w - W||^2 over all parameters, W being the received model.
    The norm is squared and its gradient flows through w: an un-squared norm has none at w = W,
    where every round starts.
    """

    name = "fedprox"
    title = "FedProx"
    reference = "Li et al., MLSys 2020"
    stage = "trained"

    class Hyper(FedAvg.Hyper):
        """``mu``: weight of the proximal term; the subgraph papers leave it open."""

        mu: float = tunable(0.001, search=[0.001, 0.01, 0.1], ge=0)

    hyper: Hyper

    def train(self, clients: Clients, received: Stack) -> Stack:
        """Local epochs on cross-entropy plus the proximal term."""

        def proximal(models: Stack, block: slice) -> Tensor:
            moved = [(models[name] - received[name][block]).flatten(1) for name in self.shared()]
            return self.hyper.mu / 2 * torch.stack([d.square().sum(dim=1) for d in moved]).sum(dim=0)

        return clients.fit(received, loss=proximal)
