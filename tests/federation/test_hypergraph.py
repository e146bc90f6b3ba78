from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toy_data import random_graph, random_hypergraph

from bench.cli.main import main
from bench.data import Graph, Hypergraph, Ragged
from bench.dataset import DATASETS
from bench.errors import RequestError
from bench.federation.build import assemble, build
from bench.federation.clients import known_hyperedges
from bench.federation.dirichlet import LabelDirichlet
from bench.federation.exchange import export_federation
from bench.federation.prepared import prepare
from bench.federation.scenario import Assignment
from bench.federation.splits import floored_roles
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
    data = random_hypergraph(nodes=121, seed=1)
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


# --- the study's data, where it is at hand ---------------------------------------------------------


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


def test_a_share_of_less_than_a_percent_is_exact() -> None:
    for items in (125, 250, 1125, 2809, 22_470):
        roles = floored_roles(items, (0.8, 20, 40), np.random.default_rng(0))
        assert (roles == TRAIN).sum() == items * 8 // 1000


# --- bad input -------------------------------------------------------------------------------------


def refused(use_toy: Callable[..., object], home: Path, data: Graph | Hypergraph) -> str:
    """The one line with which the command line refuses to draw three clients; nothing is written."""
    use_toy(data)
    target = home.parent / "clients.npz"
    request = ["-d", "toy", "-s", "label-dirichlet", "-k", "3", "--split", "10", "20", "40"]
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr), pytest.raises(SystemExit) as caught:
        main(["data", "export", str(target), *request])
    assert caught.value.code == 2
    assert not target.exists()
    assert not [path for path in home.rglob("*") if path.is_file()]
    line = stderr.getvalue()
    assert line.startswith("bench: ")
    assert line.count("\n") == 1
    return line


def with_hyperedges(lists: list[list[int]], nodes: int = 120) -> Hypergraph:
    data = random_hypergraph(nodes)
    return replace(data, hyperedges=Ragged.of([np.array(members) for members in lists]))


@pytest.mark.parametrize("family", ["graph", "hypergraph"])
def test_an_isolated_client_is_refused(use_toy: Callable[..., object], suite_home: Path, family: str) -> None:
    data = random_hypergraph()
    drawn = LabelDirichlet().draw(data, 3, 0, (10, 20, 40))
    inside = [ids.tolist() for client, ids in enumerate(drawn.ids) if client != 1]
    lists = Ragged.of([np.array([ids[place], ids[place + 1]]) for ids in inside for place in range(5)])
    hypergraph = replace(data, hyperedges=lists)
    graph = Graph(data.features, data.labels, np.zeros((2, 0), np.int64), data.classes, lists)
    chosen = graph if family == "graph" else hypergraph
    use_toy(chosen)
    with pytest.raises(RequestError, match="client 1 of 3 is isolated") as caught:
        build("toy", "label-dirichlet", 3, 0, (10, 20, 40))
    assert f"none of its {len(drawn.ids[1])} nodes lies in a hyperedge" in str(caught.value)
    one_more = Ragged.of([*(lists[j] for j in range(len(lists))), drawn.ids[1][-2:]])
    use_toy(replace(chosen, hyperedges=one_more))
    assert len(build("toy", "label-dirichlet", 3, 0, (10, 20, 40))) == 3


def test_imported_clients_are_checked_as_drawn_ones(use_toy: Callable[..., object], suite_home: Path) -> None:
    nodes = np.array_split(np.arange(120), 3)
    roles = [np.resize(np.array([TRAIN, VALIDATION, TEST], np.int8), 40) for _ in nodes]
    path = suite_home.parent / "clients.npz"
    inside = Ragged.of([np.array([40, 41]), np.array([80, 81])])  # none of client 0's nodes
    isolated = replace(random_hypergraph(), hyperedges=inside)
    for data, reason in (
        (isolated, "client 0 of 3 is isolated: none of its 40 nodes lies in a hyperedge"),
        (with_rare_class(0), "class 1 of 3 has no training node at any of 3 clients"),
    ):
        use_toy(data)
        provenance = {"partition_seed": 0, "split": (34, 33, 33)}
        assignment = Assignment(tuple(nodes), tuple(roles))
        export_federation(assemble(prepare("toy"), "label-dirichlet", assignment, provenance), path)
        stderr = io.StringIO()
        with contextlib.redirect_stderr(stderr), pytest.raises(SystemExit) as caught:
            main(["data", "import", str(path)])
        assert caught.value.code == 2
        assert reason in stderr.getvalue()
        assert stderr.getvalue().count("\n") == 1
        assert not [kept for kept in suite_home.rglob("*") if kept.is_file()]


