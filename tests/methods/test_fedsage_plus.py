"""FedSage+: hiding, targets, feature loss, generator and mended graphs, each by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from toy_federations import both_ways, copied, furthest, make_spec, play, same_counts

from bench.engine.run import Run
from bench.federation.traffic import TrafficMeter
from bench.federation.types import TEST, TRAIN, UNUSED, VALIDATION, Client, Federation
from bench.methods._neighgen import (
    HIDDEN,
    MeanGNN,
    Neighbourhoods,
    NeighGen,
    OwnGraph,
    greedy_feature_loss,
    hide,
    missing_neighbours,
    with_leaves,
)
from bench.methods.fedsage_plus import FedSagePlus, Mender

GENEROUS = {"generator_epochs": 25, "hidden_portion": 1.0, "federated_epochs": 2}
"""Enough training for toy clients to generate neighbours."""


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("portion", [0.0, 0.3, 0.5, 1.0])
def test_hidden_nodes_are_never_train_or_test(federation: Federation, portion: float) -> None:
    for client in federation.clients:
        client = replace(client, roles=np.where(client.ids % 7 == 0, UNUSED, client.roles).astype(np.int8))
        hidden = hide(client, portion, stream())
        assert set(client.roles[hidden].tolist()) <= {VALIDATION, UNUSED}
        candidates = client.count(VALIDATION) + client.count(UNUSED)
        assert hidden.sum() == int(portion * candidates)
    assert (hide(federation.clients[2], 0.5, stream()) != hide(federation.clients[2], 0.5, stream(1))).any()


def test_missing_neighbours_by_hand() -> None:
    # node 0 misses 2, 3 and 5; node 1 misses 3; 2, 3 and 5 are hidden; 4 is not
    edges = both_ways([(0, 1), (0, 2), (0, 3), (0, 5), (1, 3), (2, 3), (1, 4)])
    hidden = np.array([False, False, True, True, False, True])
    counts, first = missing_neighbours(edges, hidden, 2)
    assert counts.tolist() == [3, 1, 0, 0, 0, 0]
    assert first.tolist() == [[2, 3], [3, -1], [-1, -1], [-1, -1], [-1, -1], [-1, -1]]


def test_the_feature_loss_is_the_double_loop() -> None:
    nodes, sources, slots, width = 12, 3, 4, 7
    rng = stream(3)
    generated = torch.rand(nodes, slots, width, generator=rng, dtype=torch.float64, requires_grad=True)
    targets = torch.rand(nodes, sources, slots, width, generator=rng, dtype=torch.float64)
    counts = torch.randint(0, slots + 1, (nodes,), generator=rng)
    missing = torch.randint(0, slots + 3, (nodes,), generator=rng)
    assert ((missing == 0) & (counts > 0)).any()
    assert (missing > slots).any()
    total = torch.zeros((), dtype=torch.float64)
    for v in range(nodes):
        for source in range(sources):
            for j in range(int(counts[v])):
                each = [
                    (generated[v, j] - targets[v, source, k]).square().mean()
                    for k in range(min(slots, int(missing[v])))
                ]
                if each:
                    total = total + torch.stack(each).min()
    loss = greedy_feature_loss(generated, targets, counts, missing)
    assert loss.item() == pytest.approx(total.item(), rel=1e-10)
    (one,) = torch.autograd.grad(loss, generated)
    (other,) = torch.autograd.grad(total, generated)
    assert torch.allclose(one, other, atol=1e-12)


def test_attached_nodes_by_hand() -> None:
    client = Client(
        ids=np.array([7, 8, 9]),
        labels=np.array([0, 1, -1]),
        roles=np.array([TRAIN, TRAIN, TEST], np.int8),
        features=sparse.csr_matrix(np.array([[1, 0], [0, 2], [1, 1]], np.float32)),
        edges=both_ways([(0, 1), (1, 2)]),
    )
    features = np.array([[0.5, 0], [0, 0.5], [0.25, 0.25]], np.float32)
    mended = with_leaves(client, np.array([0, 2, 2]), features)
    assert mended.edges is not None
    assert mended.edges.tolist() == both_ways([(0, 1), (1, 2), (0, 3), (2, 4), (2, 5)]).tolist()
    assert mended.roles.tolist() == [TRAIN, TRAIN, TEST, UNUSED, UNUSED, UNUSED]
    assert mended.labels.tolist() == [0, 1, -1, -1, -1, -1]
    assert mended.features.toarray().tolist() == [[1, 0], [0, 2], [1, 1], *features.tolist()]  # type: ignore[union-attr]
    dense = with_leaves(replace(client, features=client.features.toarray()), np.array([1]), features[:1])  # type: ignore[union-attr]
    assert np.asarray(dense.features).tolist() == [[1, 0], [0, 2], [1, 1], [0.5, 0]]
    assert with_leaves(client, np.array([], np.int64), features[:0]) is client


def test_the_mended_convolution_is_that_of_the_whole_matrix() -> None:
    """Rows of D^-1 (A + I) of the graph with the generated nodes in it, built densely."""
    rng = np.random.default_rng(0)
    x = rng.random((5, 6)).astype(np.float32)
    edges = both_ways([(0, 1), (1, 2), (0, 3)])
    generated = torch.from_numpy(rng.random((3, 6)).astype(np.float32))
    owners = [1, 1, 4]
    network = MeanGNN(6, 4)
    with torch.no_grad():
        network.first_bias.uniform_(-0.2, 0.2)
        network.second_bias.uniform_(-0.2, 0.2)
    adjacency = np.eye(8)
    adjacency[edges[0], edges[1]] = 1
    for new, owner in enumerate(owners, start=5):
        adjacency[new, owner] = adjacency[owner, new] = 1
    mean = torch.from_numpy(adjacency / adjacency.sum(axis=1, keepdims=True)).float()
    hidden = torch.relu(
        mean @ torch.cat([torch.from_numpy(x), generated]) @ network.first + network.first_bias
    )
    assert hidden.shape == (8, HIDDEN)
    expected = (mean @ hidden @ network.second + network.second_bias)[:5]
    graph = OwnGraph(sparse.csr_matrix(x), edges, torch.device("cpu"))
    out = network(graph, 0.0, None, generated, torch.tensor(owners))
    assert torch.allclose(out, expected, atol=1e-6)
    ours = torch.autograd.grad(out.square().sum(), list(network.parameters()))
    theirs = torch.autograd.grad(expected.square().sum(), list(network.parameters()))
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def planted(nodes: int = 12, width: int = 8) -> Federation:
    """Two clients whose training nodes each have two validation neighbours with known features.

    A node of class c has word c often; its neighbours have word 4 + c.
    """
    features = np.zeros((3 * nodes, width), np.float32)
    kind = np.arange(nodes) % 2
    features[np.arange(nodes), kind] = 6  # codes that stand out from the noise
    pairs = []
    for v in range(nodes):
        for u in (nodes + 2 * v, nodes + 2 * v + 1):
            features[u, 4 + kind[v]] = 0.9
            pairs.append((v, u))
    client = Client(
        ids=np.arange(3 * nodes),
        labels=np.concatenate([kind, np.full(2 * nodes, -1)]),
        roles=np.array([TRAIN] * nodes + [VALIDATION] * (2 * nodes), np.int8),
        features=sparse.csr_matrix(features),
        edges=both_ways(pairs),
    )
    return Federation(
        "toy", "planted", "graph", 2, (client, replace(client, ids=client.ids + 100)), "planted"
    )


def mender_of(federation: Federation, **hyper: Any) -> Mender:
    calm = {"generator_epochs": 0, "federated_epochs": 0}
    method = Run(make_spec("fedsage_plus", federation, hyper=calm), federation).method
    assert isinstance(method, FedSagePlus)
    method.hyper = method.Hyper(**hyper)
    return Mender(method, federation.clients[0], federation.classes)


def test_the_generator_learns_planted_neighbours() -> None:
    federation = planted()
    mender = mender_of(federation, hidden_portion=1.0, generator_epochs=100, generator_dropout=0.0)
    mender.train()
    with torch.no_grad():
        codes = mender.network.codes(mender.graph, 0.0, None)[:12]
        counts = mender.network.counts(codes)
        generated = mender.features(codes, counts.long(), None)
        two, all_slots = (mender.network.features(codes, slots, 0.0, None) for slots in (2, 5))
    assert torch.allclose(two[:, :2], all_slots[:, :2])
    assert ((counts - 2).abs() < 0.5).all()
    own = torch.zeros(12, 1, 8)
    own[torch.arange(12), 0, 4 + torch.arange(12) % 2] = 0.9
    other = own[torch.arange(12) ^ 1]
    # the first slot is in use for every node; the zero vector would be 0.81 / 8 away
    near = (generated - own).square().mean(dim=2)[:, 0]
    assert (near < 0.02).all()
    assert (near < (generated - other).square().mean(dim=2)[:, 0] / 4).all()


def test_the_federated_phase_moves_fgen_alone_and_counts_its_bytes() -> None:
    federation = planted()
    mender = mender_of(federation, hidden_portion=1.0, generator_epochs=60, federated_epochs=4)
    mender.train()
    before = copied(dict(mender.network.named_parameters()))
    traffic = TrafficMeter()
    mender.train_with_others([Neighbourhoods(federation.clients[1])], traffic)
    for name, value in mender.network.named_parameters():
        assert torch.equal(value, before[name]) == (not name.startswith("features."))
    with torch.no_grad():
        codes = mender.network.codes(mender.graph, 0.0, None)
        asked = int((mender.network.counts(codes)[:12] >= 1).sum())
    assert asked > 0
    assert (
        traffic.bytes_up == traffic.bytes_down == 4 * asked * 5 * 8 * 4
    )  # epochs, nodes, slots, words, float32


def test_targets_of_others_are_neighbours_of_one_node() -> None:
    client = replace(
        planted().clients[0],
        features=np.arange(36, dtype=np.float32)[:, None],
        edges=both_ways([(0, 1), (0, 2), (2, 3), (5, 0)]),
    )
    neighbours = {0: {1, 2, 5}, 1: {0}, 2: {0, 3}, 3: {2}, 5: {0}}
    message = Neighbourhoods(client).sample(200, 5, stream())
    assert message is not None
    assert message.shape == (200, 5, 1)
    drawn = [set(rows.ravel().astype(int).tolist()) for rows in message]
    assert all(any(some <= known for known in neighbours.values()) for some in drawn)
    assert set.union(*drawn) == {0, 1, 2, 3, 5}
    lone = replace(client, edges=np.zeros((2, 0), np.int64))
    assert Neighbourhoods(lone).sample(3, 5, stream()) is None


def test_mended_clients_train_on_more_nodes_and_are_counted_on_their_own(federation: Federation) -> None:
    it = play(make_spec("fedsage_plus", federation, hyper=GENEROUS), federation)
    generated = it.method.records["generated_neighbours"].tolist()
    assert sum(generated) > 0
    sizes = [len(client.ids) for client in federation.clients]
    lengths = [length for block in it.clients.blocks for length in block.lengths]
    assert lengths == [size + new for size, new in zip(sizes, generated, strict=True)]
    assert all(new <= 5 * size for size, new in zip(sizes, generated, strict=True))
    for split, role in (("train", TRAIN), ("val", VALIDATION), ("test", TEST)):
        assert it.evaluator.samples[split].tolist() == [client.count(role) for client in federation.clients]
    plain = play(make_spec("fedavg", federation), federation)
    assert furthest(plain.own, it.own) > 1e-3
    more = it.traffic.bytes_up - plain.traffic.bytes_up
    assert more == it.traffic.bytes_down - plain.traffic.bytes_down > 0, "raw features travel, too"


def test_without_generated_neighbours_it_is_fedavg(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NeighGen, "counts", lambda self, codes: 0.999 * torch.sigmoid(codes.sum(dim=1)))
    plain = play(make_spec("fedavg", federation), federation)
    it = play(make_spec("fedsage_plus", federation), federation)
    assert it.method.records["generated_neighbours"].sum() == 0
    assert furthest(plain.own, it.own) == 0
    assert it.traffic.bytes_up == plain.traffic.bytes_up
    assert same_counts(plain, it)


def test_a_client_without_training_nodes_keeps_its_graph(federation: Federation) -> None:
    first = replace(federation.clients[0], roles=np.full(len(federation.clients[0].ids), TEST, np.int8))
    without = replace(federation, clients=(first, *federation.clients[1:]))
    it = play(make_spec("fedsage_plus", without, hyper=GENEROUS), without)
    assert it.method.records["generated_neighbours"][0] == 0
    assert np.isfinite(it.loss).all()
