"""FedAMP and HeurFedAMP: Personalized Cross-Silo Federated Learning on Non-IID Data.

Huang et al., AAAI 2021, Algorithm 1 and the section on HeurFedAMP.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from pydantic import Field
from torch import Tensor

from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.personalised import Mixing
from bench.engine.stacks import cosines, mix, softmax_over_others, squared_distances
from bench.hyper import HyperParameters, tunable


class FedAMP(Mixing):
    """Every client keeps its own model, and is drawn to a mixture of all that favours its like.

    With w_i client i's model, each round but the first

    1. the server weights the others by  xi_ij = alpha_K A'(||w_i - w_j||^2)  with
       A(x) = 1 - exp(-x / sigma), hence A'(x) = exp(-x / sigma) / sigma, and the client itself by
       xi_ii = 1 - sum_{j != i} xi_ij;
    2. it sends  u_i = sum_j xi_ij w_j;
    3. client i goes on from w_i on  F_i(w) + lambda / (2 alpha_K) ||w - u_i||^2.

    What is open, and what is done here:
    - The gradient lambda / alpha_K (w - u_i) of the penalty is added to that of F_i. A widely used
      implementation computes the penalty from values without a gradient: its FedAMP is local training.
    - With alpha_K = 100 and sigma = 10,000 a weight of another client is at most 0.01 and the penalty's
      factor 0.01: almost local training, too. xi_ii is negative where alpha_K / sigma is more than 1
      over the number of others.
    - Nothing is mixed in the first round. All models start from one; ``initial`` of the protocol does
      not matter, since distances of models that never had a common start say nothing.
    - *Received* is the client's own last model. The mixtures that absent clients go into hold the
      models of their last round.
    """

    name = "fedamp"
    title = "FedAMP"
    reference = "Huang et al., AAAI 2021"

    class Hyper(HyperParameters):
        alpha: float = Field(100.0, gt=0, description="alpha_K: step size of the server's attention step")
        strength: float = Field(
            1.0, ge=0, description="lambda: how strongly a model is drawn to its mixture in training"
        )
        sigma: float = Field(
            1e4,
            gt=0,
            description="how fast attention falls with the distance of models; in H-FedAMP how sharp the "
            "softmax is",
        )

    hyper: Hyper

    def add_parameters(self, models: Stack) -> Stack:
        """Start with one random model for all, with its running statistics."""
        return {**models, **self.task.common()}

    def attention(self) -> Tensor:
        """xi, float64 ``[clients, clients]``; rows sum to 1."""
        xi = (
            self.hyper.alpha
            * torch.exp(-squared_distances(self.models) / self.hyper.sigma)
            / self.hyper.sigma
        )
        xi.fill_diagonal_(0)
        return xi + torch.diag(1 - xi.sum(dim=1))

    def broadcast(self) -> Message:
        """Send u_i in addition to the client's own model. In the first round nothing is sent."""
        identity = torch.eye(self.task.clients, device=self.task.device)
        self.collaboration = self.attention().float() if self.round else identity
        self.record(collaboration_by_round=self.collaboration)
        return Message(extras=mix(self.models, self.collaboration) if self.round else {})

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train on the objective of step 3 for the local epochs."""

        def attraction(gradients: Mapping[str, Tensor], models: Stack, batch: Batch) -> None:
            for name, mixture in batch.of(message.extras).items():
                gradients[name].add_(models[name] - mixture, alpha=self.hyper.strength / self.hyper.alpha)

        return self.upload(clients.fit(received, adjust=attraction if message.extras else None))

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Keep w_i."""
        self.keep(participants, upload.model)


class HFedAMP(FedAMP):
    """HeurFedAMP: as FedAMP, with the attention of a softmax over cosines, for large models.

    xi_ii = omega, the same for all, and
    xi_ij = (1 - omega) exp(sigma cos(w_i, w_j)) / sum_{k != i} exp(sigma cos(w_i, w_k))  for j != i.

    The cosine is that of whole models; a public re-implementation takes it of what has changed since
    the common initial model. Clients start a round from their own models (open in the paper), and
    with the penalty's factor of 1 they end near u_i.
    """

    name = "h_fedamp"
    title = "H-FedAMP"

    class Hyper(FedAMP.Hyper):
        alpha: float = Field(1.0, gt=0)
        sigma: float = Field(100.0, ge=0)
        self_weight: float = tunable(
            0.05,
            search=[0.05, 0.1],
            ge=0,
            le=1,
            description="omega: weight of a client's own model in its mixture",
        )

    hyper: Hyper

    def attention(self) -> Tensor:
        """xi, float64 ``[clients, clients]``; rows sum to 1."""
        other_weights = softmax_over_others(self.hyper.sigma * cosines(self.models))
        self_weights = self.hyper.self_weight * torch.eye(self.task.clients, device=self.task.device)
        return self_weights + (1 - self.hyper.self_weight) * other_weights
