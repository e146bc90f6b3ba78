"""Hyperedges that name a node more than once: it counts as often, but is sent and counted as one node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from toy_hypergraphs import Recorder, clients_of, federation_of, hypergraph, rows_of

from bench.data import Hypergraph, Ragged
from bench.federation.types import ClientHyperedges
from bench.methods._completion import LAYERS
from bench.methods.fedhgn import trimmed


def counts(edges: list[list[int]], nodes: int) -> NDArray[np.float64]:
    """``H`` ``[nodes, hyperedges]``, dense."""
    return np.array([[edge.count(node) for edge in edges] for node in range(nodes)], float)


def smoothing(incidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """``D^-1/2 H S^-1 H^T D^-1/2``, dense, with degrees and sizes of this ``H``."""
    degree = incidence.sum(axis=1)
    scale = np.diag(np.where(degree > 0, np.maximum(degree, 1) ** -0.5, 0))
    return scale @ incidence @ np.diag(1 / incidence.sum(axis=0)) @ incidence.T @ scale


def edges_of(data: Hypergraph) -> list[list[int]]:
    return [data.hyperedges[index].tolist() for index in range(len(data.hyperedges))]


@st.composite
def repeated(draw: st.DrawFn) -> tuple[Hypergraph, list[int]]:
    """A hypergraph of up to 12 nodes whose lists name many twice or more, and the owner of every node."""
    nodes = draw(st.integers(2, 12))
    edge = st.lists(st.integers(0, nodes - 1), min_size=2, max_size=8).map(
        lambda members: tuple(sorted(members))
    )
    edges = draw(st.lists(edge, min_size=1, max_size=12, unique=True))
    count = draw(st.integers(1, min(4, nodes)))
    rest = draw(st.lists(st.integers(0, count - 1), min_size=nodes - count, max_size=nodes - count))
    features = np.random.default_rng(draw(st.integers(0, 99))).random((nodes, 3))
    return hypergraph(features, edges), draw(st.permutations([*range(count), *rest]))


def known(*parts: tuple[list[int], int]) -> ClientHyperedges:
    members = Ragged.of([np.array(nodes, np.int64) for nodes, _ in parts])
    return ClientHyperedges(np.arange(len(parts)), members, np.array([size for _, size in parts]))


@pytest.mark.parametrize(
    ("how", "left"),
    [
        ("trim2", [[0, 0], [0, 0, 1], [0, 1], [1, 1], [1]]),
        ("trim1", [[0, 0], [0], [0, 0, 1], [0, 1], [1, 1], [1]]),
        ("trimG", [[0, 0], [0], [0, 0, 1], [0, 1], [0, 0], [1, 1], [1]]),
        ("drop", [[1, 1], [1]]),
    ],
)
def test_trimming_counts_repeats(how: Any, left: list[list[int]]) -> None:
    # A single own node with two papers stays (trim2), and one that is a whole hyperedge; equal multisets
    # become one, equal sets do not.
    own = known(([0, 0], 3), ([0], 2), ([0, 0, 1], 4), ([0, 1], 3), ([0, 0], 5), ([1, 1], 2), ([1], 1))
    operator = trimmed(own, 2, how)
    np.testing.assert_array_equal(operator.incidence.toarray(), counts(left, 2))
    assert operator.degrees.tolist() == counts(left, 2).sum(axis=1).tolist()
    sizes = own.sizes.tolist() if how == "trimG" else [len(edge) for edge in left]
    assert operator.sizes.tolist() == sizes


def test_no_part_of_a_border_hyperedge_is_too_large_to_drop() -> None:
    assert trimmed(known(([0, 0, 0], 4)), 1, "drop").incidence.shape == (1, 0)


@pytest.mark.parametrize("least", [1, 2])
@settings(deadline=None, max_examples=60)
@given(case=repeated())
def test_clients_train_on_their_own_trimmed_hypergraph(
    least: int, case: tuple[Hypergraph, list[int]]
) -> None:
    data, owner = case
    federation = federation_of(data, clients_of(data, owner))
    method = {1: "fedhgn_trim1", 2: "local_hgnn"}[least]
    traffic = Recorder()
    for client, rows in zip(federation.clients, rows_of(method, federation, traffic), strict=True):
        own = set(client.ids.tolist())
        parts = {tuple(node for node in edge if node in own) for edge in edges_of(data)}
        step = smoothing(counts([list(part) for part in parts if len(part) >= least], len(owner)))
        np.testing.assert_allclose(rows, (step @ step @ data.features)[client.ids], atol=1e-6)
    assert traffic.bytes_up == traffic.bytes_down == 0


@settings(deadline=None, max_examples=50)
@given(case=repeated())
def test_completion_is_centralised_propagation_and_sends_a_hyperedge_once(
    case: tuple[Hypergraph, list[int]],
) -> None:
    data, owner = case
    clients, traffic = clients_of(data, owner), Recorder()
    step = smoothing(counts(edges_of(data), len(owner)))
    expected = step @ step @ data.features
    rows = rows_of("local_hgnn_hc", federation_of(data, clients), traffic)
    result = np.zeros_like(expected)
    for client, part in zip(clients, rows, strict=True):
        result[client.ids] = part
    assert np.linalg.norm(result - expected) <= 1e-6 * np.linalg.norm(expected)
    at = [{owner[node] for node in edge} for edge in edges_of(data)]
    pairs = [[e for e, own in enumerate(at) if len(own) > 1 and k in own] for k in range(len(clients))]
    for messages in (traffic.uploads, traffic.downloads):
        assert [ids.tolist() for ids, _ in messages] == LAYERS * pairs
    row = 8 + 4 * 3  # an id and three features
    assert traffic.bytes_up == traffic.bytes_down == LAYERS * sum(map(len, pairs)) * row


@settings(deadline=None, max_examples=60)
@given(case=repeated())
def test_released_completion_counts_repeats(case: tuple[Hypergraph, list[int]]) -> None:
    data, owner = case
    clients, traffic = clients_of(data, owner), Recorder()
    rows = rows_of("local_hgnn_hc", federation_of(data, clients), traffic, completion="released")
    exact = smoothing(counts(edges_of(data), len(owner))) @ data.features
    asked = []
    for client, part in zip(clients, rows, strict=True):
        own = set(client.ids.tolist())
        touching = [edge for edge in edges_of(data) if own & set(edge)]
        step = smoothing(counts(touching, len(owner))) if touching else np.zeros((len(owner), len(owner)))
        first = step @ data.features
        second = step @ np.array([first[v] if v in own else exact[v] for v in range(len(owner))])
        np.testing.assert_allclose(part, second[client.ids], atol=1e-5)
        asked.append(sorted({node for edge in touching for node in edge} - own))
    # A foreign node's row goes to a client once, however often its hyperedges name the node.
    assert sorted(ids.tolist() for ids, _ in traffic.downloads) == sorted(LAYERS * asked)
    wanted = set().union(*asked)
    sent = [sorted(wanted & set(client.ids.tolist())) for client in clients]
    assert sorted(ids.tolist() for ids, _ in traffic.uploads) == sorted(LAYERS * sent)
    assert traffic.bytes_down == LAYERS * sum(map(len, asked)) * (8 + 4 * 3)
    assert traffic.bytes_up == LAYERS * len(wanted) * (8 + 4 * 3)
