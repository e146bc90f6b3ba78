from __future__ import annotations

import re
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch.nn import functional
from toy_hypergraphs import (
    centralised,
    clients_of,
    federation_of,
    hypergraph,
    learnable,
    partitioned,
    relative_error,
    rows_of,
    spec,
)

from bench.data import Hypergraph, Ragged
from bench.engine.execute import run
from bench.engine.run import Run
from bench.federation.traffic import TrafficMeter
from bench.federation.types import TRAIN, Client, ClientHyperedges
from bench.methods._completion import Propagation
from bench.methods.fedhgn import trimmed

FAMILY = ("local_hgnn", "local_hgnn_hc", "fedhgn", "fedhgn_trim1", "fedhgn_hc", "global_hgnn")


def plain_training(
    rows: list[np.ndarray],
    clients: tuple[Client, ...],
    weights: list[torch.Tensor],
    shares: list[float] | None,
    rounds: int,
) -> list[list[torch.Tensor]]:
    """The released algorithm without dropout: one torch.optim.Adam a client, kept over rounds.

    Returns every client's two matrices after its last local step.
    """
    models = [[weight.clone().requires_grad_() for weight in weights] for _ in clients]
    optimisers = [torch.optim.Adam(model, lr=0.01, weight_decay=5e-4) for model in models]
    for round in range(rounds):
        for z, client, model, optimiser in zip(rows, clients, models, optimisers, strict=True):
            chosen = np.flatnonzero(client.roles == TRAIN)
            inputs, targets = torch.from_numpy(z[chosen]).float(), torch.from_numpy(client.labels[chosen])
            for _ in range(3):
                optimiser.zero_grad()
                functional.cross_entropy(torch.relu(inputs @ model[0] @ model[1]), targets).backward()
                optimiser.step()
        if shares is not None and round < rounds - 1:
            with torch.no_grad():
                for place in range(2):
                    mean = sum(share * model[place] for share, model in zip(shares, models, strict=True))
                    for model in models:
                        model[place].copy_(mean)
    return models


@pytest.mark.parametrize(
    ("method", "weights"), [("local_hgnn_hc", None), ("fedhgn_hc", "samples"), ("fedhgn_hc", "uniform")]
)
def test_training_is_the_released_loop_on_completed_features(method: str, weights: str | None) -> None:
    data, clients = learnable()
    hyper = {} if weights is None else {"weights": weights}
    settings = spec(method, 3, rounds=4, hyper=hyper, model="hgnn_relu", dropout=0.0)
    it = Run(settings, federation_of(data, clients))
    start = [it.own[name][0].clone() for name in ("theta1", "theta2")]
    for round in range(4):
        it.step(round)

    sizes = [client.count(TRAIN) for client in clients]
    assert len(set(sizes)) == 3
    shares = {None: None, "samples": [size / sum(sizes) for size in sizes], "uniform": [1 / 3] * 3}[weights]
    z = centralised(data)
    models = plain_training([z[client.ids] for client in clients], clients, start, shares, 4)
    for index, model in enumerate(models):
        for name, value in zip(("theta1", "theta2"), model, strict=True):
            torch.testing.assert_close(it.own[name][index], value.detach(), rtol=1e-4, atol=1e-5)


def test_received_model_is_the_average_weighted_by_training_nodes() -> None:
    data, clients = learnable()
    it = Run(spec("fedhgn", 3), federation_of(data, clients))
    it.step(0)
    trained = {name: value.clone() for name, value in it.own.items()}
    sizes = np.array([client.count(TRAIN) for client in clients])
    for name, value in it.method.broadcast().model.items():
        expected = np.average(trained[name].numpy(), axis=0, weights=sizes)
        for client in range(3):
            np.testing.assert_allclose(value[client], expected, rtol=1e-5, atol=1e-7)


def test_one_local_client_is_the_global_model() -> None:
    data, parts = learnable()
    roles = np.zeros(len(data.labels), np.int8)
    for client in parts:
        roles[client.ids] = client.roles
    federation = federation_of(data, clients_of(data, np.zeros(len(roles), np.int64), roles))
    runs = [Run(spec(method, 1), federation) for method in ("local_hgnn", "global_hgnn")]
    for round in range(3):
        for it in runs:
            it.step(round)
    for name, value in runs[0].own.items():
        torch.testing.assert_close(value, runs[1].own[name])
    assert runs[1].traffic.bytes_up == runs[1].traffic.bytes_down == 0


def test_global_model_needs_one_client() -> None:
    data, clients = learnable()
    result = run(spec("global_hgnn", 3), federation_of(data, clients))
    assert (result.state, result.reason) == (
        "not_applicable",
        "global_hgnn is one client that holds all nodes, not 3",
    )


def test_bytes_of_a_run() -> None:
    data, clients = learnable()
    known = [client.hyperedges for client in clients if client.hyperedges is not None]
    pairs = sum(int((own.sizes > own.members.sizes).sum()) for own in known)
    completion = 2 * pairs * (8 + 4 * 8)
    averaging = 4 * 3 * 4 * (8 * 6 + 6 * 2)  # rounds x clients x bytes x (width x hidden + hidden x classes)
    expected = {
        "local_hgnn": 0,
        "local_hgnn_hc": completion,
        "fedhgn": averaging,
        "fedhgn_trim1": averaging,
        "fedhgn_hc": completion + averaging,
    }
    results = {method: run(spec(method, 3), federation_of(data, clients)) for method in expected}
    assert {method: result.bytes_up for method, result in results.items()} == expected
    assert {method: result.bytes_down for method, result in results.items()} == expected