def with_rare_class(nodes: int) -> Hypergraph:
    """Class 1 is that of the first ``nodes`` nodes alone."""
    data = random_hypergraph()
    return replace(
        data, labels=np.where(np.arange(120) < nodes, 1, np.where(data.labels == 1, 0, data.labels))
    )


def test_a_class_that_no_client_can_train_is_refused(use_toy: Callable[..., object]) -> None:
    data = with_rare_class(3)
    use_toy(data)
    refusals = []
    for seed in range(8):
        try:
            federation = build("toy", "label-dirichlet", 2, seed, (10, 20, 40))
        except RequestError as error:
            refusals.append(str(error))
        else:
            assert any((client.labels[client.roles == TRAIN] == 1).any() for client in federation.clients)
    assert 0 < len(refusals) < 8
    start = "class 1 of 3 has no training node at any of 2 clients"
    assert all(message.startswith(start) for message in refusals)


def test_the_class_check_leaves_other_scenarios_alone(use_toy: Callable[..., object]) -> None:
    data = random_graph(60)
    use_toy(replace(data, classes=data.classes + 1))  # a class without any node
    assert len(build("toy", "non-overlapping", 2, 0, (40, 30, 30))) == 2
    with pytest.raises(RequestError, match="class 4 of 5 has no training node"):
        build("toy", "label-dirichlet", 2, 0, (40, 30, 30))


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([[0, 1], [3, 120]], "hyperedge 1 has a member outside 0 to 119"),
        ([[0, 1], [2, 3], [-1, 4]], "hyperedge 2 has a member outside 0 to 119"),
        ([[0, 1], [4]], "hyperedge 1 has fewer than 2 members"),
        ([[0, 1], []], "hyperedge 1 has fewer than 2 members"),
        ([[0, 1], [7, 2, 7]], "hyperedge 1 names a member twice"),
        ([[0, 1, 2], [5, 6], [2, 0, 1]], "hyperedge 2 has the members of an earlier one"),
    ],
)
def test_wrong_hyperedges_are_refused(
    use_toy: Callable[..., object], suite_home: Path, lists: list[list[int]], message: str
) -> None:
    assert f"data set toy: {message}" in refused(use_toy, suite_home, with_hyperedges(lists))


def test_members_may_be_repeated_where_the_data_set_declares_it(use_toy: Callable[..., object]) -> None:
    data = random_hypergraph()
    plain = [data.hyperedges[j] for j in range(len(data.hyperedges))]
    twice = [np.append(plain[0], plain[0][0]), *plain[1:]]
    declared = replace(data, hyperedges=Ragged.of(twice), multisets=True)
    use_toy(declared)
    federation = build("toy", "label-dirichlet", 3, 0, (10, 20, 40))
    known = [client.hyperedges for client in federation.clients]
    assert sum(int(one.members.sizes[one.ids == 0].sum()) for one in known if one) == len(twice[0])
    assert {int(size) for one in known if one for size in one.sizes[one.ids == 0]} == {len(twice[0])}
    use_toy(data)
    other = build("toy", "label-dirichlet", 3, 0, (10, 20, 40))
    assert federation.hash != other.hash
    for one, two in zip(federation.clients, other.clients, strict=True):
        np.testing.assert_array_equal(one.ids, two.ids)
        np.testing.assert_array_equal(one.roles, two.roles)


def test_hyperedges_of_a_graph_are_checked(use_toy: Callable[..., object], suite_home: Path) -> None:
    data = replace(random_graph(120), hyperedges=Ragged.of([np.array([5]), np.array([0, 200])]))
    assert "hyperedge 1 has a member outside 0 to 119" in refused(use_toy, suite_home, data)
