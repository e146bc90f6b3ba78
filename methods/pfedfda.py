"""pFedFDA: Personalized Federated Learning via Feature Distribution Adaptation.

McLaughlin and Su, NeurIPS 2024; released code: cj-mclaughlin/pFedFDA.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.stacks import average, repeated
from bench.hyper import added, tunable

from .fedavg import FedAvg, SampleWeights

SHRINKAGE = 1e-4
"""Share of the mean variance that a covariance is drawn to before it is inverted."""

SMOOTHING = 1e-4
"""Added to every class's share, so that no prior is zero."""

GRID = 11
"""Values between 0 and 1 that either weight of the own statistics is tried at."""


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
        """Start with f, the class means, and the upper triangle of the covariance."""
        super().setup_server()
        self.matrix, self.bias = sorted(self.task.head, key=lambda name: -len(self.task.shapes[name]))
        self.width, self.classes = self.task.shapes[self.matrix]
        self.triangle = torch.triu_indices(self.width, self.width)
        means = torch.rand(self.classes, self.width, generator=self.task.generator("class means"))
        self.statistics = {
            "means": means.to(self.task.device),
            "covariance": self.packed(torch.eye(self.width, device=self.task.device)),
        }

    def shared(self) -> Collection[str]:
        """Send f."""
        return self.task.backbone

    def packed(self, covariance: Tensor) -> Tensor:
        """The upper triangle of a covariance, ``[width (width + 1) / 2]``."""
        return covariance[self.triangle[0], self.triangle[1]]

    def everybodys(self, message: Message) -> Gaussians:
        """The server's statistics in a message, in float64."""
        covariance = torch.zeros(self.width, self.width, dtype=torch.float64, device=self.task.device)
        covariance[self.triangle[0], self.triangle[1]] = message.extras["covariance"][0].double()
        return Gaussians(message.extras["means"][0].double(), covariance + covariance.triu(1).T)

    def broadcast(self) -> Message:
        """Send f and the statistics to all clients alike."""
        return Message(super().broadcast().model, repeated(self.statistics, self.task.clients))

    def onboard(self, newcomers: Clients, message: Message) -> Message:
        """Send newcomers the same."""
        return Message(repeated(self.model, newcomers.count), repeated(self.statistics, newcomers.count))

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        """Take f, and compute a head from statistics between the client's own and the server's."""
        received = {**own, **message.model}
        personal = clients.reduce(received, self.personal(message))
        return {**received, **{name: personal[name] for name in self.task.head}}

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train f under the head of the server's statistics. Then compute statistics and a
        head in between.
        """
        others = self.everybodys(message)

        def common_head(models: Stack, batch: Batch) -> dict[str, Tensor]:
            return stacked([self.head_of(others, labels[labels >= 0]) for labels in batch.labels])

        start = {**received, **clients.reduce(received, common_head)}
        trained = clients.fit(start, trainable=self.shared())
        personal = clients.reduce(trained, self.personal(message))
        statistics = {name: personal[name] for name in self.statistics}
        upload = Message({name: trained[name] for name in self.shared()}, statistics)
        return Update({**trained, **{name: personal[name] for name in self.task.head}}, upload)

    def personal(self, message: Message) -> Callable[[Stack, Batch], dict[str, Tensor]]:
        """A reduction to every client's head, and to the means and covariance that the head follows from."""
        others = self.everybodys(message)

        def of(models: Stack, batch: Batch) -> dict[str, Tensor]:
            features = torch.relu(batch.embed(models)).double()
            rows = []
            for z, labels in zip(features, batch.labels, strict=True):
                z, own_labels = z[labels >= 0], labels[labels >= 0]
                weights = z.new_full((2,), self.hyper.own or 0.0)
                if self.hyper.own is None:
                    weights = own_weights(z, own_labels, others, self.hyper.ridge)
                mixture = between(estimate(z, own_labels, others.means, self.hyper.ridge), others, weights)
                statistics = {"means": mixture.means, "covariance": self.packed(mixture.covariance)}
                rows.append({**self.head_of(mixture, own_labels), **statistics})
            return stacked(rows)

        return of

    def head_of(self, gaussians: Gaussians, labels: Tensor) -> dict[str, Tensor]:
        """The head's parameters for a client with these training labels."""
        weights, bias = head(gaussians, priors(labels, self.classes))
        return {self.matrix: weights, self.bias: bias}

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Average f, means and covariance by training items."""
        super().aggregate(participants, received, upload)
        shares = self.weights[participants] / self.weights[participants].sum()
        self.statistics = {name: average(value, shares) for name, value in upload.extras.items()}


class Gaussians(NamedTuple):
    """Class means ``[classes, width]`` and the covariance that classes share ``[width, width]``."""

    means: Tensor
    covariance: Tensor


def stacked(rows: Sequence[Stack]) -> dict[str, Tensor]:
    """Join the tensors of single clients, one row for each, in float32."""
    return {name: torch.stack([row[name] for row in rows]).float() for name in rows[0]}


def priors(labels: Tensor, classes: int) -> Tensor:
    """Class shares, smoothed, ``[classes]`` in float64."""
    counts = torch.bincount(labels, minlength=classes).double()
    shares = counts / counts.sum().clamp_min(1) + SMOOTHING
    return shares / shares.sum()


def estimate(features: Tensor, labels: Tensor, others: Tensor, ridge: float) -> Gaussians:
    """Statistics of some items: features ``[n, width]`` with labels ``[n]``.

    A class without items takes its mean from ``others`` ``[classes, width]``. The covariance is the
    scatter within classes over n - 1. ``ridge`` is added to its diagonal.
    """
    one_hot = torch.nn.functional.one_hot(labels, len(others)).to(features)
    counts = one_hot.sum(dim=0)[:, None]
    means = torch.where(counts > 0, one_hot.T @ features / counts.clamp_min(1), others)
    centred = features - means[labels]
    scatter = centred.T @ centred / max(len(labels) - 1, 1)
    return Gaussians(means, scatter + ridge * torch.eye(len(scatter)).to(scatter))


def between(local: Gaussians, others: Gaussians, weights: Tensor) -> Gaussians:
    """Mix own statistics by ``weights`` (of means, of covariance) with the others' statistics."""
    return Gaussians(*(torch.lerp(b, a, w) for a, b, w in zip(local, others, weights, strict=True)))


