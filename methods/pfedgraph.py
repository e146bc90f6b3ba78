"""pFedGraph: Personalized Federated Learning with Inferred Collaboration Graphs.

Ye et al., ICML 2023, Algorithm 1; released code: MediaBrain-SJTU/pFedGraph, pfedgraph_cosine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.personalised import Personalised
from bench.engine.stacks import cosines, mix, norms, project_onto_simplex, replaced
from bench.hyper import HyperParameters, tunable

ALIKE = 0.9
"""Clients whose displacements have a larger cosine count as the same (released code)."""


class PFedGraph(Personalised):
    """Every client gets its own mixture of all models, weighted by an inferred collaboration graph.

    With W_0 the initial common model and W_i client i's trained one, each round the server

    1. compares displacements: d_ij = -cos(W_i - W_0, W_j - W_0) over all parameters, where a
       cosine above 0.9 counts as 1;
    2. solves for every row of the graph  min alpha ||x||^2 + (d_i - 2 alpha p)^T x  subject to
       x >= 0 and sum x = 1, with p the clients' shares of all training items;
    3. sends model i = sum_j x_ij W_j, and the neighbours' mean direction
       c_i = sum_j x_ij W_j / ||W_j||.

    From the second round on client i minimises F_i(w) - lambda <c_i, w> / ||w||.

    What paper and released code leave open or have otherwise, and what is done here:
    - Displacement. The code never updates W_0, so it is the displacement since the beginning of
      the run, not of the round. So here. Clients start each round from much the same mixture and
      share most of the way: on Cora with 10 clients all cosines are above 0.8 after one round and
      mostly above 0.9 later, so self-weights stay at 0.1 to 0.2 and the method near FedAvg.
    - The quadratic programme needs no solver: it is the Euclidean projection of
      p - d_i / (2 alpha) onto the simplex (complete the square). Computed in float64 by sorting.
    - Sign. The paper means to draw a model towards its neighbours; the released loss has a plus
      sign, which pushes it away. Minus here; ``PFedGraphReleased`` keeps the plus.
    - c_i counts in the bytes that are sent. The optimiser is the study's (the code: SGD with momentum).
    """

    name = "pfedgraph"
    title = "pFedGraph"
    reference = "Ye et al., ICML 2023"
    sign: ClassVar[float] = -1.0

    class Hyper(HyperParameters):
        alpha: float = tunable(
            0.8,
            search=[0.4, 0.8, 1.6],
            gt=0,
            description="how strongly a client's row of weights is tied to the clients' shares of "
            "training items",
        )
        attraction: float = tunable(
            0.01,
            search=[0.001, 0.01, 0.1],
            ge=0,
            description="lambda: weight of the cosine between a model and its neighbours' mean direction",
        )

    hyper: Hyper

    def setup_server(self) -> None:
        """Start with W_0 for all, the data sizes for the prior p, and a graph that follows from p alone."""
        super().setup_server()
        self.sizes = self.task.train_sizes.double()
        self.collaboration = (self.sizes / self.sizes.sum()).float().expand(self.task.clients, -1)
        self.start = {name: value[0] for name, value in self.models.items()}
        self.directions: Stack = {}

    def broadcast(self) -> Message:
        """Send every client its mixture of models, and c_i from the second round on."""
        return Message(self.models, self.directions)

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train on F_i(w) - lambda <c_i, w> / ||w|| for the local epochs.

        The second term's gradient -lambda (c_i / ||w|| - <c_i, w> w / ||w||^3) is added as it stands.
        """
        strength = self.sign * self.hyper.attraction

        def alignment(gradients: Mapping[str, Tensor], models: Stack, batch: Batch) -> None:
            directions = batch.of(message.extras)
            lengths = {name: torch.linalg.vector_norm(models[name].flatten(1), dim=1) for name in directions}
            length = torch.linalg.vector_norm(torch.stack(list(lengths.values())), dim=0)
            inner = [(directions[name] * models[name]).flatten(1).sum(dim=1) for name in directions]
            direction_factor = 1 / length * strength
            length_factor = -(strength * torch.stack(inner).sum(dim=0) / length / length)
            for name, direction in directions.items():
                shape = (-1, *[1] * (direction.dim() - 1))
                change = models[name] / lengths[name].clamp_min(1e-30).view(shape)
                change.mul_((length_factor * (lengths[name] / length)).view(shape))
                gradients[name].add_(change.add_(direction * direction_factor.view(shape)))

        return self.upload(clients.fit(received, adjust=alignment if message.extras else None))

    def weights(self, participants: Tensor, received: Stack, upload: Message) -> Tensor:
        """x, the collaboration graph of the clients that took part."""
        prior = self.sizes[participants] / self.sizes[participants].sum()
        cosine = cosines({name: value - self.start[name] for name, value in upload.model.items()})
        cosine[cosine > ALIKE] = 1
        return project_onto_simplex(prior + cosine / (2 * self.hyper.alpha))

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Compute the graph, the mixtures and the directions."""
        super().aggregate(participants, received, upload)
        x = self.collaboration[participants][:, participants]
        directions = mix(upload.model, x / norms(upload.model))
        before = self.directions or {name: torch.zeros_like(value) for name, value in self.models.items()}
        self.directions = {name: replaced(before[name], participants, directions[name]) for name in before}


class PFedGraphReleased(PFedGraph):
    """pFedGraph with the released code's plus sign: models are pushed away from their neighbours."""

    name = "pfedgraph_released"
    title = "pFedGraph (released sign)"
    sign = 1.0
