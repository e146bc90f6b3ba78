from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from hypergraph_toys import (
    centralised,
    clients_of,
    federation_of,
    hypergraph,
    partitioned,
    relative_error,
    rows_of,
)
from hypothesis import given, settings

from bench.data import Hypergraph, Ragged
from bench.federation.traffic import TrafficMeter
from bench.federation.types import ClientHyperedges
from bench.methods._hypergraph import Propagation
from bench.methods.fedhgn import trimmed

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