def head(gaussians: Gaussians, shares: Tensor) -> tuple[Tensor, Tensor]:
    """Weights ``[width, classes]`` and bias ``[classes]`` that give log posteriors up to a constant."""
    shrunk = shrunken(gaussians.covariance)
    weights = torch.linalg.solve(shrunk, gaussians.means.T)
    bias = shares.log() - (gaussians.means.T * weights).sum(dim=0) / 2
    return weights, bias


def shrunken(covariance: Tensor) -> Tensor:
    """The covariance, drawn a little to a multiple of the identity with the same trace."""
    width = len(covariance)
    level = SHRINKAGE * covariance.trace() / width
    return (1 - SHRINKAGE) * covariance + level * torch.eye(width).to(covariance)


def own_weights(features: Tensor, labels: Tensor, others: Gaussians, ridge: float) -> Tensor:
    """The weights in [0, 1] of the own means and covariance that predict held-out halves of the items best,
    ``[2]``.

    Every other item of a class is in one half. Each half is predicted with statistics of the other one.
    The cross-entropies of both are summed at all pairs of ``GRID`` values, and the first smallest pair
    wins. In a basis in which both covariances are diagonal, a pair costs no more than a product of
    vectors.
    """
    shares = priors(labels, len(others.means))
    half = parity(labels)
    steps = torch.linspace(0, 1, GRID, dtype=features.dtype, device=features.device)
    losses = features.new_zeros(GRID, GRID)
    for fold in (False, True):
        train_mask, test_mask = half != fold, half == fold
        if not train_mask.any() or not test_mask.any():
            continue
        local = estimate(features[train_mask], labels[train_mask], others.means, ridge)
        root, failure = torch.linalg.cholesky_ex(shrunken(others.covariance))
        if failure:  # no covariance, as an attacker may send: nothing can be told, and both weights stay 0
            continue
        matrix = torch.linalg.solve_triangular(root, shrunken(local.covariance), upper=False)
        matrix = torch.linalg.solve_triangular(root, matrix.T, upper=False)
        values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
        basis = torch.linalg.solve_triangular(root.T, vectors, upper=True)  # others' covariance becomes I
        z, local_means, other_means = features[test_mask] @ basis, local.means @ basis, others.means @ basis
        means = other_means + steps[:, None, None] * (local_means - other_means)  # [grid, classes, width]
        precision = 1 / (1 + steps[:, None] * (values - 1))  # [grid, width]
        weights = means[:, None] * precision[None, :, None]  # [grid, grid, classes, width]
        logits = z @ weights.transpose(2, 3) - (means[:, None] * weights).sum(dim=3)[:, :, None] / 2
        logs = (logits + shares.log()).log_softmax(dim=3)
        losses -= logs.gather(3, labels[test_mask].expand(GRID, GRID, -1)[..., None]).sum(dim=(2, 3))
    index = int(losses.argmin())
    return torch.stack([steps[index // GRID], steps[index % GRID]])


def parity(labels: Tensor) -> Tensor:
    """Whether an odd number of items of the same class stand before an item, bool ``[n]``."""
    pairs = torch.tril(labels[:, None] == labels[None, :], diagonal=-1)
    return pairs.sum(dim=1) % 2 == 1
