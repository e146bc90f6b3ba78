from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pymetis
import pytest
from toy_data import random_graph

from bench.data import Graph
from bench.errors import RequestError
from bench.federation.build import build
from bench.federation.clients import assigned_clients
from bench.federation.graph import NonOverlapping, Overlapping, metis_parts, metis_seed
from bench.federation.types import TEST, TRAIN, VALIDATION

PAPER = (40.0, 30.0, 30.0)


def brute_force_edges(graph: Graph, ids: np.ndarray) -> list[list[int]]:
    edges = {(int(u), int(v)) for u, v in graph.edges.T}
    return sorted([i, j] for i, u in enumerate(ids) for j, v in enumerate(ids) if (int(u), int(v)) in edges)


def test_non_overlapping_clients_are_the_induced_subgraphs_of_a_partition() -> None:
    graph = random_graph(200)
    assignment = NonOverlapping().draw(graph, 7, 123, PAPER)
    parts = metis_parts(graph, 7, 123)
    clients = assigned_clients(graph, assignment)
    assert sorted(np.concatenate(assignment.ids).tolist()) == list(range(200))
    for number, client in enumerate(clients):
        assert client.ids.tolist() == [node for node in range(200) if parts[node] == number]
        assert client.edges is not None
        assert client.edges.T.tolist() == brute_force_edges(graph, client.ids)
        assert client.labels.tolist() == [int(graph.labels[node]) for node in client.ids]
        assert np.array_equal(client.features, graph.features[client.ids])


def test_overlapping_clients_are_half_samples_of_the_parts_in_drawing_order() -> None:
    graph = random_graph(203)
    assignment = Overlapping().draw(graph, 15, 123, PAPER)
    parts = metis_parts(graph, 3, 123)
    for number, client in enumerate(assigned_clients(graph, assignment)):
        assert set(parts[client.ids].tolist()) == {number // 5}
        assert len(client.ids) == len(set(client.ids.tolist())) == (parts == number // 5).sum() // 2
        assert client.edges is not None
        assert client.edges.T.tolist() == brute_force_edges(graph, client.ids)
    drawn = [ids.tolist() for ids in assignment.ids]
    assert any(ids != sorted(ids) for ids in drawn)
    assert len({tuple(sorted(ids)) for ids in drawn}) == 15


def test_the_split_is_drawn_once_on_the_whole_graph() -> None:
    graph = random_graph(205)
    role_of: dict[int, set[int]] = {}
    for scenario, clients in ((NonOverlapping(), 4), (NonOverlapping(), 8), (Overlapping(), 10)):
        assignment = scenario.draw(graph, clients, 9, PAPER)
        for ids, roles in zip(assignment.ids, assignment.roles, strict=True):
            for node, role in zip(ids.tolist(), roles.tolist(), strict=True):
                role_of.setdefault(node, set()).add(role)
    assert all(len(roles) == 1 for roles in role_of.values())
    whole = [role for roles in role_of.values() for role in roles]
    # 0.4 * 205 = 82 train, round(61.5) = 62 test, 61 validate.
    assert [whole.count(role) for role in (TRAIN, TEST, VALIDATION)] == [82, 62, 61]


@pytest.mark.parametrize(("scenario", "clients"), [(NonOverlapping(), 6), (Overlapping(), 10)])
def test_only_the_partition_seed_decides(scenario: NonOverlapping | Overlapping, clients: int) -> None:
    graph = random_graph(1000)  # METIS draws nothing on much smaller ones
    first = scenario.draw(graph, clients, 1, PAPER)
    np.random.seed(4)  # noqa: NPY002 - the global generator must not matter
    state = str(np.random.get_state())  # noqa: NPY002
    second = scenario.draw(graph, clients, 1, PAPER)
    other = scenario.draw(graph, clients, 2, PAPER)
    assert str(np.random.get_state()) == state  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(first.ids, second.ids, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(first.roles, second.roles, strict=True))
    assert not np.array_equal(np.concatenate(first.roles), np.concatenate(other.roles))
    assert not np.array_equal(np.concatenate(first.ids), np.concatenate(other.ids))
    assert scenario.recipe(2)["options"] == {"seed": metis_seed(2)}


@pytest.mark.parametrize(("clients", "advice"), [(1, "use 5"), (12, "use 10"), (34, "use 35")])
def test_overlapping_needs_a_multiple_of_five(clients: int, advice: str) -> None:
    with pytest.raises(RequestError, match=f"5 .* {clients}.*{advice}"):
        Overlapping().draw(random_graph(50), clients, 1, PAPER)


def test_empty_parts_are_refused(use_toy: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    filled = pymetis.GraphPartition(0, [0, 3] * 20)
    monkeypatch.setattr(pymetis, "part_graph", lambda *args, **options: filled)
    use_toy(random_graph(40))
    for scenario, clients in (("non-overlapping", 4), ("overlapping", 20)):
        with pytest.raises(RequestError, match="has 0 items and none of them to train on; ask for fewer"):
            build("toy", scenario, clients, 1, PAPER)
