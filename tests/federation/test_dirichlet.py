"""Clients by label-Dirichlet, and what those of a hypergraph know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from toy_data import random_graph, random_hypergraph

from bench.data import Graph, Hypergraph, Ragged
from bench.dataset import DATASETS
from bench.errors import RequestError
from bench.federation.build import build
from bench.federation.clients import known_hyperedges
from bench.federation.dirichlet import LabelDirichlet, label_dirichlet
from bench.federation.prepared import prepare
from bench.federation.types import TEST, TRAIN, UNUSED, VALIDATION

STUDY = (10.0, 20.0, 40.0)
"""FedHGN's split."""


class Scripted:
    """A stream whose permutations change nothing and whose Dirichlet draws are given."""

    def __init__(self, *weights: list[float]) -> None:
        self.weights = iter(weights)

    def permutation(self, items: Any) -> Any:
        return items

    def dirichlet(self, alpha: Any) -> Any:
        return np.array(next(self.weights))


def sizes(parts: list[Any], labels: Any) -> list[list[int]]:
    return [np.bincount(labels[part], minlength=labels.max() + 1).tolist() for part in parts]


LABELS = np.array([0] * 10 + [1] * 10)


@pytest.mark.parametrize(
    ("draws", "least", "expected"),
    [
        # Cuts are rounded down.
        (([0.5, 0.3, 0.2], [0.25, 0.25, 0.5]), 1, [[5, 2], [3, 3], [2, 5]]),
        # Cuts of class 0 at floor(9), floor(9.5): sizes 9, 0, 1. 9 >= 20 / 3, so class 1 is for the others.
        (([0.9, 0.05, 0.05], [0.9, 0.05, 0.05]), 1, [[9, 0], [0, 5], [1, 5]]),
        # Weights that vanish are replaced by equal ones.
        (([0.9, 0.05, 0.05], [1.0, 0.0, 0.0]), 1, [[9, 0], [0, 5], [1, 5]]),
        # The first draw gives 1 + 2 and 9 + 8 items, the second 6 + 6 and 4 + 4.
        (([0.1, 0.9], [0.2, 0.8], [0.6, 0.4], [0.6, 0.4]), 3, [[1, 2], [9, 8]]),
        (([0.1, 0.9], [0.2, 0.8], [0.6, 0.4], [0.6, 0.4]), 4, [[6, 6], [4, 4]]),
    ],
)
def test_the_deal_by_hand(draws: tuple[list[float], ...], least: int, expected: list[list[int]]) -> None:
    parts = label_dirichlet(LABELS, len(expected), 1.0, least, Scripted(*draws))  # type: ignore[arg-type]
    assert sizes(parts, LABELS) == expected
    assert all((np.diff(part) > 0).all() for part in parts)  # neighbours, in their order


def test_an_impossible_draw_is_given_up() -> None:
    with pytest.raises(RequestError, match="larger concentration"):
        label_dirichlet(LABELS, 10, 0.001, 2, np.random.default_rng(0))


# --- clients of hypergraphs ------------------------------------------------------------------------


def test_a_client_knows_its_own_members_and_the_true_sizes() -> None:
    lists = Ragged.of([np.array(nodes) for nodes in ([2, 0, 1], [3, 1], [5, 2], [4, 5], [0, 3])])
    known = known_hyperedges(lists, 6, np.array([2, 4, 5]))
    assert known.ids.tolist() == [0, 2, 3]
    assert [known.members[i].tolist() for i in range(3)] == [[0], [0, 2], [1, 2]]
    assert known.sizes.tolist() == [3, 2, 2]
    assert known.border.tolist() == [True, False, False]


