"""pFedFDA: Personalized Federated Learning via Feature Distribution Adaptation.

McLaughlin and Su, NeurIPS 2024; released code: cj-mclaughlin/pFedFDA.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
from torch import Tensor

from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.stacks import average, repeated
from bench.errors import NotApplicableError
from bench.hyper import added, tunable

from ._discriminant import Gaussians, between, estimate, head, own_weights, priors
from .fedavg import FedAvg, SampleWeights


class PFedFDA(FedAvg):
    """The head is no parameter: it is the discriminant of Gaussians that client and federation share.

    The server has a feature extractor f, class means mu_c and one covariance Sigma, at first uniform on
    (0, 1) and I. For statistics (mu, Sigma) and class shares pi of a client the head is

        w_c = Sigma'^-1 mu_c,   b_c = ln pi_c - mu_c w_c / 2,   Sigma' = Sigma drawn a little to its trace.

    In a round client i

    1. estimates its own means and covariance under the received f, and finds by two-fold cross-validation how
       much of them to take beside the server's (one weight for means, one for covariance): its head, which is
       evaluated as *received*, nothing being trained;
    2. trains f for the local epochs under the head of the server's statistics and its own pi, frozen;
    3. repeats 1 with the trained f, and sends f with the statistics in between.

    The server averages all three by training items.

    What paper and released code have otherwise, and what is done here:
    - The code adds the identity and 1e-4 in every entry to a covariance, where the paper has a small
      multiple of the identity. ``ridge`` times the identity here, 1 as in the code.
    - The code takes the statistics of all batches of all epochs, of a moving f in training mode; here
      those of the trained f in evaluation mode. It gives a class of one item no mean of its own.
    - The weights are found by ten steps of L-BFGS from 0.5 and clipped there; by an 11 x 11 grid here.
    - The code evaluates once, after the last round.

    Features are what the linear head reads, after ReLU. They are more than a graph client has training nodes,
    so that there the ridge decides.
    """

    name = "pfedfda"
    title = "pFedFDA"
    reference = "McLaughlin and Su, NeurIPS 2024"
    families = ("graph", "images")
    client_models = ("gcn", "cnn", "resnet18")
    stage = "received"

    class Hyper(SampleWeights):
        """``ridge``: what is added to the diagonal of every estimated covariance."""

        ridge: float = tunable(
            1.0,
            search=[0.001, 0.03, 1.0],
            gt=0,
            description="added to the diagonal of the covariance of a client's features",
        )
        own: float | None = added(
            None,
            ge=0,
            le=1,
            description="weight of a client's own statistics, in place of the one found by cross-validation",
        )

    hyper: Hyper

    def setup_server(self) -> None:
        """f, the class means, and the upper triangle of the covariance."""
        super().setup_server()
        (weight,) = (
            shape for name, shape in self.task.shapes.items() if name in self.task.head and len(shape) == 2
        )
        self.width, self.classes = weight
        self.triangle = torch.triu_indices(self.width, self.width)
        means = torch.rand(self.classes, self.width, generator=self.task.generator("class means"))
        self.statistics = {
            "means": means.to(self.task.device),
            "covariance": self.packed(torch.eye(self.width, device=self.task.device)),
        }

    def shared(self) -> Collection[str]:
        """f."""
        return self.task.backbone

    def packed(self, covariance: Tensor) -> Tensor:
        """The upper triangle, ``[width (width + 1) / 2]``."""
        return covariance[self.triangle[0], self.triangle[1]]

    def everybodys(self, message: Message) -> Gaussians:
        """The server's statistics out of a message, in float64."""
        covariance = torch.zeros(self.width, self.width, dtype=torch.float64, device=self.task.device)
        covariance[self.triangle[0], self.triangle[1]] = message.extras["covariance"][0].double()
        return Gaussians(message.extras["means"][0].double(), covariance + covariance.triu(1).T)

    def broadcast(self, round: int) -> Message:
        """f and the statistics, to all alike."""
        return Message(super().broadcast(round).model, repeated(self.statistics, self.task.clients))

    def onboard(self, newcomers: Clients, message: Message) -> Message:
        """The same."""
        return Message(repeated(self.model, newcomers.count), repeated(self.statistics, newcomers.count))

    def adapt(self, clients: Clients, received: Stack, message: Message) -> Stack:
        """A head from the statistics in between."""
        return {**received, **self.unpacked(clients.reduce(received, self.personal(message)))[0]}

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train f under the head of the server's statistics; then statistics and a head of its own.

        Raises:
            NotApplicableError: every local epoch is to be evaluated.
        """
        if clients.spec.protocol.evaluate == "epoch":
            raise NotApplicableError(
                f"{self.name} has its own head after the last local epoch alone: set protocol.evaluate=round"
            )
        others = self.everybodys(message)

        def common_head(models: Stack, batch: Batch) -> Tensor:
            labels = [row[row >= 0] for row in batch.labels]
            heads = [head(others, priors(client_labels, self.classes)) for client_labels in labels]
            return torch.stack(
                [torch.cat([weights, bias[None]]).flatten() for weights, bias in heads]
            ).float()

        start = {**received, **self.head_of(clients.reduce(received, common_head))}
        trained = clients.fit(start, trainable=self.shared())
        personal, statistics = self.unpacked(clients.reduce(trained, self.personal(message)))
        upload = Message({name: trained[name] for name in self.shared()}, statistics)
        return Update({**trained, **personal}, upload)

    def personal(self, message: Message) -> Callable[[Stack, Batch], Tensor]:
        """A reduction to every client's head, means and covariance, side by side, ``[c, ...]``."""
        others = self.everybodys(message)

        def of(models: Stack, batch: Batch) -> Tensor:
            features = torch.relu(batch.embed(models)).double()
            rows = []
            for z, labels in zip(features, batch.labels, strict=True):
                z, own_labels = z[labels >= 0], labels[labels >= 0]
                weights = z.new_full((2,), self.hyper.own or 0.0)
                if self.hyper.own is None:
                    weights = own_weights(z, own_labels, others, self.hyper.ridge)
                mixture = between(estimate(z, own_labels, others.means, self.hyper.ridge), others, weights)
                layer, bias = head(mixture, priors(own_labels, self.classes))
                parts = (layer.flatten(), bias, mixture.means.flatten(), self.packed(mixture.covariance))
                rows.append(torch.cat(parts))
            return torch.stack(rows).float()

        return of

    def unpacked(self, rows: Tensor) -> tuple[Stack, Stack]:
        """Heads, and statistics, out of what ``personal`` gives."""
        layer = (self.width + 1) * self.classes
        means = rows[:, layer : layer + self.width * self.classes]
        statistics = {
            "means": means.reshape(-1, self.classes, self.width),
            "covariance": rows[:, layer + self.width * self.classes :],
        }
        return self.head_of(rows[:, :layer]), statistics

    def head_of(self, rows: Tensor) -> Stack:
        """The head's parameters from weights and bias, ``[c, (width + 1) classes]``."""
        values = rows.reshape(-1, self.width + 1, self.classes)
        matrix, bias = sorted(self.task.head, key=lambda name: -len(self.task.shapes[name]))
        return {matrix: values[:, :-1].contiguous(), bias: values[:, -1].contiguous()}

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Averages of f, means and covariance by training items."""
        super().aggregate(participants, received, upload)
        shares = self.weights[participants] / self.weights[participants].sum()
        self.statistics = {name: average(value, shares) for name, value in upload.extras.items()}
