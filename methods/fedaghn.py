"""FedAGHN: Personalized Federated Learning with Attentive Graph HyperNetworks.

Song et al., 2025; released code: songjiarui00/FedAGHN.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from bench.engine.method import Message, Stack
from bench.engine.personalised import Mixing
from bench.engine.stacks import by_layer, cosines, replaced, softmax_over_others
from bench.hyper import HyperParameters, tunable


class FedAGHN(Mixing):
    """Every layer of a client's model is the client's own mixture of that layer of all models.

    With Theta_i client i's trained model of the last round, Delta_i what that round changed in it, and
    two numbers p_i, q_i a client and layer, each round the server computes in every layer

    1. the attention  s_ij = exp(q_i cos(Delta_i, Delta_j)) / sum_{k != i} exp(q_i cos(Delta_i, Delta_k))
       for j != i, s_ii = 0  (Eq. 4),
    2. the collaboration graph  alpha_ij = s_ij / (1 + p_i), alpha_ii = p_i / (1 + p_i)  (Eq. 5),
    3. the model that client i starts from  bar_i = sum_j alpha_ij Theta_j.

    Client i trains bar_i to Theta'_i. The server then steps with Delta'_i = Theta'_i - bar_i

    4. p_i := max(0, p_i - eta (d bar_i / d p_i)^T Delta'_i), and q_i likewise without the bound.

    What paper and released code leave open or have otherwise, and what is done here:
    - Sign. The step above is the paper's and the code's. Delta' points against the gradient of the
      client's loss, so that it *ascends* that loss: the client's own model lies on the side that it
      trains to, and p falls. ``sign = "descent"`` (``fedaghn_descent``) turns it round.
    - Denominator. The paper's Eq. 4 sums over j; the code leaves the client itself out, as here. Read
      literally (``self_in_softmax``), alpha = s over all clients with cos(Delta_i, Delta_i) = 1, and there
      is no p: it counts as 0.
    - A layer is a module with its weight and bias, normalisation too; running statistics stay with
      the client. Cosines are constants in step 4. Where an update is zero its cosine is 0.
    - In the first round all Delta are the same, so that the graph is uniform but for p. All Theta are
      the same, too: everybody starts from the common initial model.
    - Clients are not weighted by their data. The server uses the last round's models and updates for
      all of them, then takes all steps.
    - Absent clients keep model, update, p and q of the last round that they took part in; before any,
      model and update are the initial model.
    """

    name = "fedaghn"
    title = "FedAGHN"
    reference = "Song et al., 2025"

    class Hyper(HyperParameters):
        p: float = tunable(
            0.03,
            search=[0.02, 0.03, 0.06],
            ge=0,
            description="start value, for all clients and layers, of what a client's own model weighs "
            "beside the softmax",
        )
        q: float = tunable(
            1.0,
            search=[0.1, 0.2, 0.5, 1.0, 3.0, 10.0],
            description="start value, for all clients and layers, of how sharply the softmax follows the "
            "cosines of updates",
        )
        learning_rate: float = Field(0.005, ge=0, description="eta: step size by which p and q are learnt")
        sign: Literal["paper", "descent"] = Field(
            "paper", description="direction of that step: as the paper prints it, or the descent of the loss"
        )
        trained: Literal["both", "p", "q", "none"] = Field("both", description="which of p and q are learnt")
        self_in_softmax: bool = Field(
            False, description="whether the client itself is in the softmax; p is then not used"
        )
        layerwise_pq: bool = Field(
            True, description="whether every layer has a p and q of its own, else one of each a client"
        )

    hyper: Hyper

    def setup_server(self) -> None:
        """Start with the same random Theta and Delta for all clients, and with the initial p and q."""
        super().setup_server()
        self.updates = self.models
        numbers = len(self.layers) if self.hyper.layerwise_pq else 1
        ones = torch.ones(numbers, self.task.clients, dtype=torch.float64, device=self.task.device)
        self.p = ones * (0.0 if self.hyper.self_in_softmax else self.hyper.p)
        self.q = ones * self.hyper.q

    def broadcast(self) -> Message:
        """Mix the models to bar_i: steps 1 to 3."""
        deltas = by_layer(self.updates, self.task.layers)
        self.cosine = torch.stack([cosines(deltas[layer]) for layer in self.layers])
        self.s, self.alpha = attention(self.cosine, self.p, self.q, self.hyper.self_in_softmax)
        self.collaboration = self.alpha.float()
        self.record(collaboration_by_round=self.alpha, p_by_round=self.p, q_by_round=self.q)
        return Message(self.mixtures(self.models, self.alpha))

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Update p and q by the models that were mixed (step 4). Then keep this round's Theta and Delta."""
        updates = {name: trained - received[name] for name, trained in upload.model.items()}
        if self.hyper.trained != "none":
            pull = self.pull(participants, updates)
            by_p, by_q = gradients(self.cosine, self.s, self.alpha, self.p, pull)
            if self.hyper.trained != "q" and not self.hyper.self_in_softmax:
                self.p = (self.p - self.step(by_p)).clamp_min(0)
            if self.hyper.trained != "p":
                self.q = self.q - self.step(by_q)
        self.keep(participants, upload.model)
        self.updates = {
            name: replaced(self.updates[name], participants, value) for name, value in updates.items()
        }

    def step(self, gradient: Tensor) -> Tensor:
        """What is subtracted from p or q, of their shape, for gradients ``[layers, clients]``."""
        direction = 1 if self.hyper.sign == "paper" else -1
        total = gradient if self.hyper.layerwise_pq else gradient.sum(dim=0, keepdim=True)
        return direction * self.hyper.learning_rate * total


def attention(cosine: Tensor, p: Tensor, q: Tensor, self_in_softmax: bool = False) -> tuple[Tensor, Tensor]:
    """s and alpha ``[layers, clients, clients]`` from cosines of that shape.

    p and q are ``[layers, clients]``, or ``[1, clients]`` where all layers share them. With
    ``self_in_softmax`` s has the client itself among the others; p is to be 0 then.
    """
    scores = q[:, :, None] * cosine
    s = scores.softmax(dim=2) if self_in_softmax else softmax_over_others(scores)
    return s, (s + torch.diag_embed(p)) / (1 + p[:, :, None])


def gradients(cosine: Tensor, s: Tensor, alpha: Tensor, p: Tensor, pull: Tensor) -> tuple[Tensor, Tensor]:
    """(d bar_i / d p_i)^T Delta'_i and (d bar_i / d q_i)^T Delta'_i, ``[layers, clients]``.

    ``pull`` ``[layers, clients, clients]`` is G_ij = <Delta'_i, Theta_j>. With
    d bar_i / d p_i = (Theta_i - bar_i) / (1 + p_i) and
    d bar_i / d q_i = sum_j s_ij (c_ij - sum_k s_ik c_ik) Theta_j / (1 + p_i) only G is needed of the models.
    """
    by_p = pull.diagonal(dim1=1, dim2=2) - (alpha * pull).sum(dim=2)
    spread = cosine - (s * cosine).sum(dim=2, keepdim=True)
    return by_p / (1 + p), (s * spread * pull).sum(dim=2) / (1 + p)


class FedAGHNDescent(FedAGHN):
    """FedAGHN whose p and q descend the clients' losses."""

    name = "fedaghn_descent"
    title = "FedAGHN (descent)"

    class Hyper(FedAGHN.Hyper):
        sign: Literal["paper", "descent"] = "descent"
