"""AdaFGL: A New Paradigm for Federated Node Classification with Topology Heterogeneity.

Li et al., ICDE 2024; released code: xkLi-Allen/AdaFGL, and a port in OpenFGL.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.stacks import part, prefixed
from bench.hyper import tunable
from bench.nn.gcn import graphs

from ._homophily import Relations, branches, cosine, perceptron, relations, signed
from .fedavg import FedAvg

PERSONAL = "personal."
"""What the names of the parameters of the second step begin with."""


class AdaFGL(FedAvg):
    """FedAvg first; then every client alone, by two branches of which its graph's homophily decides.

    For the first ``federated`` share of the rounds it is FedAvg. The last average predicts Q for the client's
    nodes; nodes whose predictions have a cosine above 0.999 are joined (B), and with the client's own edges A

        A' = alpha A + (1 - alpha) B,    X' = [X, A'~ X, A'~^2 X, A'~^3 X],    A'~ normalised with self-loops.

    From then on nothing is sent, and clients train on their own for the local epochs of every round

    - homophilic: y1 = MLP(X'), on CE(y1) + MSE(y1, Q); it predicts (softmax y1 + softmax Q) / 2;
    - heterophilic: y2 = MLP(X), y3 = MLP(X') and, with E = MLP(X') and signed relations
      M = beta B + (1 - beta) cos(E, E), less their mean, scaled to [-1, 1], 1 on the diagonal,
      y4 = (softmax(PReLU(M) E) - softmax(PReLU(-M) E) + E) / 2, on the sum of three cross-entropies; it
      predicts the mean of three softmaxes.

    r_i is how well labels propagate over the client's graph (``_homophily.reliability``). The prediction is
    r_i times the first and 1 - r_i times the second; with ``choice = "threshold"`` the first from 0.9 on.

    What paper and released code have otherwise, and what is done here:
    - The code chooses by the threshold, OpenFGL blends; alpha is 0.05 and beta 0.2 in the code, 0.5 and 0 in
      OpenFGL. The defaults here, the blend with 0.5 and 0.2, are those of neither.
    - Both weight the average by nodes (``weights = "samples"``), the code on a Chebyshev network; here it is
      plain, on the client model of all methods.
    - The code keeps the federated model of the best pooled validation round, OpenFGL the last one; so here.
    - The code propagates labels from a random half of the training nodes; here from every other of a class.
    - 100 rounds, then 200 epochs there; 50 rounds, then 50 steps in OpenFGL; here the protocol's rounds.
    - Q is in a softmax again, and MSE compares logits with probabilities, in both codes and here.
    - Clients that take no part in the round of the change have the last average all the same, uncounted.
    """

    name = "adafgl"
    title = "AdaFGL"
    reference = "Li et al., ICDE 2024"
    families = ("graph",)
    client_models = ("gcn",)
    stage = "trained"

    class Hyper(FedAvg.Hyper):
        federated: float = Field(0.5, gt=0, lt=1, description="share of the rounds that are FedAvg's")
        alpha: float = tunable(
            0.5,
            search=[0.05, 0.5, 0.95],
            ge=0,
            le=1,
            description="weight of the client's own edges beside those between like predictions",
        )
        beta: float = Field(0.2, ge=0, le=1, description="weight of like predictions in the signed relations")
        choice: Literal["blend", "threshold"] = Field(
            "blend", description="how homophily chooses between the branches: by its share, or from 0.9 on"
        )

    hyper: Hyper

    def setup_server(self) -> None:
        """Set up FedAvg, and the round in which the first step ends."""
        super().setup_server()
        self.first_alone = max(round(self.hyper.federated * self.task.rounds), 1)

    def related(self, batch: Batch) -> Relations:
        """The relations that a block's clients take from the last average."""
        models = {name: value.expand(len(batch.labels), *value.shape) for name, value in self.model.items()}
        with torch.no_grad():
            q = batch.block.evaluation.forward(models).logits.softmax(dim=2)
            return relations(batch.block.evaluation, q, self.hyper.alpha)

    @property
    def alone(self) -> bool:
        """Whether the second step is running."""
        return self.round >= self.first_alone

    def add_parameters(self, models: Stack) -> Stack:
        """Add the branches, which start alike at all clients."""
        clients = len(models["conv1.weight"])
        features, hidden = self.task.shapes["conv1.weight"]
        with self.task.seeded("branches"):
            weights = branches(features, hidden, self.task.shapes["head.weight"][1])
        stack = {
            name: value.to(self.task.device).expand(clients, *value.shape) for name, value in weights.items()
        }
        return {**models, **prefixed(PERSONAL, stack)}

    def broadcast(self) -> Message:
        """Send the average, for the last time in the first round of the second step."""
        return super().broadcast() if self.round <= self.first_alone else Message()

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Do FedAvg's part of a round, or train both branches for the local epochs."""
        if not self.alone:
            return self.upload(clients.fit(received, trainable=self.task.parameters))
        names = [name for name in received if name.startswith(PERSONAL)]
        return Update(clients.fit(received, objective=self.objective, trainable=names, copy="branches"))

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Average as FedAvg does, as long as there is an upload."""
        if upload.model:
            super().aggregate(participants, received, upload)

    def objective(self, models: Stack, batch: Batch) -> Tensor:
        """The losses of both branches, which have different parameters."""
        relation, node = batch.cached(self.related), graphs(batch.inputs).nodes
        y1, *others = self.outputs(part(PERSONAL, models), batch, relation)
        errors = ((y1 - relation.predictions) ** 2).mean(dim=2)
        distance = (errors * node).sum(dim=1) / node.sum(dim=1)
        return batch.cross_entropy(y1) + distance + sum(batch.cross_entropy(y) for y in others)

    def logits(self, models: Stack, batch: Batch) -> Tensor:
        """Predict with FedAvg's model, or mix both branches' probabilities by the client's homophily."""
        if not self.alone:
            return batch.forward(models).logits
        relation = batch.cached(self.related)
        y1, *others = (y.softmax(dim=2) for y in self.outputs(part(PERSONAL, models), batch, relation))
        homophilic = (y1 + relation.predictions.softmax(dim=2)) / 2
        r = relation.reliability
        r = (r if self.hyper.choice == "blend" else (r >= 0.9).float())[:, None, None]
        return r * homophilic + (1 - r) * torch.stack(others).mean(dim=0)

    def outputs(self, w: Stack, batch: Batch, relation: Relations) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """y1, y2, y3 and y4, ``[c, items, classes]`` each."""
        y1, y2, y3, e = (
            perceptron(w, branch, batch, relation.propagation) for branch in ("y1", "y2", "y3", "e")
        )
        attraction = self.hyper.beta * relation.similar + (1 - self.hyper.beta) * cosine(e)
        m = signed(attraction, graphs(batch.inputs).nodes)
        slope = w["slope"][:, :, None]
        positive, negative = (torch.where(v > 0, v, slope * v) for v in (m, -m))
        y4 = (torch.bmm(positive, e).softmax(dim=2) - torch.bmm(negative, e).softmax(dim=2) + e) / 2
        return y1, y2, y3, y4
