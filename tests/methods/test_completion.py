from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from toy_hypergraphs import (
    Recorder,
    centralised,
    clients_of,
    federation_of,
    hypergraph,
    partitioned,
    relative_error,
    rows_of,
)

from bench.data import Hypergraph
from bench.engine.methods import METHODS
from bench.errors import NotApplicableError
from bench.federation.hypergraph import LabelDirichlet, hypergraph_clients
from bench.federation.scenario import Assignment
from bench.federation.traffic import TrafficMeter
from bench.federation.types import Client, ClientHyperedges
from bench.methods._completion import LAYERS, Propagation, complete, completed
from bench.methods.fedhgn import trimmed


def owners(data: Hypergraph, clients: Sequence[Client]) -> dict[int, set[int]]:
    """The clients that hold nodes of every hyperedge, from the whole hypergraph."""
    owner = {int(node): number for number, client in enumerate(clients) for node in client.ids}
    return {
        index: {owner[int(node)] for node in data.hyperedges[index]} for index in range(len(data.hyperedges))
    }


def partition(data: Hypergraph, count: int) -> tuple[Client, ...]:
    return hypergraph_clients(data, LabelDirichlet().draw(data, count, 0, (10.0, 20.0, 40.0)))


def test_hand_example() -> None:
    # Nodes 0, 1 at A; 2, 3 at B. Hyperedge 0 = {0, 1, 2} on the border, 1 = {2, 3} inside B.
    clients = clients_of(hypergraph([[1], [2], [3], [4]], [{0, 1, 2}, {2, 3}]), [0, 0, 1, 1])
    traffic = Recorder()
    rows = completed(clients, traffic)
    assert np.concatenate(rows).ravel() == pytest.approx([1.93270, 1.93270, 3.29156, 2.72227], abs=1e-5)
    # Degrees 1, 1, 2, 1: A sends 1 + 2 and B 3 / sqrt(2), then the same of the propagated rows.
    assert [ids.tolist() for ids, _ in traffic.uploads + traffic.downloads] == [[0]] * 8
    sent = [values.item() for _, values in traffic.uploads]
    assert sent == pytest.approx([3.0, 2.12132, 3.41421, 2.38388], abs=1e-5)
    returned = [values.item() for _, values in traffic.downloads]
    assert returned == pytest.approx([5.12132, 5.12132, 5.79809, 5.79809], abs=1e-5)
    assert all(
        ids.dtype == np.int64 and values.dtype == np.float32
        for ids, values in traffic.uploads + traffic.downloads
    )


@settings(deadline=None, max_examples=150)
@given(partitioned())
def test_completion_is_centralised_propagation(case: tuple[Hypergraph, list[int]]) -> None:
    data, owner = case
    clients, traffic = clients_of(data, owner), Recorder()
    rows = completed(clients, traffic)
    expected = centralised(data)
    assert relative_error(clients, rows, expected) < 1e-6
    isolated = np.setdiff1d(np.arange(len(owner)), data.hyperedges.values)
    for client, part in zip(clients, rows, strict=True):
        assert not part[np.isin(client.ids, isolated)].any()
    # Sent are the border hyperedges and nothing else; every client gets back what it sent ids of.
    holders = owners(data, clients)
    for messages in (traffic.uploads, traffic.downloads):
        assert [ids.tolist() for ids, _ in messages] == LAYERS * [
            [edge for edge, at in holders.items() if len(at) > 1 and number in at]
            for number in range(len(clients))
        ]
    pairs = sum(len(at) for at in holders.values() if len(at) > 1)
    assert traffic.bytes_up == traffic.bytes_down == LAYERS * pairs * (8 + 4 * 3)


@settings(deadline=None, max_examples=50)
@given(partitioned(), st.integers(0, 99))
def test_order_of_nodes_and_hyperedges_changes_nothing(case: tuple[Hypergraph, list[int]], seed: int) -> None:
    data, owner = case
    rng = np.random.default_rng(seed)
    new = rng.permutation(len(owner))  # node v is called new[v]
    order = rng.permutation(len(data.hyperedges))
    features, owners_of = np.empty_like(data.features), np.empty(len(owner), np.int64)
    features[new], owners_of[new] = data.features, owner
    other = hypergraph(features, [new[data.hyperedges[index]] for index in order])
    result = np.zeros((2, *data.features.shape))
    for index, clients in enumerate((clients_of(data, owner), clients_of(other, owners_of))):
        for client, part in zip(clients, completed(clients, TrafficMeter()), strict=True):
            result[index, client.ids] = part
    np.testing.assert_allclose(result[1][new], result[0], rtol=1e-5, atol=1e-6)


def test_one_client_sends_nothing() -> None:
    data = hypergraph(np.eye(4), [{0, 1, 2}, {2, 3}])
    traffic = TrafficMeter()
    (rows,) = completed(clients_of(data, [0, 0, 0, 0]), traffic)
    assert (traffic.bytes_up, traffic.bytes_down) == (0, 0)
    np.testing.assert_allclose(rows, centralised(data), rtol=1e-6)


