"""FedSage+: Subgraph Federated Learning with Missing Neighbor Generation.

Zhang et al., NeurIPS 2021, Sections 4 and 5; released code zkhku/fedsage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from bench.federation.traffic import TrafficMeter
from bench.federation.types import TRAIN, Client, Federation
from bench.hyper import tunable

from ._neighgen import (
    LATENT,
    Neighbourhoods,
    NeighGen,
    OwnGraph,
    greedy_feature_loss,
    hide,
    identity,
    in_use,
    missing_neighbours,
    with_leaves,
)
from .fedavg import FedAvg


class FedSagePlus(FedAvg):
    """FedAvg on graphs that every client has mended with generated neighbours.

    Before the first round every client

    1. hides a share of its nodes that neither train nor test; node v then misses m_v neighbours
       with known features x_v1, x_v2, ...;
    2. trains NeighGen on what is left: code z_v, predicted number n_v = dGen(z_v) and features
       fGen(z_v + noise), by L = smoothL1(n_v, m_v) + feature loss + cross-entropy of an auxiliary
       classifier on the mended graph, over its training nodes. The feature loss of
       generated neighbour j <= n_v is min over k of |x^_vj - x_vk|^2 / F where m_v > 0;
    3. trains fGen alone on, in addition, that loss against neighbours of random nodes of every
       other client in place of its own hidden ones (FedGen);
    4. mends its graph: to every node int(n_v) generated neighbours, ``slots`` at most.

    Then the client model is averaged as in FedAvg.

    What paper and code have otherwise, and what is done here:
    - FedGen. The paper exchanges codes and gradients; the release, as here, raw features of other
      clients' nodes. They are counted as dense float32 rows, and only targets that the loss reads
      are sent (the release draws targets for all training nodes and masks most of them).
    - Generated neighbours for all nodes from the whole own graph, as in the paper; the release
      predicts them on the graph without the hidden nodes, with dropout in fGen left on.
    - Labels of the auxiliary classifier belong to their nodes, and its logits have no ReLU; in the
      release labels are taken at other nodes' positions.
    - int() truncates as released: a node whose predicted number is below 1 gets no neighbour, and
      where that is so for all nodes of all clients this is FedAvg. ``generated_neighbours`` is
      kept with the run for that reason.
    - Encoder, dGen and auxiliary classifier learn at 0.01, as the clients do; released 0.001 with
      20 epochs lets no prediction reach 1 on Cora (10 clients, on average 0.5 neighbours hidden),
      so that nothing is generated. fGen keeps 0.001: at 0.01 its tanh saturates. dGen's bias
      starts above 0 (``_neighgen``).
    - Scale. The mean over F makes the feature loss weak against the cross-entropy, and tanh has
      room up to 1: generated features are far larger than row-normalised true ones, as released.
    - Classifier: the run's client model (``client.model``), in place of GraphSAGE with sampled neighbours.
    """

    name = "fedsage_plus"
    title = "FedSage+"
    reference = "Zhang et al., NeurIPS 2021"
    families = ("graph",)
    stage = "trained"

    class Hyper(FedAvg.Hyper):
        """Defaults are the released ones but for one learning rate; the sources give no ranges.

        Epochs of the generator are not searched: budgets of tuning count client epochs.
        """

        hidden_portion: float = tunable(
            0.5,
            search=[0.25, 0.5, 0.75],
            ge=0,
            le=1,
            description="share of a client's nodes that are hidden to train the generator of neighbours",
        )
        slots: int = Field(5, ge=1, description="largest number of neighbours that are generated for a node")
        generator_epochs: int = Field(
            20, ge=0, description="epochs in which every client trains its generator alone"
        )
        federated_epochs: int = Field(
            20, ge=0, description="epochs of the generators' federated training after that"
        )
        encoder_learning_rate: float = tunable(
            0.01,
            search=[1e-3, 0.01],
            gt=0,
            description="learning rate of the generator's encoder, its count of neighbours and the "
            "auxiliary classifier",
        )
        feature_learning_rate: float = Field(
            1e-3, gt=0, description="learning rate of the generator's features"
        )
        generator_weight_decay: float = Field(1e-4, ge=0, description="weight decay of the generator")
        generator_dropout: float = Field(0.5, ge=0, lt=1, description="dropout of the generator")

    hyper: Hyper

    def prepare_data(self, federation: Federation, traffic: TrafficMeter) -> Federation:
        """Mend every client's graph."""
        clients = federation.clients
        shared = [Neighbourhoods(client) for client in clients]
        generated = torch.zeros(len(clients), dtype=torch.int64)
        new_clients = []
        for index, client in enumerate(clients):
            if client.count(TRAIN) == 0:
                new_clients.append(client)  # nothing to train a generator on
                continue
            mender = Mender(self, client, federation.classes)
            mender.train()
            mender.train_with_others([other for other in shared if other.client is not client], traffic)
            new_clients.append(mender.mend())
            generated[index] = len(new_clients[-1].ids) - len(client.ids)
        self.record(generated_neighbours=generated)
        return replace(federation, clients=tuple(new_clients))


