"""FedPAC: Personalized Federated Learning with Feature Alignment and Classifier Collaboration.

Xu et al., ICLR 2023, Algorithm 1.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.optimize import nnls
from torch import Tensor
from torch.nn import functional

from bench.engine.batch import cross_entropy
from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.stacks import mix, repeated, replaced
from bench.hyper import tunable

from .fedavg import FedAvg, SampleWeights

JITTER = 1e-8
"""Share of the mean diagonal that is added to it: the matrices are positive up to rounding."""

SMALLEST = 1e-3
"""Smaller weights count as none."""


class FedPAC(FedAvg):
    """Features are aligned by class prototypes, heads are combined client by client.

    In a round client i takes the averaged feature extractor theta, a head phi_i of its own combination and
    the global prototypes c_k, and

    1. with theta as received, describes itself: class shares p_k, feature means mu_k of its classes,
       h_ik = p_k mu_k, and V_i = (sum_k p_k E||f||^2_k - sum_k ||h_ik||^2) / n_i;
    2. trains phi_i alone for ``head_epochs``;
    3. trains theta alone for the local epochs on F_i + lambda mean over images of |f - c_y|^2 / width;
    4. takes the class means of the trained theta, and sends both parts, the means, h_i and V_i.

    The server averages theta by training images and the class means by their images, and combines heads:
    phi_i becomes sum_j a_ij phi_j, where a_i minimises the bound of bias and variance

        sum_j a_j^2 V_j + ||sum_j a_j (h_i - h_j)||^2     on the simplex (``head_weights``).

    Weights below 0.001 become 0 and the others are scaled to sum to 1, as in the release; PFLlib does not
    scale. In round 0 there are no prototypes, and no term of theirs.

    What differs between codes, and what is done here:
    - Heads learn at the client's rate, as in PFLlib; the release has 0.1 for them, and momentum.
    - Means are weighted by images, as released; PFLlib's are not. A class that no client sent has the
      client's own mean as its prototype, as released; with PFLlib it has no term.
    - Statistics are over all training images in evaluation mode. PFLlib leaves out an incomplete last
      batch, and takes those of round 0 in training mode.
    - Where the matrix of that bound is not positive definite by rounding, the release leaves out its
      eigenvectors below 0.01; here 1e-8 of its mean diagonal is added to the diagonal.
    """

    name = "fedpac"
    title = "FedPAC"
    reference = "Xu et al., ICLR 2023"
    stage = "trained"

    class Hyper(SampleWeights):
        strength: float = tunable(
            1.0,
            search=[0.1, 0.5, 1.0, 5.0, 10.0],
            ge=0,
            description="lambda: weight of the alignment of a client's features with the common class "
            "centres",
        )
        head_epochs: int = Field(1, ge=0, description="epochs on the head before the local epochs")

    hyper: Hyper

    def setup_server(self) -> None:
        """Start with one model. No heads are combined, and no class has a prototype."""
        super().setup_server()
        self.heads: Stack = repeated({name: self.model[name] for name in self.task.head}, self.task.clients)
        self.record(collaboration=torch.eye(self.task.clients, device=self.task.device))
        self.prototypes: dict[str, Tensor] = {}

    def broadcast(self) -> Message:
        """Send theta to all, phi_i to client i, and the prototypes with the classes that have one."""
        return Message(
            {**super().broadcast().model, **self.heads}, repeated(self.prototypes, self.task.clients)
        )

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Compute statistics, train the head, train the features, compute prototypes: steps 1 to 4."""
        counts = clients.reduce(received, lambda models, batch: batch.label_counts)
        sizes = counts.sum(dim=1).clamp_min(1)
        shares = counts / sizes[:, None]
        moments = clients.reduce(received, class_means)
        means, squares = moments["means"], moments["squares"]
        h = shares[:, :, None] * means
        spread = (shares * squares).sum(dim=1) - h.square().sum(dim=(1, 2))
        targets = means
        if message.extras:
            mask = message.extras["known"][:, :, None]
            targets = torch.where(mask > 0, message.extras["prototypes"], means)

        def aligned(models: Stack, batch: Batch) -> Tensor:
            features = batch.embed(models)
            entropy = batch.cross_entropy(batch.head(models, features))
            return entropy + self.hyper.strength * distance(features, batch.of(targets), batch)

        head = clients.fit(received, trainable=self.task.head, epochs=self.hyper.head_epochs, copy="head")
        objective = aligned if message.extras else cross_entropy
        trained = clients.fit(head, trainable=self.task.backbone, objective=objective)
        prototypes = clients.reduce(trained, class_means)["means"]
        return self.upload(trained, h=h, variance=spread / sizes, prototypes=prototypes, counts=counts)

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Average models and prototypes, and combine the heads for every client."""
        super().aggregate(participants, received, upload)
        h = upload.extras["h"].double().flatten(1).cpu().numpy()
        variance = upload.extras["variance"].double().clamp_min(0).cpu().numpy()
        weights = torch.from_numpy(head_weights(h, variance))
        weights = weights.to(self.task.device, torch.float32)
        heads = mix({name: upload.model[name] for name in self.task.head}, weights)
        self.heads = {name: replaced(self.heads[name], participants, heads[name]) for name in heads}
        rows = weights.new_zeros(len(weights), self.task.clients).index_copy(1, participants, weights)
        self.record(collaboration=replaced(self.records["collaboration"], participants, rows))
        counts = upload.extras["counts"]
        total = counts.sum(dim=0)
        sums = (counts[:, :, None] * upload.extras["prototypes"]).sum(dim=0)
        self.prototypes = {"prototypes": sums / total.clamp_min(1)[:, None], "known": (total > 0).float()}


def membership(batch: Batch) -> Tensor:
    """Which training items are of which class, 0 or 1 ``[c, classes, items]``."""
    return functional.one_hot(batch.labels + 1, batch.block.classes + 1)[:, :, 1:].float().transpose(1, 2)


def class_means(models: Stack, batch: Batch) -> dict[str, Tensor]:
    """Means over the training items of every class, 0 for a class without any.

    ``means`` ``[c, classes, width]`` are those of features, ``squares`` ``[c, classes]`` those of
    their squared norms.
    """
    features = batch.embed(models)
    values = torch.cat([features, features.square().sum(dim=2, keepdim=True)], dim=2)
    averages = membership(batch) @ values / batch.label_counts.clamp_min(1)[:, :, None]
    return {"means": averages[:, :, :-1], "squares": averages[:, :, -1]}


def distance(features: Tensor, targets: Tensor, batch: Batch) -> Tensor:
    """Squared difference of features and targets of their classes, a mean over items and width, ``[c]``."""
    class_targets = targets.gather(1, batch.labels.clamp_min(0)[:, :, None].expand_as(features))
    return ((features - class_targets).square().mean(dim=2) * batch.weights).sum(dim=1)


def head_weights(h: NDArray[np.float64], variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Every client's weights of all clients' heads, ``[clients, clients]``; rows sum to 1.

    Row i minimises sum_j a_j^2 V_j + ||sum_j a_j (h_i - h_j)||^2 over the simplex: bias against variance.

    Args:
        h: class statistics ``[clients, classes x width]``.
        variances: V ``[clients]``.
    """
    rows = []
    for row in h:
        differences = row - h
        rows.append(without_small(on_simplex(np.diag(variances) + differences @ differences.T)))
    return np.stack(rows)


def without_small(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Set weights below ``SMALLEST`` to 0, but for the largest, and scale the others to sum to 1."""
    large_weights = np.where(weights < min(SMALLEST, weights.max()), 0, weights)
    shares: NDArray[np.float64] = large_weights / large_weights.sum()
    return shares


def on_simplex(q: NDArray[np.float64]) -> NDArray[np.float64]:
    """The a with a >= 0 and sum a = 1 that minimises a^T q a, for symmetric q >= 0 ``[n, n]``.

    By its Karush-Kuhn-Tucker conditions a is b / sum b, where b >= 0 minimises b^T q b / 2 - sum b. With
    the Cholesky factor q = l l^T these are non-negative least squares, ||l^T b - l^-1 1||^2, which an
    active-set method solves exactly.
    """
    n = len(q)
    scale = np.trace(q) / n
    q = q / scale if scale > 0 else q  # the minimiser does not change
    factor = np.linalg.cholesky(q + JITTER * np.eye(n))
    b, _ = nnls(factor.T, np.linalg.solve(factor, np.ones(n)))
    weights: NDArray[np.float64] = b / b.sum()
    return weights
