from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from federation_toys import random_hypergraph

from bench.data import Hypergraph, Ragged
from bench.federation.build import build
from bench.federation.hypergraph import known_hyperedges
from bench.federation.statistics import hypergraph_statistics
from bench.federation.types import TEST, TRAIN, UNUSED, VALIDATION


def test_a_client_knows_its_own_members_and_the_true_sizes() -> None:
    lists = Ragged.of([np.array(nodes) for nodes in ([2, 0, 1], [3, 1], [5, 2], [4, 5], [0, 3])])
    hypergraph = Hypergraph(np.zeros((6, 1), np.float32), np.zeros(6, np.int64), lists, 1)
    known = known_hyperedges(hypergraph.hyperedges, len(hypergraph.labels), np.array([2, 4, 5]))
    assert known.ids.tolist() == [0, 2, 3]
    assert [known.members[i].tolist() for i in range(3)] == [[0], [0, 2], [1, 2]]
    assert known.sizes.tolist() == [3, 2, 2]
    assert known.border.tolist() == [True, False, False]


def test_clients_share_the_nodes_and_split_them_inside(use_toy: Callable[..., object]) -> None:
    data = random_hypergraph(nodes=121)
    use_toy(data)
    federation = build("toy", "label-dirichlet1", 4, 3, (10, 20, 40))
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


def test_one_client_holds_everything(use_toy: Callable[..., object]) -> None:
    data = random_hypergraph()
    use_toy(data)
    (client,) = build("toy", "label-dirichlet", 1, 0, (10, 20, 40)).clients
    assert client.ids.tolist() == list(range(120))
    assert client.hyperedges is not None
    assert len(client.hyperedges.ids) == len(data.hyperedges)
    assert not client.hyperedges.border.any()


def test_every_client_and_every_seed_has_a_split_of_its_own(use_toy: Callable[..., object]) -> None:
    use_toy(random_hypergraph())
    roles = [build("toy", "label-dirichlet", 1, seed, (10, 20, 40)).clients[0].roles for seed in range(3)]
    assert not np.array_equal(roles[0], roles[1])
    assert not np.array_equal(roles[1], roles[2])
    pairs = (build("toy", "label-dirichlet10", 2, seed, (10, 20, 40)).clients for seed in range(200))
    one, two = next(pair for pair in pairs if len(pair[0].ids) == len(pair[1].ids))
    assert not np.array_equal(one.roles, two.roles)


# Mean and spread over ten simulated partitions in the facts on FedHGN.
@pytest.mark.parametrize(("clients", "mean", "spread"), [(3, 807, 9), (6, 896, 9), (9, 921, 8)])
def test_border_hyperedges_of_coraca(
    at_hand: Callable[[str], None], clients: int, mean: float, spread: float
) -> None:
    at_hand("coraca")
    found = [
        hypergraph_statistics(build("coraca", "label-dirichlet", clients, seed, (10, 20, 40)))[
            "border_hyperedges"
        ]
        for seed in range(5)
    ]
    assert abs(np.mean(np.array(found, float)) - mean) < 1.5 * spread
