"""FGGP: every distinctive step against a small computation, and its degenerate cases."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from plain_gcn import looped, normalised, plain_gcn
from torch.nn import functional
from toy_federations import begun, both_ways, copied, make_spec, play, random_federation

from bench.engine.method import Message, Stack
from bench.engine.run import Run
from bench.federation.types import TEST, TRAIN, Federation
from bench.methods import _graph_views as graph_views
from bench.methods._graph_views import (
    CandidateGraph,
    PairSoftplus,
    WeightedPropagate,
    cosine_neighbours,
    undirected_pairs,
)
from bench.methods._prototypes import finch, vote
from bench.methods.fggp import class_means
from bench.nn.base import keep_all


def at(*degrees: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Points on the unit circle."""
    angles = np.deg2rad(np.array(degrees))
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.mark.parametrize(
    ("points", "clusters"),
    [
        (at(10), [{0}]),
        (at(0, 170), [{0, 1}]),
        # first neighbours 0-1, 2-3 (mutual), 4 -> 3: two clusters; their means would merge into one
        (at(0, 2, 50, 52, 55), [{0, 1}, {2, 3, 4}]),
        # 0 and 2 both have 1 as first neighbour; 3 is near 2 by distance but 4's neighbour by angle
        (at(0, 1, 3, 80, 81) * np.array([[1], [50], [1], [1], [9]]), [{0, 1, 2}, {3, 4}]),
        # pairs (0,1) (2,3) | (4,5) (6,7): four clusters, whose means are two pairs; those would be one
        (at(0, 1, 10, 11, 100, 101, 110, 111), [{0, 1, 2, 3}, {4, 5, 6, 7}]),
    ],
)
def test_finch_takes_the_coarsest_partition_but_one(points: Any, clusters: list[set[int]]) -> None:
    labels = finch(points)
    assert {frozenset(np.flatnonzero(labels == one).tolist()) for one in set(labels.tolist())} == {
        frozenset(members) for members in clusters
    }