def test_uploads_add_up_to_the_sums_of_the_whole_hyperedge() -> None:
    data = hypergraph(np.arange(12).reshape(6, 2), [{0, 2, 4}, {1, 2}, {0, 5}, {2, 3, 4, 5}])
    traffic = Recorder()
    completed(clients_of(data, [0, 0, 1, 1, 2, 2]), traffic)
    degree = [2, 1, 3, 1, 2, 2]
    for edge in range(4):
        nodes = data.hyperedges[edge]
        whole = sum(data.features[node] / np.sqrt(degree[node]) for node in nodes)
        sent = sum(values[ids == edge].sum(axis=0) for ids, values in traffic.uploads[:3])
        np.testing.assert_allclose(sent, whole, rtol=1e-6)


Substitute = Callable[[Propagation, ClientHyperedges], Propagation]


def with_local_degrees(operator: Propagation, known: ClientHyperedges) -> Propagation:
    """Degrees counted in the trimmed hypergraph."""
    return replace(operator, degrees=trimmed(known, len(operator.degrees), "trim2").degrees)


def with_local_sizes(operator: Propagation, known: ClientHyperedges) -> Propagation:
    """A hyperedge counts for as many nodes as the client has in it."""
    return replace(operator, sizes=known.members.sizes)


def completed_with(clients: Sequence[Client], change: Substitute) -> list[NDArray[Any]]:
    """``completed``, with the operators changed."""
    known = [client.hyperedges for client in clients if client.hyperedges is not None]
    rows = [client.dense() for client in clients]
    operators = [
        change(Propagation.of(own.members, len(x), own.sizes), own)
        for own, x in zip(known, rows, strict=True)
    ]
    for layer in range(LAYERS):
        rows = complete(known, operators, rows, TrafficMeter(), layer)
    return rows


@pytest.mark.parametrize("change", [with_local_degrees, with_local_sizes])
def test_local_degrees_or_sizes_are_not_enough(change: Substitute) -> None:
    data = hypergraph(np.eye(6), [{0, 1, 3}, {1, 2, 4}, {0, 2, 5}, {0, 1}, {3, 4, 5}])
    clients = clients_of(data, [0, 0, 0, 1, 1, 1])
    unchanged = completed_with(clients, lambda operator, known: operator)
    assert relative_error(clients, unchanged, centralised(data)) < 1e-6
    assert relative_error(clients, completed_with(clients, change), centralised(data)) > 0.1


@pytest.fixture(scope="module")
def expected(coraca: Hypergraph) -> NDArray[np.float64]:
    return centralised(coraca)


@pytest.mark.parametrize(("count", "pairs"), [(3, 1929), (6, 2702), (9, 3089)])
def test_coraca_completed_is_centralised(
    coraca: Hypergraph, expected: NDArray[np.float64], count: int, pairs: int
) -> None:
    clients, traffic = partition(coraca, count), TrafficMeter()
    assert relative_error(clients, completed(clients, traffic), expected) < 1e-6
    sent = sum(len(at) for at in owners(coraca, clients).values() if len(at) > 1)
    assert sent == pytest.approx(pairs, rel=0.05)  # the mean over ten partitions that others drew
    assert traffic.bytes_up == traffic.bytes_down == 2 * sent * (8 + 4 * 1433)


@pytest.mark.parametrize("change", [with_local_degrees, with_local_sizes])
@pytest.mark.parametrize("count", [3, 9])
def test_coraca_needs_true_degrees_and_sizes(
    coraca: Hypergraph, expected: NDArray[np.float64], count: int, change: Substitute
) -> None:
    clients = partition(coraca, count)
    assert relative_error(clients, completed_with(clients, change), expected) > 0.1


def test_features_are_replaced_and_nothing_else(coraca: Hypergraph) -> None:

    federation = federation_of(coraca, partition(coraca, 3))
    kind = METHODS.named("fedhgn_hc")
    method = object.__new__(kind)
    method.hyper = kind.Hyper()
    changed = method.prepare_data(federation, TrafficMeter())
    for before, after in zip(federation.clients, changed.clients, strict=True):
        assert isinstance(after.features, np.ndarray)
        assert after.features.dtype == np.float32
        assert replace(after, features=before.features).__dict__ == before.__dict__


def as_released(data: Hypergraph, clients: Sequence[Client]) -> list[NDArray[np.float64]]:
    """Facts 3.3, hyperedge by hyperedge: foreign nodes' degrees count the client's hyperedges alone."""
    exact, result = centralised(data, layers=1), []
    for client in clients:
        own = set(client.ids.tolist())
        edges = [data.hyperedges[index] for index in range(len(data.hyperedges))]
        touching = [edge.tolist() for edge in edges if own & set(edge.tolist())]
        rows = data.features.astype(np.float64)
        for layer in range(2):
            if layer:
                rows = np.array([rows[node] if node in own else exact[node] for node in range(len(rows))])
            smoothed = np.zeros_like(rows)
            degree = {node: sum(node in edge for edge in touching) for edge in touching for node in edge}
            for edge in touching:
                mean = sum(rows[node] / np.sqrt(degree[node]) for node in edge) / len(edge)
                for node in edge:
                    smoothed[node] += mean / np.sqrt(degree[node])
            rows = smoothed
        result.append(rows[client.ids])
    return result