@pytest.mark.parametrize("method", FAMILY)
def test_other_data_is_not_applicable(method: str) -> None:
    data, clients = learnable()
    result = run(spec(method, 1), replace(federation_of(data, clients), family="images"))
    assert result.state == "not_applicable"
    assert {method, "hypergraph", "graph", "images"} <= set(re.findall(r"\w+", result.reason))


KNOWN = ClientHyperedges(
    ids=np.array([3, 4, 6, 7, 9, 11]),
    members=Ragged.of([np.array(nodes) for nodes in ([0, 1], [0, 1], [2], [2], [1, 2, 3], [4])]),
    sizes=np.array([2, 3, 2, 5, 6, 1]),
)
"""Inside the client: 3 = {0, 1} and 11 = {4} alone. On the border: the others; 4 looks like 3 here."""


def as_sets(operator: Propagation) -> list[set[int]]:
    columns = operator.incidence.toarray().T
    return [set(np.flatnonzero(column).tolist()) for column in columns]


def test_released_trimming_drops_single_nodes_and_merges_look_alikes() -> None:
    assert as_sets(trimmed(KNOWN, 6, "trim2")) == [{0, 1}, {1, 2, 3}, {4}]


def test_worded_trimming_keeps_single_nodes() -> None:
    assert as_sets(trimmed(KNOWN, 6, "trim1")) == [{0, 1}, {2}, {1, 2, 3}, {4}]


def test_border_hyperedges_can_be_dropped() -> None:
    assert as_sets(trimmed(KNOWN, 6, "drop")) == [{0, 1}, {4}]


def test_trimmed_propagation_by_hand() -> None:
    x = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]])  # node 5 is in no hyperedge
    # trim2: degrees 1, 2, 1, 1, 1. u{0,1} = 1 + 2/sqrt(2), u{1,2,3} = 2/sqrt(2) + 3 + 4.
    first, second = 1 + sqrt(2), sqrt(2) + 7
    expected = [first / 2, (first / 2 + second / 3) / sqrt(2), second / 3, second / 3, 5, 0]
    assert trimmed(KNOWN, 6, "trim2").propagate(x, 1).ravel() == pytest.approx(expected)
    # trim1: node 2 has degree 2, so u{1,2,3} = 2/sqrt(2) + 3/sqrt(2) + 4 and u{2} = 3/sqrt(2).
    second = 5 / sqrt(2) + 4
    expected = [
        first / 2,
        (first / 2 + second / 3) / sqrt(2),
        (3 / sqrt(2) + second / 3) / sqrt(2),
        second / 3,
        5,
        0,
    ]
    assert trimmed(KNOWN, 6, "trim1").propagate(x, 1).ravel() == pytest.approx(expected)


@pytest.mark.parametrize(("method", "least"), [("local_hgnn", 2), ("fedhgn", 2), ("fedhgn_trim1", 1)])
@settings(deadline=None, max_examples=60)
@given(case=partitioned())
def test_clients_train_on_their_own_trimmed_hypergraph(
    method: str, least: int, case: tuple[Hypergraph, list[int]]
) -> None:
    data, owner = case
    federation = federation_of(data, clients_of(data, owner))
    traffic = TrafficMeter()
    rows = rows_of(method, federation, traffic)
    assert (traffic.bytes_up, traffic.bytes_down) == (0, 0)
    for before, after in zip(federation.clients, rows, strict=True):
        own = {node: place for place, node in enumerate(before.ids.tolist())}
        left = set()
        for index in range(len(data.hyperedges)):
            nodes = data.hyperedges[index].tolist()
            rest = frozenset(own[node] for node in nodes if node in own)
            if rest and (len(rest) == len(nodes) or len(rest) >= least):
                left.add(rest)
        alone = hypergraph(before.features, left)
        (client,) = clients_of(alone, np.zeros(len(own)).astype(int))
        assert relative_error([client], [after], centralised(alone)) < 1e-6


def test_a_node_that_is_alone_in_its_hyperedges_is_kept_by_the_wording_only() -> None:
    # Node 2 shares its hyperedges with foreign nodes alone.
    data = hypergraph([[1], [2], [4], [8]], [{0, 1}, {2, 3}])
    federation = federation_of(data, clients_of(data, [0, 0, 0, 1]))
    rows = {method: rows_of(method, federation)[0][2].item() for method in ("local_hgnn", "fedhgn_trim1")}
    assert rows == {"local_hgnn": 0.0, "fedhgn_trim1": 4.0}


@settings(deadline=None, max_examples=60)
@given(case=partitioned())
def test_trimming_with_true_sizes_and_degrees_is_a_block_of_the_whole(
    case: tuple[Hypergraph, list[int]],
) -> None:
    data, owner = case
    federation = federation_of(data, clients_of(data, owner))
    whole = centralised(replace(data, features=np.eye(len(owner))), layers=1)
    for client, rows in zip(
        federation.clients, rows_of("local_hgnn", federation, trimming="trimG"), strict=True
    ):
        block = whole[np.ix_(client.ids, client.ids)]
        np.testing.assert_allclose(rows, block @ block @ data.features[client.ids], atol=1e-6)


@pytest.mark.parametrize(("count", "share"), [(3, 0.248), (6, 0.375), (9, 0.465)])
def test_released_trimming_empties_many_coraca_nodes(coraca: Hypergraph, count: int, share: float) -> None:
    owner = np.random.default_rng(0).permutation(np.arange(len(coraca.labels)) % count)
    zero = 0
    for client in clients_of(coraca, owner):
        assert client.hyperedges is not None
        zero += len(client.ids) - len(
            np.flatnonzero(trimmed(client.hyperedges, len(client.ids), "trim2").degrees)
        )
    assert zero / len(owner) == pytest.approx(
        share, abs=0.02
    )  # the mean over ten partitions that others drew
