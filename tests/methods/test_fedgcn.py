"""FedGCN 0-hop and 2-hop: whose features and which edges a client gets, by hand and by definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from split_graphs import Pairs, edges_of, fed, random_split, same_run, split_graph, without_cross_edges
from toy_federations import make_spec, play, random_federation

from bench.engine.execute import run
from bench.errors import NotApplicableError
from bench.federation.foreign import Holders
from bench.federation.traffic import TrafficMeter
from bench.federation.types import UNUSED, Federation
from bench.spec import Newcomers

A, B, C = [0, 1], [2, 3, 4], [5, 6, 7]
PAIRS = [(0, 1), (1, 2), (1, 5), (2, 3), (3, 4), (5, 6), (2, 5), (3, 5), (3, 6), (4, 7)]
"""Inside: 01, 23, 34, 56. Between A and B: 12; A and C: 15; B and C: 25, 35, 36, 47."""


@pytest.fixture
def three() -> Federation:
    features = np.diag(np.arange(1, 9))
    return split_graph(features, PAIRS, [0] * 2 + [1] * 3 + [2] * 3)


def test_messages_by_hand(three: Federation) -> None:
    """Foreign nodes 4, 5, 5 of 8 features; edges among foreign nodes: A's 23 56 25 35, B's 01 56 15, ..."""
    traffic = TrafficMeter()
    fed("fedgcn_2hop", three, traffic)
    down, links_down = 4 + 5 + 5, 4 + 3 + 4  # C's: 01 12 23 34
    up, links_up = 8, 8  # all nodes, and all these edges (01, 23 and 56 twice), once each
    assert traffic.bytes_up == up * (8 + 8 * 4) + links_up * 16
    assert traffic.bytes_down == down * (8 + 8 * 4) + links_down * 16
    # a row has one word: its number of non-zeros, its place and its value
    assert traffic.exchanges().tolist() == [
        [
            [up * 40 + links_up * 16, down * 40 + links_down * 16],
            [up * (8 + 4 + 8) + links_up * 16, down * (8 + 4 + 8) + links_down * 16],
        ],
    ]


def by_definition(pairs: Pairs, owner: dict[int, int], client: int) -> tuple[set[int], set[frozenset[int]]]:
    """Node set and edges of the released 2-hop graph, set by set over the whole edge list."""
    own = {v for v, holder in owner.items() if holder == client}
    near = own | {u for pair in pairs for u in pair if own & set(pair)}
    inside = [pair for pair in pairs if owner[pair[0]] == owner[pair[1]]]
    reached = near | {u for pair in inside for u in pair if near & set(pair)}
    return reached, {frozenset(pair) for pair in pairs if set(pair) <= reached and near & set(pair)}


@pytest.mark.parametrize("seed", range(4))
def test_two_hops_are_those_of_the_definition(seed: int) -> None:
    federation, features, pairs = random_split(seed)
    owner = {int(v): k for k, client in enumerate(federation.clients) for v in client.ids}
    some_left_out = False
    for number, client in enumerate(fed("fedgcn_2hop", federation)):
        nodes, kept = by_definition(pairs, owner, number)
        assert sorted(client.ids.tolist()) == sorted(nodes)
        assert edges_of(client) == kept
        assert client.ids[: len(federation.clients[number].ids)].tolist() == [
            v for v in owner if owner[v] == number
        ]
        np.testing.assert_array_equal(client.features.toarray(), features[client.ids])  # type: ignore[union-attr]
        own = federation.clients[number]
        foreign = len(client.ids) - len(own.ids)
        assert client.labels.tolist() == [*own.labels.tolist(), *[-1] * foreign]
        assert client.roles.tolist() == [*own.roles.tolist(), *[UNUSED] * foreign]
        assert client.roles.dtype == own.roles.dtype
        some_left_out |= len(nodes) < len(owner)
    assert some_left_out


@pytest.mark.parametrize(
    ("plain", "extended", "model"),
    [("fedgcn_0hop", "fedgcn_2hop", "gcn2"), ("fedsage", "fedsage_plus_standin", "sage")],
)
@pytest.mark.parametrize("alone", [True, False])
def test_without_cross_edges_nothing_is_exchanged(alone: bool, plain: str, extended: str, model: str) -> None:
    federation = without_cross_edges(0, alone)
    near, far = (
        play(make_spec(method, federation, client={"model": model}), federation)
        for method in (plain, extended)
    )
    assert same_run(near, far)
    assert near.traffic.bytes_up == far.traffic.bytes_up
    assert len(far.traffic.exchanges()) == 0


def test_holders_find_nodes_and_refuse_others() -> None:
    federation, _, _ = random_split(2)
    holders = Holders.of(federation.clients, "it")
    asked = np.array([17, 3, 3, 39])
    client, position = holders.find(asked)
    ids = [federation.clients[k].ids[p] for k, p in zip(client, position, strict=True)]
    assert ids == asked.tolist()
    for unknown in (40, -1):
        with pytest.raises(NotApplicableError, match=f"node {unknown} is a neighbour, but no client"):
            holders.find(np.array([0, unknown]))


EXCHANGING = ("fedgcn_2hop", "fedsage_plus_standin", "fedcog")


@pytest.mark.parametrize("method", EXCHANGING)
def test_clients_that_cannot_exchange_are_refused(method: str) -> None:
    """Without cross edges, with a node at two clients, and newcomers, whose neighbours are elsewhere."""
    blind = random_federation()
    refused = run(make_spec(method, blind), blind)
    assert refused.state == "not_applicable"
    assert refused.reason == (
        f"{method} needs clients that know their neighbours at other clients: "
        f"a data set with hyperedges such as cora-whole, not toy"
    )
    federation, _, _ = random_split(3)
    twice = replace(federation, clients=(*federation.clients[:3], federation.clients[0]))
    shared = run(make_spec(method, twice), twice)
    assert shared.state == "not_applicable"
    assert shared.reason is not None
    assert shared.reason.startswith(f"{method} needs clients that share no node, but ")
    late = make_spec(method, federation).model_copy(update={"newcomers": Newcomers(ratio=0.25)})
    assert run(late, federation).state == "not_applicable"
