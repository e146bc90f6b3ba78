"""FedIIH: Modeling Inter-Intra Heterogeneity for Graph Federated Learning.

AAAI 2025 (arXiv 2412.11402); released code: blgpb/FedIIH.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.personalised import Personalised
from bench.errors import NotApplicableError
from bench.hyper import HyperParameters, tunable
from bench.nn.gcn import graphs

from ._disentangled import divergences, neighbours_of, route

USED = ("conv1.weight", "conv1.bias", "head.weight", "head.bias")
"""What of the client model there is: W, b and the head; a second convolution has no part in it."""


class FedIIH(Personalised):
    """Node embeddings fall into latent factors, and clients are mixed factor by factor.

    The client's network is h = LeakyReLU(x W + b) with as many columns as K factors of width d' have (K d' is
    ``client.hidden``), dropout, ``layers`` rounds of neighbourhood routing (``_disentangled.route``) and a
    linear head. A client trains W, b and the head on its cross-entropy and sends them with two vectors a
    factor: means over its nodes of mu and ln sigma^2, which are the hidden state after ``inference_layers``
    further layers of routing. For every factor k the server computes

        J_ij = Jensen-Shannon divergence of N(mu_i^k, sigma_i^k) and N(mu_j^k, sigma_j^k)
        w_ij^k = softmax_j(tau (1 - J_ij / ln 2))

    and gives client i the columns of W, the entries of b and the rows of the head of factor k mixed by w^k,
    and the plain mean of the head's bias.

    What paper and released code have otherwise, and what is done here:
    - In the paper a variational objective trains the projection by which mu and sigma are inferred. In the
      code its optimiser holds two vectors that enter no message, and mu and ln sigma^2 are the same layers
      without parameters on the same state: it trains nothing and sends nothing. It is left out here, and mu
      and ln sigma^2 are equal, without the dropout that alone tells them apart there.
    - The code halves a state into a semantic and a structural factor for K = 2, and pairs them for more.
    - All settings are tuned by data set there; K and layers are those for Cora here.

    ``fediih_average`` mixes all factors evenly, which is what the weights are at the start of a run.
    """

    name = "fediih"
    title = "FedIIH"
    reference = "AAAI 2025, arXiv 2412.11402"
    families = ("graph",)
    client_models = ("gcn",)
    numerics = 2

    class Hyper(HyperParameters):
        factors: int = tunable(2, search=[1, 2, 4], ge=1, description="K: latent factors of an embedding")
        layers: int = tunable(2, search=[1, 2, 3], ge=0, description="layers of routing before the head")
        inference_layers: int = Field(2, ge=0, description="further layers before what is compared")
        steps: int = Field(6, ge=1, description="routings in a layer")
        tau: float = Field(10.0, ge=0, description="sharpness of the softmax over clients' similarities")

    hyper: Hyper

    def setup_server(self) -> None:
        """Start with one model and equal weights.

        Raises:
            NotApplicableError: the hidden width is no multiple of the number of factors.
        """
        task, k = self.task, self.hyper.factors
        if task.shapes["conv1.bias"][0] % k:
            raise NotApplicableError(
                f"{self.name} cuts {task.shapes['conv1.bias'][0]} hidden units into {k} factors"
            )
        super().setup_server()
        self.collaboration = torch.full((k, task.clients, task.clients), 1 / task.clients, device=task.device)

    def shared(self) -> Collection[str]:
        """Send W, b and the head."""
        return USED

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train on cross-entropy for the local epochs. Then send mu and ln sigma^2 of every factor."""

        def objective(models: Stack, batch: Batch) -> Tensor:
            return batch.cross_entropy(self.logits(models, batch))

        trained = clients.fit(received, objective=objective, trainable=USED)
        statistics = clients.reduce(trained, self.inferred)
        return self.upload(trained, mean=statistics, log_variance=statistics)

    def hidden(self, models: Stack, batch: Batch) -> Tensor:
        """The state that the head reads, ``[factors, c x items, width]``."""
        inputs = graphs(batch.inputs)
        x = inputs.first_layer(models["conv1.weight"]).view(len(inputs.lengths), inputs.items, -1)
        x = functional.leaky_relu(x + models["conv1.bias"][:, None, :])
        x = batch.drop(x, 0) if batch.drop else x
        factors = x.reshape(-1, self.hyper.factors, x.shape[2] // self.hyper.factors).transpose(0, 1)
        return self.routed(factors, batch, self.hyper.layers)

    def routed(self, x: Tensor, batch: Batch, layers: int) -> Tensor:
        """The state after further layers."""
        for _ in range(layers):
            x = route(x, batch.cached(neighbours_of), self.hyper.steps)
        return x

    def logits(self, models: Stack, batch: Batch) -> Tensor:
        """Apply the linear head to all factors."""
        x = self.hidden(models, batch).transpose(0, 1).reshape(*batch.labels.shape, -1)
        return torch.bmm(x, models["head.weight"]) + models["head.bias"][:, None, :]

    def inferred(self, models: Stack, batch: Batch) -> Tensor:
        """Means over nodes of the state after the layers of inference, ``[c, factors, width]``."""
        x = self.routed(self.hidden(models, batch), batch, self.hyper.inference_layers)
        nodes = graphs(batch.inputs).nodes
        x = x.view(len(x), *batch.labels.shape, -1) * nodes[:, :, None]
        return x.sum(dim=2).transpose(0, 1) / nodes.sum(dim=1)[:, None, None]

    def mixtures(self, models: Stack, weights: Tensor) -> Stack:
        """Mix the models factor by factor."""
        return mixed_by_factor(models, weights)

    def weights(self, participants: Tensor, received: Stack, upload: Message) -> Tensor:
        """w ``[factors, clients, clients]``; rows sum to 1."""
        mean, log_variance = upload.extras["mean"], upload.extras["log_variance"]
        factor_divergences = [divergences(mean[:, k], log_variance[:, k]) for k in range(self.hyper.factors)]
        similarity = 1 - torch.stack(factor_divergences) / math.log(2)
        return (self.hyper.tau * similarity).softmax(dim=2)


class FedIIHAverage(FedIIH):
    """FedIIH with plain averages of all factors: its network without its collaboration."""

    name = "fediih_average"
    title = "FedIIH (plain average)"

    class Hyper(FedIIH.Hyper):
        tau: float = 0.0

    hyper: Hyper


def mixed_by_factor(models: Stack, weights: Tensor) -> Stack:
    """Mixtures by ``weights`` ``[factors, mixtures, clients]``, each for a factor's hidden units."""
    factors = len(weights)
    w, b, head = (models[name] for name in USED[:3])
    columns = w.view(*w.shape[:2], factors, -1)
    return {
        "conv1.weight": torch.einsum("kij,jfkd->ifkd", weights, columns).reshape(-1, *w.shape[1:]),
        "conv1.bias": torch.einsum("kij,jkd->ikd", weights, b.view(len(b), factors, -1)).flatten(1),
        "head.weight": torch.einsum(
            "kij,jkdc->ikdc", weights, head.view(len(head), factors, -1, head.shape[2])
        ).reshape(-1, *head.shape[1:]),
        "head.bias": models["head.bias"].mean(dim=0).expand(weights.shape[1], -1),
    }
