"""FGGP: Federated Graph Learning under Domain Shift with Generalizable Prototypes.

Wan, Huang and Ye, AAAI 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.stacks import repeated
from bench.errors import NotApplicableError
from bench.hyper import tunable
from bench.nn.base import glorot_bound
from bench.nn.gcn import graphs

from ._graph_views import CandidateGraph, WeightedPropagate, global_view
from ._prototypes import assignment, cluster_means, prototype_contrast, prototypes, vote
from .fedavg import FedAvg

AUGMENTOR = ("augmentor.weight1", "augmentor.weight2")


class FGGP(FedAvg):
    """Prototypes that generalise: two views contrasted in training, clustered prototypes to predict.

    A node's *feature* is the study's embedding: the second convolution's output before its ReLU. (The release
    takes its only hidden layer after ReLU. Without batch normalisation features after ReLU are close to each
    other in cosine, and the contrast would outweigh the cross-entropy.)

    Each round

    1. a client trains on its graph (view 1) and on a sample of its global view (view 2):
       cross-entropy on both + prototype contrast + reconstruction of the global view, unit weights;
    2. it sends its model and its class prototypes: means of the features of the nodes of a class,
       weighted by confidence. A training node has its label and confidence 1, every other node the
       predicted class and its probability;
    3. the server averages the models and clusters the clients' prototypes of every class (FINCH,
       cosine); the cluster means are the global prototypes;
    4. a node's class is voted by the ``voters`` nearest global prototypes (cosine, softmax with
       temperature 0.1), on the client's own graph. In round 0 there are no prototypes, and every node counts
       as class 0: what the release's queue votes for.

    The global view is the union of the client's edges with the k-NN graph (cosine) of the features
    that the received model gives, made anew every ``refresh`` rounds. The augmentor, two linear
    graph convolutions h = ReLU(A' A' X V1 V2) on the normalised union A', keeps a pair of nodes
    with probability 1/2 h_i.h_j / max + 1/2 [pair in the union]; a straight-through relaxed
    Bernoulli sample of it is view 2. The contrast is InfoNCE with view 2's prototypes as anchors,
    the same class in view 1 as positive and the other classes of both views as negatives.

    What paper or released code have otherwise, and what is done here:
    - Client model: the study's GCN, as for every method here (the release has a GCN with batch
      normalisation). Both views share a step's dropout masks.
    - Memory: the release holds dense n x n matrices, and runs out of memory where the published table says
      so. Here only pairs in the union can be sampled: a pair outside it, which the release keeps with
      probability 1/2 h_i.h_j / max, is never kept. The maximum and the reconstruction are over all pairs, a
      few rows at a time, so that time grows with n^2.
    - The k-NN graph is symmetric here; of its arcs the release keeps those above the diagonal.
    - Prototypes are keyed by class. The release keys them by row among the classes that occur, so
      a missing class shifts all later ones (``FGGPReleased``).
    - The release votes with a queue that starts with random vectors labelled class 0 and keeps
      older rounds' prototypes; here with this round's, at most ``voters`` of them.
    - Reported prototypes come from the trained model in evaluation mode; the release takes
      confidences from the last training pass, before its step.
    - The average is FedAvg's here (``weights``), the augmentor included; the release weights by
      nodes. Its distillation term is computed and not used, its personal projection overwritten:
      both are left out.
    """

    name = "fggp"
    title = "FGGP"
    reference = "Wan et al., AAAI 2024"
    predicts_with = ("prototypes", "prototype_classes")
    families = ("graph",)
    client_models = ("gcn",)
    stage = "trained"
    numerics = 2

    class Hyper(FedAvg.Hyper):
        neighbours: int = tunable(
            3,
            search=[1, 3, 5],
            ge=1,
            description="k of the global view: nearest neighbours of a node by feature",
        )
        refresh: int = Field(20, ge=1, description="rounds between two new global views")
        contrast_temperature: float = tunable(
            0.5, search=[0.1, 0.5, 1.0], gt=0, description="temperature of the contrast of prototypes"
        )
        voters: int = Field(
            30, ge=1, description="number of nearest global prototypes that vote for a node's class"
        )
        vote_temperature: float = Field(0.1, gt=0, description="temperature of that vote")

    hyper: Hyper

    def shared(self) -> Collection[str]:
        """Send the client model and the augmentor."""
        return (*self.task.parameters, *AUGMENTOR)

    def setup_server(self) -> None:
        """Start with one random model and augmentor, and without prototypes.

        Raises:
            NotApplicableError: some clients take no part in a round.
        """
        if self.task.participation < 1:
            raise NotApplicableError(
                f"{self.name} predicts with the last prototypes, which clients that take no part are not sent"
            )
        inputs, hidden = self.task.shapes["conv1.weight"]
        generator = self.task.generator("augmentor")
        self.augmentor = {}
        for name, rows in zip(AUGMENTOR, (inputs, hidden), strict=True):
            uniform = 2 * torch.rand(rows, hidden, generator=generator) - 1
            self.augmentor[name] = (uniform * glorot_bound(rows, hidden)).to(self.task.device)
        self.prototypes: Tensor | None = None
        super().setup_server()

    def initial(self) -> Stack:
        """The common client model and augmentor."""
        return self.add_parameters(self.task.common())

    def add_parameters(self, models: Stack) -> Stack:
        """Add the augmentor's weights."""
        return {**models, **repeated(self.augmentor, self.task.clients)}

    def broadcast(self) -> Message:
        """Send the average, and the global prototypes with their classes."""
        extras = {}
        if self.prototypes is not None:
            extras = {"prototypes": self.prototypes, "classes": self.prototype_classes}
        return Message(super().broadcast().model, repeated(extras, self.task.clients))

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train on both views for the local epochs, then send the prototypes."""
        graph = self.candidates(clients, received)
        noise = clients.generators("augmented edges")

        def both_views(models: Stack, batch: Batch) -> Tensor:
            return self.two_views(models, batch, graph(batch), batch.of(noise))

        def means(models: Stack, batch: Batch) -> Tensor:
            return class_means(models, batch, graph(batch))

        trained = clients.fit(received, objective=both_views)
        return self.upload(trained, prototypes=self.keyed(clients.reduce(trained, means)))

    def candidates(self, clients: Clients, received: Stack) -> Callable[[Batch], CandidateGraph]:
        """A function that lays out the global views of a block's clients."""
        pairs = self.global_views(clients, received)

        def laid_out(batch: Batch) -> CandidateGraph:
            block = batch.block
            return CandidateGraph(batch.of(pairs), block.lengths, block.items, self.task.device)

        return lambda batch: batch.cached(laid_out, key=clients.round // self.hyper.refresh)

    def global_views(self, clients: Clients, received: Stack) -> list[NDArray[np.int64]]:
        """The pairs of nodes in every client's global view, made anew every ``refresh`` rounds."""
        views, period = clients.noted("global view"), clients.round // self.hyper.refresh
        for block in clients.blocks:
            rows = range(block.rows.start, block.rows.stop)
            old_rows = [row for row in rows if views[row] is None or views[row][0] != period]
            if not old_rows:
                continue
            with torch.no_grad():
                features = block.evaluation.embed(block.evaluation.of(received))
            for row in old_rows:
                client = clients.members[row]
                local_features = features[row - rows.start, : len(client.ids)]
                views[row] = (period, global_view(client, local_features, self.hyper.neighbours))
        clients.note("global view", views)
        return [pairs for _, pairs in views]

    def two_views(
        self, models: Stack, batch: Batch, graph: CandidateGraph, noise: Sequence[np.random.Generator]
    ) -> Tensor:
        """The cross-entropies of both views, plus their contrast and the reconstruction, ``[c]``."""
        inputs, model = graphs(batch.inputs), batch.block.model
        projection = inputs.first_layer(models["conv1.weight"])
        output = model.forward(models, inputs.on(inputs.propagate, projection), batch.drop)
        entropy = batch.cross_entropy(output.logits)
        hidden = graph.augmented(inputs, *(models[name] for name in AUGMENTOR))
        edges = graph.logits(hidden)
        sample = graph.sampled(graph.keep_probabilities(hidden, edges), graph.uniform(noise))
        view = inputs.on(lambda hidden: WeightedPropagate.apply(hidden, sample, graph), projection)
        augmented_output = model.forward(models, view, batch.drop)
        assigned = assignment(output.logits, batch.labels, graph.inside)
        contrast = prototype_contrast(
            prototypes(assigned, augmented_output.embedding),
            prototypes(assigned, output.embedding),
            assigned.sum(dim=2) > 0,
            self.hyper.contrast_temperature,
        )
        reconstruction = graph.reconstruction(hidden, edges)
        return entropy + (batch.cross_entropy(augmented_output.logits) + contrast + reconstruction)

    def keyed(self, means: Tensor) -> Tensor:
        """The class of each prototype that a client sends: its row is its class."""
        return means

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Average the models, and cluster every class's prototypes."""
        super().aggregate(participants, received, upload)
        self.prototypes, self.prototype_classes = cluster_means(upload.extras["prototypes"])

    def logits(self, models: Stack, batch: Batch) -> Tensor:
        """Let the global prototypes vote. Before there are prototypes, no class gets a vote."""
        output = batch.forward(models)
        if self.prototypes is None:
            return torch.zeros_like(output.logits)
        points, owners, classes = self.prototypes, self.prototype_classes, output.logits.shape[2]
        return vote(output.embedding, points, owners, classes, self.hyper.voters, self.hyper.vote_temperature)


def class_means(models: Stack, batch: Batch, graph: CandidateGraph) -> Tensor:
    """Every client's prototypes ``[c, classes, width]``; NaN for a class without nodes."""
    output = batch.forward(models)
    assigned = assignment(output.logits, batch.labels, graph.inside)
    occurs = assigned.sum(dim=2)[:, :, None] > 0
    return torch.where(occurs, prototypes(assigned, output.embedding), torch.nan)


class FGGPReleased(FGGP):
    """FGGP with the release's key of a prototype: its row among the classes that occur at a client.

    A client in which no node has class c, by label or prediction, has all its later classes
    reported as one lower. The rest is as in ``FGGP``.
    """

    name = "fggp_released"
    title = "FGGP (released keys)"

    def keyed(self, means: Tensor) -> Tensor:
        """Move the classes that occur to the first rows, in their order."""
        is_missing = means.isnan().any(dim=2)
        order = is_missing.to(torch.int8).argsort(dim=1, stable=True)
        return means.gather(1, order[:, :, None].expand_as(means))