class Mender:
    """One client's NeighGen, from hiding nodes to mending the graph. Its node ids name its random streams."""

    def __init__(self, method: FedSagePlus, client: Client, classes: int) -> None:
        assert client.edges is not None
        self.client, self.hyper, self.device = client, method.hyper, method.task.device
        self.edges = client.edges
        self.identity = identity(client)
        self.stream: Callable[..., torch.Generator] = method.task.generator

        hidden = hide(client, self.hyper.hidden_portion, self.stream("hidden nodes", self.identity))
        missing_counts, self.targets = missing_neighbours(self.edges, hidden, self.hyper.slots)
        self.shown = torch.from_numpy(~hidden).to(self.device)
        shown_edges = self.edges[:, ~hidden[self.edges].any(axis=0)]
        self.graph = OwnGraph(client.features, shown_edges, self.device)  # hidden nodes stay, without edges
        self.missing = torch.from_numpy(missing_counts).to(self.device)
        self.train_nodes = torch.from_numpy(np.flatnonzero(client.roles == TRAIN)).to(self.device)
        self.training = torch.from_numpy(client.roles == TRAIN).to(self.device)
        self.labels = torch.from_numpy(client.labels[client.roles == TRAIN]).to(self.device)

        with method.task.seeded("neighgen", self.identity):
            self.network = NeighGen(client.features.shape[1], classes, self.hyper.slots).to(self.device)
        self.masks = self.stream("neighgen dropout", self.identity)
        self.noise = self.stream("neighgen noise", self.identity)

    def features(self, codes: Tensor, counts: Tensor, masks: torch.Generator | None) -> Tensor:
        """Features ``[a, slots, width]`` from codes ``[a, LATENT]`` and fresh noise, 0 in unused slots."""
        noise = torch.randn(len(codes), LATENT, generator=self.noise).to(self.device)
        used = max(counts.tolist(), default=0)
        generated: Tensor = self.network.features(codes + noise, used, self.hyper.generator_dropout, masks)
        return generated

    def drawn(self, counts: Tensor) -> tuple[Tensor, Tensor]:
        """The shown nodes that get neighbours, and how many each gets: ``min(int(n_v), slots)``."""
        integers = counts.detach().to(torch.int64).clamp(max=self.hyper.slots)
        nodes = torch.nonzero(self.shown & (integers > 0)).squeeze(1)
        return nodes, integers[nodes]

    def matched(self, nodes: Tensor) -> Tensor:
        """Which of some nodes have a feature loss: training nodes that miss a neighbour."""
        return self.training[nodes] & (self.missing[nodes] > 0)

    def feature_loss(self, generated: Tensor, targets: Tensor, nodes: Tensor, counts: Tensor) -> Tensor:
        """The mean feature loss over training nodes and slots. The nodes with such a loss are given."""
        total = greedy_feature_loss(generated, targets, counts, self.missing[nodes])
        return total / (len(self.train_nodes) * self.hyper.slots)

    def classification_loss(
        self, generated: Tensor, nodes: Tensor, counts: Tensor, masks: torch.Generator | None
    ) -> Tensor:
        """Cross-entropy of the auxiliary classifier on the mended graph."""
        use_mask, owners = in_use(counts, self.hyper.slots), nodes.repeat_interleave(counts)
        logits = self.network.classifier(
            self.graph, self.hyper.generator_dropout, masks, generated[use_mask], owners
        )
        return functional.cross_entropy(logits[self.train_nodes], self.labels)

    def own_targets(self, nodes: Tensor) -> Tensor:
        """Features of the hidden neighbours of some nodes, ``[a, 1, slots, width]``; absent ones 0."""
        positions = self.targets[nodes.cpu().numpy()]
        rows = self.client.dense(positions)
        rows[positions < 0] = 0
        return torch.from_numpy(rows).to(self.device)[:, None]

    def train(self) -> None:
        """Train the whole NeighGen for its epochs."""
        network, hyper = self.network, self.hyper
        optimiser = network.optimiser(
            hyper.feature_learning_rate, hyper.encoder_learning_rate, hyper.generator_weight_decay
        )
        for _ in range(hyper.generator_epochs):
            optimiser.zero_grad()
            codes = network.codes(self.graph, hyper.generator_dropout, self.masks)
            counts = network.counts(codes)
            loss = functional.smooth_l1_loss(counts[self.train_nodes], self.missing[self.train_nodes].float())
            nodes, numbers = self.drawn(counts)
            generated = codes.new_zeros(0, hyper.slots, self.graph.features.shape[1])
            if len(nodes):
                generated = self.features(codes[nodes], numbers, self.masks)
                mask = self.matched(nodes)
                targets = self.own_targets(nodes[mask])
                loss = loss + self.feature_loss(generated[mask], targets, nodes[mask], numbers[mask])
            loss = loss + self.classification_loss(generated, nodes, numbers, self.masks)
            loss.backward()
            optimiser.step()

    def train_with_others(self, others: Sequence[Neighbourhoods], traffic: TrafficMeter) -> None:
        """Train fGen alone for its epochs, also on other clients' features."""
        network, hyper = self.network, self.hyper
        with torch.no_grad():
            codes = network.codes(self.graph, 0.0, None)
            nodes, numbers = self.drawn(network.counts(codes))
        if len(nodes) == 0:
            return  # no generated neighbour has a loss
        mask = self.matched(nodes)
        count, slots = int(mask.sum()), hyper.slots
        codes, local_targets = codes[nodes], self.own_targets(nodes[mask])
        draws = [self.stream("neighbours of others", self.identity, other.identity) for other in others]
        optimiser = network.optimiser(hyper.feature_learning_rate, None, hyper.generator_weight_decay)
        for parameter in [*network.encoder.parameters(), *network.classifier.parameters()]:
            parameter.requires_grad_(False)
        for _ in range(hyper.federated_epochs):
            targets = [local_targets]
            for other, draw in zip(others, draws, strict=True) if count else ():
                message = other.sample(count, slots, draw)
                if message is not None:
                    traffic.upload(message)
                    traffic.download(message)
                    targets.append(torch.from_numpy(message).to(self.device)[:, None])
            optimiser.zero_grad()
            generated = self.features(codes, numbers, self.masks)
            loss = self.feature_loss(generated[mask], torch.cat(targets, dim=1), nodes[mask], numbers[mask])
            loss = loss + self.classification_loss(generated, nodes, numbers, None)
            (loss / (1 + len(others))).backward()
            optimiser.step()

    def mend(self) -> Client:
        """Add generated neighbours to all nodes of the client, predicted from its whole graph."""
        graph = OwnGraph(self.client.features, self.edges, self.device)
        self.shown = torch.ones_like(self.shown)
        with torch.no_grad():
            codes = self.network.codes(graph, 0.0, None)
            nodes, numbers = self.drawn(self.network.counts(codes))
            generated = self.features(codes[nodes], numbers, None)[in_use(numbers, self.hyper.slots)]
        owners = nodes.repeat_interleave(numbers)
        return with_leaves(self.client, owners.cpu().numpy(), generated.cpu().numpy())
