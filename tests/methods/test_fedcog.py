"""FedCog: exchanged propagation against the whole graph, its messages, and nearest-neighbour links."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from split_graphs import fed, random_split, split_graph
from toy_federations import both_ways

from bench.federation.traffic import TrafficMeter
from bench.federation.types import Client
from bench.methods.fedcog import nearest_links


def centralised(features: NDArray[Any], pairs: list[tuple[int, int]]) -> NDArray[np.float64]:
    """``A A X`` of the whole graph as a dense matrix, entry by entry."""
    nodes = len(features)
    links = np.eye(nodes)
    for u, v in pairs:
        links[u, v] = links[v, u] = 1
    degree = links.sum(axis=1)
    for u in range(nodes):
        for v in range(nodes):
            links[u, v] /= np.sqrt(degree[u] * degree[v])
    return np.asarray(links @ links @ features)


def rows(clients: tuple[Client, ...], nodes: int) -> NDArray[np.float64]:
    """All clients' rows in the order of ids."""
    result = np.full((nodes, clients[0].features.shape[1]), np.nan)
    for client in clients:
        assert isinstance(client.features, np.ndarray)
        assert client.features.dtype == np.float32
        result[client.ids] = client.features
    return result


@pytest.mark.parametrize("method", ["fedcog", "fedsage_plus_standin"])
def test_a_row_goes_up_once_and_down_to_every_client_that_gets_it(method: str) -> None:
    """A hub at one client with a neighbour at each of three others: 4 rows up; 3 + 1 + 1 + 1 down."""
    star = split_graph(np.ones((4, 5)), [(0, 1), (0, 2), (0, 3)], [0, 1, 2, 3])
    traffic = TrafficMeter()
    fed(method, star, traffic)
    row = 8 + 5 * 4
    exchanges = traffic.exchanges()[:, 0].tolist()
    assert exchanges == [[4 * row, 6 * row]] * (2 if method == "fedcog" else 1)
    assert [traffic.bytes_up, traffic.bytes_down] == np.sum(exchanges, axis=0).tolist()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("clients", [1, 2, 5])
def test_rows_are_those_of_the_whole_graph(seed: int, clients: int) -> None:
    federation, features, pairs = random_split(seed, clients)
    traffic = TrafficMeter()
    prepared = fed("fedcog", federation, traffic)
    for client, own in zip(prepared, federation.clients, strict=True):
        assert all(
            getattr(client, name) is getattr(own, name) for name in ("ids", "roles", "labels", "edges")
        )
    got, expected = rows(prepared, 40), centralised(features, pairs)
    assert np.linalg.norm(got - expected) < 1e-6 * np.linalg.norm(expected)
    np.testing.assert_array_equal(got[7], features[7])  # without an edge: only its loop
    owner = {int(v): k for k, client in enumerate(federation.clients) for v in client.ids}
    sent = {(a, owner[b]) for u, v in pairs for a, b in ((u, v), (v, u)) if owner[a] != owner[b]}
    assert traffic.bytes_up == 2 * len({node for node, _ in sent}) * (8 + 6 * 4)
    assert traffic.bytes_down == 2 * len(sent) * (8 + 6 * 4)
    assert len(traffic.exchanges()) == (0 if clients == 1 else 2)


def client_of(features: Any, pairs: list[tuple[int, int]]) -> Client:
    matrix = sparse.csr_matrix(np.asarray(features, np.float32))
    nodes = matrix.shape[0]
    return Client(
        np.arange(nodes), np.zeros(nodes, np.int64), np.zeros(nodes, np.int8), matrix, both_ways(pairs)
    )


def test_nearest_links_by_hand() -> None:
    # 2, 3 and 4 have no edge. 2 and 3 are each other's nearest: one edge. 4 is as near to 0 as to 1 by
    # distance (and nearer to 1 by angle).
    features = [[2, 0], [2, 4], [9, 9], [9, 8], [1, 2]]
    links = nearest_links(client_of(features, [(0, 1)]))
    assert links.T.tolist() == both_ways([(2, 3), (4, 0)]).T.tolist()
    assert nearest_links(client_of(features, [(0, 1), (2, 3), (3, 4)])).shape == (2, 0)
    assert nearest_links(client_of(features[:1], [])).shape == (2, 0)


@pytest.mark.parametrize("seed", range(3))
def test_nearest_links_join_the_graph(seed: int) -> None:
    """Every node without an edge at its client gets the nearest one there, found by a double loop."""
    federation, features, pairs = random_split(seed, clients=6)
    owner = {int(v): k for k, client in enumerate(federation.clients) for v in client.ids}
    near = {v for pair in pairs if owner[pair[0]] == owner[pair[1]] for v in pair}
    more = list(pairs)
    for v in sorted(set(owner) - near):
        others = [u for u in owner if owner[u] == owner[v] and u != v]
        more.append((v, min(others, key=lambda u: (((features[u] - features[v]) ** 2).sum(), u))))
    assert len(more) > len(pairs) + 3
    expected = centralised(features, more)
    got = rows(fed("fedcog", federation, knn=True), 40)
    assert np.linalg.norm(got - expected) < 1e-6 * np.linalg.norm(expected)
    assert np.linalg.norm(rows(fed("fedcog", federation), 40) - expected) > 1e-2


# --- as released ----------------------------------------------------------------------------------


def released_edge_list(pairs: list[tuple[int, int]], owner: dict[int, int], features: Any) -> Any:
    """The released loop, node by node and edge by edge.

    It links the nodes whose numbers are the positions at their client of a node and its nearest one.
    """
    edge_list = list(pairs)
    for client in sorted(set(owner.values())):
        nodes = sorted(v for v in owner if owner[v] == client)
        nearest_pairs = []
        for place, v in enumerate(nodes):
            others = [i for i in range(len(nodes)) if i != place]
            if others:
                distances = {i: ((features[v] - features[nodes[i]]) ** 2).sum() for i in others}
                nearest_pairs.append({place, min(others, key=lambda i: (distances[i], i))})
        inner = [edge for edge in edge_list if set(edge) <= set(nodes)]
        lone_nodes = set(nodes) - {v for edge in inner for v in edge}
        for v in lone_nodes:
            fitting = [pair for pair in nearest_pairs if v in pair and pair <= set(nodes)]
            edge_list += [(min(fitting[0]), max(fitting[0]))] if fitting else []
    return edge_list


@pytest.mark.parametrize("seed", range(4))
def test_released_links_are_those_of_the_released_loop(seed: int) -> None:
    federation, features, pairs = random_split(seed, clients=3)
    owner = {int(v): k for k, client in enumerate(federation.clients) for v in client.ids}
    edge_list = released_edge_list(pairs, owner, features)
    assert len(edge_list) > len(pairs)
    traffic = TrafficMeter()
    got = rows(fed("fedcog_released", federation, traffic, runs_before=0), 40)
    assert traffic.bytes_up == traffic.bytes_down == 0
    np.testing.assert_allclose(got, centralised(features, edge_list), rtol=1e-4, atol=1e-6)


def test_released_links_pile_up_over_runs() -> None:
    federation, features, pairs = random_split(3)
    whole = centralised(features, pairs)
    moved = [
        np.linalg.norm(rows(fed("fedcog_released", federation, runs_before=runs), 40) - whole)
        for runs in (0, 3, 9)
    ]
    assert 0 < moved[0] < moved[1] < moved[2]