def test_votes_by_hand() -> None:
    """Three prototypes, two voters: the third, at a right angle, has no vote."""
    points = torch.tensor([[4.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    owners = torch.tensor([2, 0, 0])
    features = torch.tensor([[[3.0, 0.0], [0.0, 0.1]]])
    scores = vote(features, points, owners, 3, 2, 0.1)
    share = 1 / (1 + math.exp((math.sqrt(0.5) - 1) / 0.1))
    assert torch.allclose(scores, torch.tensor([[[1 - share, 0.0, share], [1.0, 0.0, 0.0]]]), atol=1e-6)
    everybody = vote(features, points, owners, 3, 30, 0.1)
    e = [math.exp(10 * x) for x in (1.0, math.sqrt(0.5), 0.0)]
    assert everybody[0, 0].tolist() == pytest.approx([(e[1] + e[2]) / sum(e), 0, e[0] / sum(e)], abs=1e-6)


def test_neighbours_and_pairs_by_hand() -> None:
    features = torch.tensor([[1.0, 0.0], [5.0, 1.0], [0.0, 1.0], [1.0, 7.0]])
    assert cosine_neighbours(features, 1)[:, 0].tolist() == [1, 0, 3, 2]
    assert cosine_neighbours(features, 9).shape == (4, 3)
    arcs = np.array([[0, 2, 1, 3, 3], [1, 0, 0, 3, 2]])
    assert undirected_pairs(arcs, 4).tolist() == [[0, 0, 2], [1, 2, 3]]


PAIRS = np.array([[0, 1, 0], [1, 2, 3]])
"""Candidates of a graph of four nodes: 0-1, 1-2, 0-3."""


def dense_union() -> torch.Tensor:
    union = torch.eye(4)
    union[PAIRS[0], PAIRS[1]] = union[PAIRS[1], PAIRS[0]] = 1
    return union


def two_clients() -> CandidateGraph:
    """The graph of four nodes beside one of two nodes without candidates, padded to five."""
    return CandidateGraph([PAIRS, np.zeros((2, 0), np.int64)], [4, 2], 5, torch.device("cpu"))


def hidden_of_two(width: int = 3) -> torch.Tensor:
    hidden = torch.rand(2, 5, width, generator=torch.Generator().manual_seed(0))
    hidden[0, 4:] = 0
    hidden[1, 2:] = 0
    return hidden


def test_keep_probabilities_are_those_of_dense_matrices() -> None:
    graph, hidden = two_clients(), hidden_of_two()
    dense = hidden[0, :4] @ hidden[0, :4].T
    expected = 0.5 * dense / dense.max() + 0.5 * dense_union()
    logits = graph.logits(hidden)
    result = graph.keep_probabilities(hidden, logits)
    assert torch.allclose(result, expected[PAIRS[0], PAIRS[1]])


def test_gradients_reach_the_probabilities_straight_through() -> None:
    """The gradient of a dense computation with the relaxed sample in place of the hard one."""
    graph = two_clients()
    probabilities = torch.tensor([0.6, 0.7, 0.8], requires_grad=True)
    noise = torch.tensor([0.41, 0.29, 0.9])
    features = torch.rand(10, 3, generator=torch.Generator().manual_seed(1)).requires_grad_()
    weight = torch.rand(10, 3, generator=torch.Generator().manual_seed(2))
    result = WeightedPropagate.apply(features, graph.sampled(probabilities, noise), graph)
    (result * weight).sum().backward()
    p = torch.tensor([0.6, 0.7, 0.8], requires_grad=True)
    soft = torch.sigmoid(torch.logit(p) + torch.logit(noise))
    straight = torch.tensor([1.0, 0.0, 1.0]) + soft - soft.detach()
    dense = torch.eye(10)
    for value, i, j in zip(straight, PAIRS[0].tolist(), PAIRS[1].tolist(), strict=True):
        one = torch.zeros(10, 10)
        one[i, j] = one[j, i] = 1
        dense = dense + value * one
    same = features.detach().clone().requires_grad_()
    expected = normalised(dense) @ same
    (expected * weight).sum().backward()
    assert torch.allclose(result, expected, atol=1e-6)
    assert probabilities.grad is not None
    assert p.grad is not None
    assert torch.allclose(probabilities.grad, p.grad, atol=1e-6)
    assert features.grad is not None
    assert same.grad is not None
    assert torch.allclose(features.grad, same.grad, atol=1e-6)


def test_reconstruction_is_the_released_loss_over_all_pairs() -> None:
    """norm_w * BCE with pos_weight, on dense matrices, value and gradient."""
    graph, hidden = two_clients(), hidden_of_two().requires_grad_()
    result = graph.reconstruction(hidden, graph.logits(hidden))
    losses = []
    same = hidden.detach().clone().requires_grad_()
    for client, union in ((0, dense_union()), (1, torch.eye(2))):
        nodes = len(union)
        part = same[client, :nodes]
        absent = nodes**2 - union.sum()
        bce = functional.binary_cross_entropy_with_logits(
            part @ part.T, union, pos_weight=absent / union.sum()
        )
        losses.append(nodes**2 / (2 * absent) * bce)
    assert torch.allclose(result, torch.stack(losses))
    result.sum().backward()
    torch.stack(losses).sum().backward()
    assert hidden.grad is not None
    assert same.grad is not None
    inside = graph.inside[:, :, None]
    assert torch.allclose(hidden.grad * inside, same.grad * inside, atol=1e-6)


@pytest.mark.parametrize("pairs", [1, 13, 40])
def test_pieces_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch, pairs: int) -> None:
    def everything() -> list[torch.Tensor]:
        hidden = hidden_of_two().requires_grad_()
        total = PairSoftplus.apply(hidden, two_clients().inside)
        total.sum().backward()
        assert hidden.grad is not None
        features = torch.rand(9, 4, generator=torch.Generator().manual_seed(3))
        owners = torch.tensor([0, 1, 1])
        points = torch.rand(3, 4, generator=torch.Generator().manual_seed(4))
        near = cosine_neighbours(features, 3)
        return [total.detach(), hidden.grad, near, vote(features[None], points, owners, 2, 2, 0.1)]

    whole = everything()
    monkeypatch.setattr(graph_views, "PAIRS", pairs)
    for one, other in zip(whole, everything(), strict=True):
        assert torch.allclose(one.double(), other.double(), atol=1e-6)


def test_the_two_view_loss_of_a_tiny_graph(tiny: Federation) -> None:
    """All parts on dense matrices; the second client is the one that has padding beside it."""
    it = Run(make_spec("fggp", tiny, client={"hidden": 4, "dropout": 0.0}), tiny)
    method: Any = it.method
    it.clients.begin_round(0)
    models = copied(it.method.load(it.clients, it.own, it.method.broadcast()))
    for name in models:
        models[name] += 0.1 * torch.rand(models[name].shape, generator=torch.Generator().manual_seed(5))
    block = it.clients.blocks[0]
    graph = method.candidates(it.clients, models)(block.evaluation)
    total = method.two_views(models, block.all_items(keep_all, None), graph, [Half(), Half()])
    for row, client in enumerate(tiny.clients):
        w = {name: value[row] for name, value in models.items()}
        nodes = len(client.ids)
        x, own = torch.from_numpy(client.dense()), looped(client)
        first, features = plain_gcn(w, normalised(own), x)
        unit = functional.normalize(features, dim=1)
        cosine = unit @ unit.T - 2 * torch.eye(nodes)
        union = own.clone()
        for node in range(nodes):
            for other in cosine[node].topk(min(3, nodes - 1)).indices.tolist():
                union[node, other] = union[other, node] = 1
        a = normalised(union)
        h = torch.relu(a @ (a @ (x @ w["augmentor.weight1"])) @ w["augmentor.weight2"])
        # with noise 1/2 a pair is kept when its probability is over 1/2: h_i . h_j > 0
        kept = torch.where((h @ h.T > 0) & (union > 0), 1.0, 0.0)
        kept.fill_diagonal_(1)
        second, other_features = plain_gcn(w, normalised(kept), x)
        train = np.flatnonzero(client.roles == TRAIN)
        y = torch.from_numpy(client.labels)
        entropy = sum(functional.cross_entropy(logits[train], y[train]) for logits in (first, second))
        confidence, label = first.softmax(dim=1).max(dim=1)
        label[train], confidence[train] = y[train], 1.0
        means = []
        for which in (other_features, features):
            of = [
                (confidence[label == c, None] * which[label == c]).sum(dim=0) / confidence[label == c].sum()
                for c in range(2)
                if (label == c).any()
            ]
            means.append(functional.normalize(torch.stack(of), dim=1))
        contrast = torch.zeros(())
        occurring = len(means[0])
        for c in range(occurring):
            positive = (means[0][c] @ means[1][c] / 0.5).exp()
            negative = sum(
                (means[0][c] @ view[d] / 0.5).exp() for view in means for d in range(occurring) if d != c
            )
            contrast = contrast - (positive / (positive + negative)).log() / occurring
        negatives = nodes**2 - union.sum()
        if negatives > 0:
            bce = functional.binary_cross_entropy_with_logits(
                h @ h.T, union, pos_weight=negatives / union.sum()
            )
            graph = nodes**2 / (2 * negatives) * bce
        else:
            graph = 0.5 * functional.softplus(-(h @ h.T)).mean()
        assert float(total[row]) == pytest.approx(float(entropy + contrast + graph), rel=1e-4)


class Half:
    """Noise without chance."""

    def random(self, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.full(count, 0.5)


def lacking(federation: Federation, client: int, label: int) -> Federation:
    """The federation with one client's training nodes of a class made test nodes."""
    members = list(federation.clients)
    one = members[client]
    roles = np.where((one.labels == label) & (one.roles == TRAIN), TEST, one.roles).astype(np.int8)
    members[client] = replace(one, roles=roles)
    return replace(federation, clients=tuple(members))


def reporting(models: Stack, reports: torch.Tensor) -> Message:
    """What clients upload that send these models and prototypes."""
    return Message(models, {"prototypes": reports})


def reports_of(method: str, federation: Federation) -> tuple[Run, torch.Tensor]:
    """A run after one round in which no node of client 2 can be predicted as class 0."""
    it = begun(method, federation, 1)
    models = copied(it.own)
    models["head.bias"][2, 0] = -1e6
    method: Any = it.method
    graph = method.candidates(it.clients, models)
    means = it.clients.reduce(models, lambda models, batch: class_means(models, batch, graph(batch)))
    reports = method.keyed(means)
    return it, reports


def test_a_missing_class_does_not_shift_the_others(federation: Federation) -> None:
    poor = lacking(federation, 2, 0)
    it, reports = reports_of("fggp", poor)
    assert reports.shape == (5, 3, 16)
    assert reports[2, 0].isnan().all()
    assert not reports[2, 1:].isnan().any()
    _, shifted = reports_of("fggp_released", poor)
    assert torch.equal(shifted[2, :2], reports[2, 1:])
    assert shifted[2, 2].isnan().all()
    method: Any = it.method
    method.aggregate(it.clients.rows, it.own, reporting(it.own, reports))
    assert set(method.prototype_classes.tolist()) == {0, 1, 2}


def test_global_prototypes_are_cluster_means(federation: Federation) -> None:
    it = Run(make_spec("fggp", federation), federation)
    method: Any = it.method
    reports = torch.full((5, 3, 2), torch.nan)
    reports[:, 0] = torch.from_numpy(at(0, 2, 50, 52, 55)).float()
    reports[3, 2] = torch.tensor([0.5, 4.0])
    models = method.add_parameters(method.task.own())
    method.aggregate(it.clients.rows, models, reporting(models, reports))
    assert method.prototypes is not None
    assert sorted(method.prototype_classes.tolist()) == [0, 0, 2]
    points = {tuple(round(float(x), 5) for x in point) for point in method.prototypes}
    means = [reports[:2, 0].mean(dim=0), reports[2:, 0].mean(dim=0), torch.tensor([0.5, 4.0])]
    assert points == {tuple(round(float(x), 5) for x in point) for point in means}


def test_the_server_averages_models_and_augmentors(federation: Federation) -> None:
    it = play(make_spec("fggp", federation, rounds=1), federation)
    sent = it.method.broadcast().model
    assert {"augmentor.weight1", "augmentor.weight2", "conv1.weight"} <= set(sent)
    for name, value in sent.items():
        assert torch.allclose(value[3], it.own[name].mean(dim=0), atol=1e-6), name
    start = Run(make_spec("fggp", federation), federation).own
    assert float((it.own["augmentor.weight2"] - start["augmentor.weight2"]).abs().max()) > 1e-4


def test_bytes_count_prototypes_both_ways(federation: Federation) -> None:
    """With 48 features, 16 hidden units, 3 classes, 5 clients; nothing but models goes down at first."""
    it = Run(make_spec("fggp", federation), federation)
    method: Any = it.method
    models = 5 * 4 * (2 * (48 * 16 + 16 * 16) + 16 + 16 + 16 * 3 + 3)
    it.warm_up()
    it.step(0)
    reports = 5 * 3 * 16 * 4
    assert (it.traffic.bytes_up, it.traffic.bytes_down) == (models + reports, models)
    points = len(method.prototypes)
    it.step(1)
    assert it.traffic.bytes_down == 2 * models + 5 * points * (16 * 4 + 8)


def test_all_nodes_count_as_class_0_until_there_are_prototypes(federation: Federation) -> None:
    """Round 0 must not be the one that is selected because a classifier predicted in it."""
    it = begun("fggp", federation)
    block = it.clients.blocks[0]
    models = {name: value[block.rows] for name, value in it.own.items()}
    assert not it.method.logits(models, block.evaluation).argmax(dim=2).any()
    it.step(0)
    first = [np.sum((client.labels == 0) & (client.roles == TEST)) for client in federation.clients]
    for stage in ("received", "trained"):
        assert it.correct()[stage, "test"][0].tolist() == first
    scores = it.method.logits({name: value[block.rows] for name, value in it.own.items()}, block.evaluation)
    inside = scores.sum(dim=2)
    assert torch.allclose(inside, torch.ones_like(inside), atol=1e-5)  # shares of the voters


def test_the_global_view_is_refreshed_in_time(federation: Federation) -> None:
    it = begun("fggp", federation, rounds=4, hyper={"refresh": 2})
    seen = []
    for round in range(4):
        it.step(round)
        seen.append(it.clients.noted("global view")[2])
    assert seen[0] is seen[1]
    assert seen[1] is not seen[2]
    assert seen[2] is seen[3]


def test_clients_without_edges_or_neighbours() -> None:
    """A client of one node has no pair at all; it trains and votes like the others."""
    federation = random_federation((30, 25), isolated=0)
    alone = replace(
        federation.clients[1],
        ids=np.array([1000]),
        labels=np.array([1]),
        roles=np.array([TRAIN], np.int8),
        features=federation.clients[1].features[:1],
        edges=both_ways([]),
    )
    odd = replace(federation, clients=(federation.clients[0], alone))
    it = play(make_spec("fggp", odd), odd)
    assert all(torch.isfinite(value).all() for value in it.own.values())
    assert np.isfinite(it.loss).all()