@pytest.mark.parametrize("clients", [1, 4])
def test_clients_share_the_nodes_and_split_them_inside(use_toy: Callable[..., object], clients: int) -> None:
    data = random_hypergraph(nodes=121, seed=1)
    use_toy(data)
    federation = build("toy", "label-dirichlet1", clients, 3, STUDY)
    assert sorted(np.concatenate([client.ids for client in federation.clients]).tolist()) == list(range(121))
    for client in federation.clients:
        nodes = len(client.ids)
        assert nodes >= 10
        assert (np.diff(client.ids) > 0).all()
        used = (int(0.1 * nodes), int(0.2 * nodes), int(0.4 * nodes))
        assert (client.count(TRAIN), client.count(VALIDATION), client.count(TEST)) == used
        assert client.count(UNUSED) == nodes - sum(used)
        assert client.hyperedges is not None
        own = set(client.ids.tolist())
        touched = [j for j in range(len(data.hyperedges)) if own & set(data.hyperedges[j].tolist())]
        assert client.hyperedges.ids.tolist() == touched
        for row, j in enumerate(touched):
            members = client.ids[client.hyperedges.members[row]]
            assert set(members.tolist()) == own & set(data.hyperedges[j].tolist())
            assert client.hyperedges.sizes[row] == len(data.hyperedges[j])


# Facts 1.4: training nodes of a client, at the study's largest number of clients.
@pytest.mark.parametrize(
    ("name", "clients", "training"),
    [("news20", 9, 18), ("facebook", 8, 22), ("dblp4k", 9, 27), ("imdb4k", 9, 28), ("coraca", 9, 30)],
)
def test_training_nodes_of_a_client(
    at_hand: Callable[[str], None], name: str, clients: int, training: int
) -> None:
    at_hand(name)
    split = DATASETS.named(name).protocol.split
    per_mille = round(10 * split[0])
    assignment = LabelDirichlet().draw(prepare(name).data, clients, 0, split)
    counts = [int((roles == TRAIN).sum()) for roles in assignment.roles]
    assert counts == [len(ids) * per_mille // 1000 for ids in assignment.ids]
    assert np.median(counts) == training


@pytest.mark.parametrize("family", ["graph", "hypergraph"])
def test_an_isolated_client_is_refused(use_toy: Callable[..., object], family: str) -> None:
    data = random_hypergraph()
    drawn = LabelDirichlet().draw(data, 3, 0, STUDY)
    inside = [ids.tolist() for client, ids in enumerate(drawn.ids) if client != 1]
    pairs = [np.array([ids[place], ids[place + 1]]) for ids in inside for place in range(5)]
    chosen: Graph | Hypergraph = replace(data, hyperedges=Ragged.of(pairs))
    if family == "graph":
        edges = np.zeros((2, 0), np.int64)
        chosen = Graph(data.features, data.labels, edges, data.classes, Ragged.of(pairs))
    use_toy(chosen)
    reason = f"client 1 of 3 is isolated: none of its {len(drawn.ids[1])} nodes lies in a hyperedge"
    with pytest.raises(RequestError, match=reason):
        build("toy", "label-dirichlet", 3, 0, STUDY)
    use_toy(replace(chosen, hyperedges=Ragged.of([*pairs, drawn.ids[1][-2:]])))
    assert len(build("toy", "label-dirichlet", 3, 0, STUDY)) == 3


def test_a_class_that_no_client_can_train_is_refused_by_this_scenario(use_toy: Callable[..., object]) -> None:
    data = random_graph(60)
    use_toy(replace(data, classes=data.classes + 1))  # a class without any node
    assert len(build("toy", "non-overlapping", 2, 0, (40, 30, 30))) == 2
    with pytest.raises(RequestError, match="class 4 of 5 has no training node at any of 2 clients"):
        build("toy", "label-dirichlet", 2, 0, (40, 30, 30))


def test_members_may_be_repeated_where_the_data_set_declares_it(use_toy: Callable[..., object]) -> None:
    data = random_hypergraph()
    plain = [data.hyperedges[j] for j in range(len(data.hyperedges))]
    twice = [np.append(plain[0], plain[0][0]), *plain[1:]]
    use_toy(replace(data, hyperedges=Ragged.of(twice), multisets=True))
    federation = build("toy", "label-dirichlet", 3, 0, STUDY)
    known = [client.hyperedges for client in federation.clients]
    assert sum(int(one.members.sizes[one.ids == 0].sum()) for one in known if one) == len(twice[0])
    assert {int(size) for one in known if one for size in one.sizes[one.ids == 0]} == {len(twice[0])}
    use_toy(data)
    other = build("toy", "label-dirichlet", 3, 0, STUDY)
    assert federation.hash != other.hash
    for one, two in zip(federation.clients, other.clients, strict=True):
        np.testing.assert_array_equal(one.ids, two.ids)
        np.testing.assert_array_equal(one.roles, two.roles)