@settings(deadline=None, max_examples=60)
@given(partitioned())
def test_released_completion_truncates_foreign_degrees(case: tuple[Hypergraph, list[int]]) -> None:
    data, owner = case
    clients, traffic = clients_of(data, owner), TrafficMeter()
    rows = rows_of("local_hgnn_hc", federation_of(data, clients), traffic, completion="released")
    for part, expected in zip(rows, as_released(data, clients), strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-5)
    # Counted: a foreign neighbour's row and id once from its owner, and once to each client, a layer.
    members = [set(data.hyperedges[index].tolist()) for index in range(len(data.hyperedges))]
    asked = [
        set().union(*(edge for edge in members if edge & set(client.ids.tolist()))) - set(client.ids.tolist())
        for client in clients
    ]
    assert traffic.bytes_down == 2 * sum(map(len, asked)) * (8 + 4 * 3)
    assert traffic.bytes_up == 2 * len(set().union(*asked)) * (8 + 4 * 3)


def test_released_completion_has_no_least_upload() -> None:
    data = hypergraph(np.eye(4), [{0, 1, 2}, {2, 3}])
    federation = federation_of(data, clients_of(data, [0, 0, 1, 1]))
    with pytest.raises(NotApplicableError, match="raw features"):
        rows_of("fedhgn_hc", federation, completion="released", least_upload=2)


def test_parts_below_the_least_upload_stay_at_their_client() -> None:
    # Hyperedge {0, 1, 2}: A has 0 and 1, B has 2 alone. {3, 4, 5}: B has 3, C has 4 and 5. {2, 6}: B, C.
    data = hypergraph([[1], [2], [4], [8], [16], [32], [64]], [{0, 1, 2}, {3, 4, 5}, {2, 6}])
    clients, traffic = clients_of(data, [0, 0, 1, 1, 2, 2, 2]), Recorder()
    known = [client.hyperedges for client in clients if client.hyperedges is not None]
    rows = [client.dense() for client in clients]
    operators = [Propagation.of(own.members, len(x), own.sizes) for own, x in zip(known, rows, strict=True)]
    result = complete(known, operators, rows, traffic, 0, least_upload=2)
    assert [(ids.tolist(), sums.ravel().tolist()) for ids, sums in traffic.uploads] == [
        ([0], [3.0]),
        ([], []),
        ([1], [48.0]),
    ]
    assert [ids.tolist() for ids, _ in traffic.downloads] == [[0], [0, 1], [1]]
    # Node 2 has degree 2. A's sum lacks node 2; B adds its own part; {2, 6} is completed by nobody.
    two = 4 / np.sqrt(2)
    expected = [1, 1, ((3 + two) / 3 + two / 2) / np.sqrt(2), 56 / 3, 16, 16, 32]
    assert np.concatenate(result).ravel() == pytest.approx(expected)


def test_exchanges_are_counted_by_layer_and_coding() -> None:
    traffic = TrafficMeter()
    matrix = np.array([[0, 0, 0, 5], [0, 0, 0, 0], [0, 0, 0, 0]], np.float32)
    traffic.upload(np.array([7, 8, 9]), matrix, exchange=0)
    traffic.download(np.array([7, 8, 9]), np.ones((3, 4), np.float32), exchange=1)
    traffic.upload(np.ones(2, np.float32))
    # Non-zeros: a count for each of 3 rows and a place with the value 5; a full matrix is sent whole.
    assert traffic.exchanges().tolist() == [[[24 + 48, 0], [24 + 12 + 8, 0]], [[0, 24 + 48], [0, 24 + 48]]]
    assert (traffic.bytes_up, traffic.bytes_down) == (72 + 8, 72)


@pytest.mark.parametrize("method", ["fedhgn", "fedhgn_hc"])
def test_clients_that_share_nodes_are_not_applicable(method: str) -> None:
    data = hypergraph(np.eye(4), [{0, 1, 2}, {2, 3}])
    assignment = Assignment(
        (np.array([0, 1, 2]), np.array([2, 3])), (np.zeros(3, np.int8), np.zeros(2, np.int8))
    )
    with pytest.raises(NotApplicableError, match="share no node"):
        rows_of(method, federation_of(data, hypergraph_clients(data, assignment)))


@pytest.mark.parametrize("completion", ["exact", "released"])
def test_a_hyperedge_with_a_node_that_no_client_holds_cannot_be_completed(completion: str) -> None:
    data = hypergraph(np.eye(4), [{0, 1}, {1, 2, 3}])
    assignment = Assignment((np.array([0, 1]), np.array([2])), (np.zeros(2, np.int8), np.zeros(1, np.int8)))
    federation = federation_of(data, hypergraph_clients(data, assignment))
    with pytest.raises(NotApplicableError, match="hyperedge 1 has nodes that no client holds"):
        rows_of("fedhgn_hc", federation, completion=completion)
    rows_of("fedhgn", federation)  # its own nodes are enough
