"""FedGTA: Topology-aware Averaging for Federated Graph Learning.

Li et al., PVLDB 17(1), 2023; released code: xkLi-Allen/FedGTA.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.personalised import Personalised
from bench.engine.stacks import cosines
from bench.hyper import HyperParameters, tunable
from bench.nn.gcn import graphs


class FedGTA(Personalised):
    """Models are averaged over clients whose propagated predictions have similar moments.

    After its local epochs client i predicts soft labels q_v for all of its nodes, and spreads labels over
    its graph: from Y0, one-hot on training nodes and q elsewhere, ``steps`` (the paper's K) times

        Y := 1/2 A^ Y + 1/2 Y0,    and Y := Y + Y0 on training nodes,

    A^ being the normalised adjacency with self-loops. With R = softmax(Y) and E = softmax(Y / temperature),
    both one-hot on training nodes, it sends its model with

    - moments m_i: for p = 1 .. ``order`` the means over nodes of R^p by class and, if ``moments`` are hybrid,
      those of (R - mean R)^p;
    - confidence g_i = sum_v deg_v (C/e + sum_c E_vc ln E_vc), C/e less the entropy of E_v.

    The server sends client i the average of the models of all j with cos(m_i, m_j) > ``threshold``, weighted
    by g_j; itself it always accepts. *Received* is what the release evaluates.

    What paper and released code have otherwise, and what is done here:
    - A threshold of 1 or more accepts nobody in the code, not even the client itself: the sum is empty.
    - A client without edges has g = 0. Where nobody accepted has any confidence, the client keeps its model.
    - The code's local model is GAMLP, its clients are Louvain communities; here the protocol's.
    - ``order`` and ``threshold`` are the code's for Cora; it has 20 and 0.6 for CiteSeer, 13 (without central
      moments) and 0.65 for PubMed.
    - The port in OpenFGL starts propagation from the soft labels of training nodes alone, without self-loops,
      clips instead of softmax, and evaluates trained models; not followed here.

    The first softmax is of small numbers and therefore flat, so that the one-hot training nodes decide
    the moments: ``fedgta_labels``, which knows no prediction, is the control for that.
    """

    name = "fedgta"
    title = "FedGTA"
    reference = "Li et al., PVLDB 2023"
    families = ("graph",)
    client_models = ("gcn", "gcn2")
    stage = "received"

    class Hyper(HyperParameters):
        threshold: float = tunable(
            0.5,
            search=[0.3, 0.5, 0.6, 0.8],
            ge=-1,
            description="epsilon: least cosine of two clients' moments at which their models are averaged",
        )
        order: int = tunable(6, search=[2, 6, 10, 20], ge=1, description="highest moment of the predictions")
        moments: Literal["hybrid", "origin"] = Field(
            "hybrid", description="moments about zero and about the mean (hybrid), or about zero alone"
        )
        steps: int = Field(5, ge=0, description="steps of label propagation")
        temperature: float = Field(20.0, gt=0, description="divides the labels of the confidence's softmax")

    hyper: Hyper

    def setup_server(self) -> None:
        """Start with one model. No client has accepted another one."""
        super().setup_server()
        self.collaboration = torch.eye(self.task.clients, device=self.task.device)

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train for the local epochs, and send moments and confidence of the model's predictions."""
        trained = clients.fit(received)
        return self.upload(trained, **clients.reduce(trained, self.signals))

    def signals(self, models: Stack, batch: Batch) -> dict[str, Tensor]:
        """m ``[c, width]`` and g ``[c]`` of a block's clients."""
        mask, degrees = nodes(batch)
        r, e = self.propagated(self.soft_labels(models, batch), batch)
        return {"moments": self.moments_of(r, mask), "confidence": confidence(e, degrees)}

    def soft_labels(self, models: Stack, batch: Batch) -> Tensor:
        """q, ``[c, items, classes]``."""
        return batch.forward(models).logits.softmax(dim=2)

    def propagated(self, q: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """R and E, ``[c, items, classes]`` both."""
        inputs, classes = graphs(batch.inputs), q.shape[2]
        label_mask = (batch.labels >= 0)[:, :, None]
        one_hot = functional.one_hot(batch.labels.clamp_min(0), classes).to(q)
        start = torch.where(label_mask, one_hot, q)
        y = start
        for _ in range(self.hyper.steps):
            y = inputs.propagate(y.reshape(-1, classes)).view_as(q) / 2 + start / 2
            y = torch.where(label_mask, y + start, y)
        distributions = (y.softmax(dim=2), (y / self.hyper.temperature).softmax(dim=2))
        r, e = (torch.where(label_mask, one_hot, values) for values in distributions)
        return r, e

    def moments_of(self, r: Tensor, mask: Tensor) -> Tensor:
        """m from R ``[c, items, classes]`` and which items are nodes ``[c, items]``."""
        weights = (mask / mask.sum(dim=1, keepdim=True))[:, None, :]
        powers = range(1, self.hyper.order + 1)
        raw_moments = [(weights @ r**p).squeeze(1) for p in powers]
        if self.hyper.moments == "origin":
            return torch.cat(raw_moments, dim=1)
        centred = r - raw_moments[0][:, None, :]
        return torch.cat([*raw_moments, *((weights @ centred**p).squeeze(1) for p in powers)], dim=1)

    def weights(self, participants: Tensor, received: Stack, upload: Message) -> Tensor:
        """Average the models of the clients that a client accepts."""
        similarity = cosines({"moments": upload.extras["moments"].double()})
        return averaging_weights(similarity, upload.extras["confidence"], self.hyper.threshold)


class FedGTALabels(FedGTA):
    """FedGTA whose soft labels are the client's shares of training labels: no prediction goes into it."""

    name = "fedgta_labels"
    title = "FedGTA (labels alone)"

    def soft_labels(self, models: Stack, batch: Batch) -> Tensor:
        """The same shares at every node."""
        counts = batch.label_counts
        shares = counts / counts.sum(dim=1, keepdim=True).clamp_min(1)
        return shares[:, None, :].expand(-1, batch.labels.shape[1], -1)


def nodes(batch: Batch) -> tuple[Tensor, Tensor]:
    """Which items are nodes and not padding (0 or 1), and their degrees without self-loop, ``[c, items]``."""
    inputs = graphs(batch.inputs)
    entries = inputs.adjacency.crow_indices().diff().view(batch.labels.shape)  # an edge or the loop each
    return (entries > 0).float(), (entries - 1).clamp_min(0).float()


def confidence(e: Tensor, degrees: Tensor) -> Tensor:
    """g ``[c]`` from E ``[c, items, classes]`` and degrees ``[c, items]``; never negative."""
    certainty = e.shape[2] / math.e + torch.xlogy(e, e).sum(dim=2)
    return (degrees * certainty).sum(dim=1)


def averaging_weights(similarity: Tensor, g: Tensor, threshold: float) -> Tensor:
    """Weights g_j / sum g over those that a client accepts, ``[clients, clients]``; rows sum to 1.

    ``similarity`` are the cosines, 1 on the diagonal. A row without any confidence is the client's own model.
    """
    diagonal = torch.eye(len(g), dtype=torch.bool, device=g.device)
    weights = g * ((similarity > threshold) | diagonal)
    total = weights.sum(dim=1, keepdim=True)
    return torch.where(total > 0, weights / total, diagonal.to(g))
