"""pFedFDA: Personalized Federated Learning via Feature Distribution Adaptation.

McLaughlin and Su, NeurIPS 2024; released code: cj-mclaughlin/pFedFDA.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import NamedTuple

import torch
from torch import Tensor

from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.stacks import average, repeated
from bench.hyper import tunable

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
    numerics = 2

    class Hyper(SampleWeights):
        ridge: float = tunable(
            1.0,
            search=[0.001, 0.03, 1.0],
            gt=0,
            description="added to the diagonal of the covariance of a client's features",
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
        """The upper triangle of covariances, ``[..., width (width + 1) / 2]``."""
        return covariance[..., self.triangle[0], self.triangle[1]]

    def everybodys(self, message: Message) -> Common:
        """The server's statistics in a message, in float64."""
        covariance = torch.zeros(self.width, self.width, dtype=torch.float64, device=self.task.device)
        covariance[self.triangle[0], self.triangle[1]] = message.extras["covariance"][0].double()
        return Common.of(message.extras["means"][0].double(), covariance + covariance.triu(1).T)

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
        """Train f under the head of the server's statistics. Then compute statistics and a head between."""
        others = self.everybodys(message)
        weights = others.basis @ ((others.means @ others.basis) / others.variances).T

        def common_head(models: Stack, batch: Batch) -> dict[str, Tensor]:
            return self.head_of(weights.expand(len(batch.labels), -1, -1), others.means, batch.labels)

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
            z, labels = training_items(torch.relu(batch.embed(models)).double(), batch.labels)
            of_means, of_covariance = own_weights(z, labels, others, self.hyper.ridge)
            own = estimate(z, labels, others.means, self.hyper.ridge)
            means = torch.lerp(others.means.expand_as(own.means), own.means, of_means[:, None, None])
            covariance = torch.lerp(others.covariance, own.covariance, of_covariance[:, None, None])
            weights = inverse_times(own, others, of_covariance, means @ others.basis)
            statistics = {"means": means.float(), "covariance": self.packed(covariance).float()}
            return {**self.head_of(others.basis @ weights.mT, means, labels), **statistics}

        return of

    def head_of(self, weights: Tensor, means: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """The heads of clients with these training labels: ``weights`` ``[c, width, classes]`` are
        Sigma'^-1 mu, and the bias gives log posteriors up to a constant.
        """
        bias = priors(labels, self.classes).log() - (means.mT * weights).sum(dim=1) / 2
        return {self.matrix: weights.float(), self.bias: bias.float()}

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Average f, means and covariance by training items."""
        super().aggregate(participants, received, upload)
        shares = self.weights[participants] / self.weights[participants].sum()
        self.statistics = {name: average(value, shares) for name, value in upload.extras.items()}


class Common(NamedTuple):
    """The server's class means ``[classes, width]`` and covariance, and the basis in which it is diagonal.

    ``variances`` are those of the covariance drawn a little to its trace; ``basis`` has its axes as columns.
    """

    means: Tensor
    covariance: Tensor
    variances: Tensor
    basis: Tensor

    @classmethod
    def of(cls, means: Tensor, covariance: Tensor) -> Common:
        """Find the basis."""
        values, basis = torch.linalg.eigh(covariance)
        return cls(means, covariance, (1 - SHRINKAGE) * values + SHRINKAGE * values.mean(), basis)


class Own(NamedTuple):
    """Statistics of clients: class means ``[c, classes, width]``, and the differences ``[c, n, width]`` of
    items from the mean of their class, over the root of n - 1. With the ``ridge`` they give the covariance.
    """

    means: Tensor
    differences: Tensor
    ridge: float

    @property
    def covariance(self) -> Tensor:
        """The scatter within classes, and the ridge on its diagonal, ``[c, width, width]``."""
        identity = torch.eye(self.means.shape[2]).to(self.means)
        return self.differences.mT @ self.differences + self.ridge * identity


def training_items(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Features and labels of every client's items with a label, padded with the label -1."""
    is_other = labels < 0
    items = int((~is_other).sum(dim=1).max())
    places = is_other.long().argsort(dim=1, stable=True)[:, :items]
    return features.take_along_dim(places[:, :, None], 1), labels.take_along_dim(places, 1)


def one_hot(labels: Tensor, classes: int) -> Tensor:
    """Which class items ``[c, n]`` have, float64 ``[c, n, classes]``; none for the label -1."""
    return (labels[:, :, None] == torch.arange(classes, device=labels.device)).double()


def priors(labels: Tensor, classes: int) -> Tensor:
    """Class shares of every client, smoothed, ``[c, classes]`` in float64."""
    counts = one_hot(labels, classes).sum(dim=1)
    shares = counts / counts.sum(dim=1, keepdim=True).clamp_min(1) + SMOOTHING
    return shares / shares.sum(dim=1, keepdim=True)


def estimate(features: Tensor, labels: Tensor, others: Tensor, ridge: float) -> Own:
    """Statistics of clients' items: features ``[c, n, width]`` with labels ``[c, n]``, -1 for none.

    A class without items takes its mean from ``others`` ``[classes, width]``.
    """
    members = one_hot(labels, len(others))
    counts = members.sum(dim=1)[:, :, None]
    means = torch.where(counts > 0, members.mT @ features / counts.clamp_min(1), others)
    differences = (features - members @ means) * members.sum(dim=2, keepdim=True)
    differences = differences / (counts.sum(dim=1, keepdim=True) - 1).clamp_min(1).sqrt()
    if differences.shape[1] > differences.shape[2]:  # fewer rows with the same scatter
        differences = torch.linalg.qr(differences, mode="r").R
    return Own(means, differences, ridge)


def inverse_times(own: Own, others: Common, share: Tensor, rows: Tensor) -> Tensor:
    """``rows`` ``[..., classes, width]`` times the inverse of Sigma', all in the server's basis.

    Sigma' is ``share`` ``[...]`` of the own covariance and the rest of the server's, drawn a little to its
    trace. In the basis it is D + share V^T V with a diagonal D and a row of V an item, so that Woodbury's
    identity needs to solve for as many unknowns as there are items.
    """
    v = math.sqrt(1 - SHRINKAGE) * own.differences @ others.basis
    scatter = own.differences.square().sum(dim=(1, 2)) / own.means.shape[2]
    own_level = own.ridge + SHRINKAGE * scatter
    share = share[..., None]
    d = ((1 - share) * others.variances + share * own_level[..., None])[..., None, :]
    inner = torch.eye(v.shape[1]).to(v) + share[..., None] * (v / d) @ v.mT
    solved: Tensor = torch.linalg.solve(inner, v / d @ rows.mT)
    return rows / d - share[..., None] * (solved.mT @ v) / d


def own_weights(features: Tensor, labels: Tensor, others: Common, ridge: float) -> Tensor:
    """The weights in [0, 1] of the own means and covariance that predict held-out halves of every client's
    items best, ``[2, c]``.

    Every other item of a class is in one half. Each half is predicted with statistics of the other one. The
    cross-entropies of both are summed at all pairs of ``GRID`` values, and the first smallest pair wins.
    """
    clients, classes = len(features), len(others.means)
    steps = torch.linspace(0, 1, GRID, dtype=features.dtype, device=features.device)
    losses = features.new_zeros(clients, GRID, GRID)
    if not bool((others.variances > 0).all()):  # no covariance, as an attacker may send: nothing can be told
        return features.new_zeros(2, clients)
    half, shares = parity(labels), priors(labels, classes).log()
    halves = [training_items(features, labels.masked_fill(half != side, -1)) for side in (False, True)]
    for (z, z_labels), (tested, tested_labels) in (halves, reversed(halves)):
        own = estimate(z, z_labels, others.means, ridge)
        has_own = (z_labels >= 0).any(dim=1)[:, None, None]
        counted = one_hot(tested_labels, classes) * has_own
        tested, base, own_means = (x @ others.basis for x in (tested, others.means, own.means))
        change = own_means - base
        rows = torch.cat([base.expand_as(change), change], dim=1)
        weights = inverse_times(own, others, steps[:, None].expand(-1, clients), rows)
        of_base, of_change = weights.split(classes, dim=2)  # [grid, c, classes, width]
        base_logits, change_logits = (tested @ weights.mT).split(classes, dim=3)
        squares = [
            (base * of_base).sum(dim=3),
            2 * (change * of_base).sum(dim=3),
            (change * of_change).sum(dim=3),
        ]
        for number, step in enumerate(steps):
            square = squares[0] + step * squares[1] + step**2 * squares[2]
            logits = base_logits + step * change_logits - square[:, :, None] / 2
            logs = (logits + shares[:, None]).log_softmax(dim=3)
            losses[:, number] -= (logs * counted).sum(dim=(2, 3)).T
    index = losses.flatten(1).argmin(dim=1)
    return torch.stack([steps[index // GRID], steps[index % GRID]])


def parity(labels: Tensor) -> Tensor:
    """Whether an odd number of items of the same class stand before an item, bool ``[..., n]``."""
    pairs = torch.tril(labels[..., :, None] == labels[..., None, :], diagonal=-1)
    return pairs.sum(dim=-1) % 2 == 1
