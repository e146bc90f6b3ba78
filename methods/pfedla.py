"""pFedLA: Layer-wised Model Aggregation for Personalized Federated Learning.

Ma et al., CVPR 2022, Algorithm 1.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from bench.engine.method import Message, Stack
from bench.engine.personalised import Mixing
from bench.hyper import HyperParameters

HIDDEN_LAYERS = 3
"""Layers with ReLU between an embedding and the heads."""


class PFedLA(Mixing):
    """A hypernetwork of its own emits every client's weights in the mixture of every layer.

    Client i has, at the server, an embedding v_i and a hypernetwork psi_i: three layers with ReLU and a
    linear head for each layer l of the model. Each round the server

    1. computes  alpha_i^l = the head's outputs, one a client, cut at 0 and divided by their sum,
    2. sends  bar_i^l = sum_j alpha_ij^l theta_j^l, theta_j being client j's last trained model,
    3. and steps with Delta_i = trained - bar_i:  v_i, psi_i -= eta (d bar_i / d (v_i, psi_i))^T Delta_i.

    What paper and public code leave open or have otherwise, and what is done here:
    - Sign. Step 3 is the paper's: it ascends the client's loss, as FedAGHN's does.
    - Weights. The paper speaks of a softmax; re-implementations cut at 0 and divide, the default
      here (``normalisation``). A client whose outputs are all 0 keeps its own layer.
    - Start. Heads have weights from U(0, 1) and no bias, so that mixtures begin near uniform ones;
      other layers have torch's defaults, embeddings are N(0, 1). All clients' hypernetworks start alike.
    - A layer is a module with its weight and bias, normalisation too. All clients' mixtures hold the
      models of the last round; a re-implementation updates them client by client.
    - An absent client's embedding and hypernetwork stay as they are.

    A client's number decides its embedding, and which output is whose.
    """

    name = "pfedla"
    title = "pFedLA"
    reference = "Ma et al., CVPR 2022"

    class Hyper(HyperParameters):
        learning_rate: float = Field(
            0.005, ge=0, description="eta: step size of hypernetworks and embeddings"
        )
        embedding: int = Field(100, ge=1, description="width of a client's embedding")
        hidden: int = Field(100, ge=1, description="width of the hypernetworks' hidden layers")
        normalisation: Literal["relu", "softmax"] = Field(
            "relu", description="how the weights of a layer are made to sum to one"
        )

    hyper: Hyper

    def setup_server(self) -> None:
        """Set up v_i and psi_i, stacked, in float64."""
        super().setup_server()
        clients, device = self.task.clients, self.task.device
        draw = self.task.generator("hypernetwork")
        widths = [self.hyper.embedding, *[self.hyper.hidden] * HIDDEN_LAYERS]

        def uniform(low: float, high: float, *shape: int) -> Tensor:
            values = torch.rand(*shape, generator=draw, dtype=torch.float64) * (high - low) + low
            return values.repeat(clients, *[1] * len(shape)).to(device)

        embedding = torch.randn(clients, self.hyper.embedding, generator=draw, dtype=torch.float64)
        self.networks = {"embedding": embedding.to(device)}
        for number in range(HIDDEN_LAYERS):
            bound = widths[number] ** -0.5
            self.networks[f"weight{number}"] = uniform(-bound, bound, widths[number], widths[number + 1])
            self.networks[f"bias{number}"] = uniform(-bound, bound, 1, widths[number + 1])
        self.networks["heads"] = uniform(0, 1, len(self.layers), self.hyper.hidden, clients)
        self.networks["head_bias"] = uniform(0, 0, len(self.layers), 1, clients)

    def alpha(self, networks: Stack) -> Tensor:
        """Compute alpha (step 1), float64 ``[layers, clients, clients]``."""
        x = networks["embedding"][:, None, :]
        for number in range(HIDDEN_LAYERS):
            x = torch.relu(torch.baddbmm(networks[f"bias{number}"], x, networks[f"weight{number}"]))
        outputs = (x[:, None] @ networks["heads"] + networks["head_bias"]).squeeze(2).transpose(0, 1)
        if self.hyper.normalisation == "softmax":
            return outputs.softmax(dim=2)
        positive = torch.relu(outputs)
        total = positive.sum(dim=2, keepdim=True)
        identity = torch.eye(self.task.clients, dtype=total.dtype, device=total.device)
        return torch.where(total > 0, positive / total.where(total > 0, 1), identity)

    def broadcast(self) -> Message:
        """Mix the models to bar_i: steps 1 and 2."""
        alpha = self.alpha(self.networks)
        self.collaboration = alpha.float()
        self.record(collaboration_by_round=alpha)
        return Message(self.mixtures(self.models, alpha))

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Step 3, on the models that were mixed. Then keep this round's theta."""
        updates = {name: trained - received[name] for name, trained in upload.model.items()}
        leaves = {name: value.requires_grad_() for name, value in self.networks.items()}
        alpha = self.alpha(leaves)
        gradients = torch.autograd.grad(alpha, list(leaves.values()), self.pull(participants, updates))
        self.networks = {
            name: (value - self.hyper.learning_rate * gradient).detach()
            for (name, value), gradient in zip(leaves.items(), gradients, strict=True)
        }
        self.keep(participants, upload.model)
