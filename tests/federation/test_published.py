"""The scenario of clients that papers published."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from toy_data import random_graph

from bench.data import PublishedParts
from bench.errors import RequestError
from bench.federation.build import build
from bench.federation.published import Published, legacy_permutation
from bench.federation.statistics import clustering
from bench.federation.types import TEST, TRAIN, VALIDATION

FEDPUB = (20.0, 40.0, 40.0)
FEDSHEAFHN = (40.0, 30.0, 30.0)


@pytest.mark.parametrize("seed", [0, 123, 2**32 - 1])
@pytest.mark.parametrize("items", [1, 2, 7, 2485])
def test_the_legacy_permutation_is_torchs(items: int, seed: int) -> None:
    expected = torch.randperm(items, generator=torch.Generator().manual_seed(seed))
    assert legacy_permutation(items, seed).tolist() == expected.tolist()


@pytest.mark.parametrize(("clients", "edges", "printed"), [(10, 890.8, 0.259), (20, 421.6, 0.263)])
def test_coras_clients_have_the_statistics_that_the_papers_print(
    clients: int, edges: float, printed: float
) -> None:
    federation = build("cora", "published", clients, 123, FEDPUB, ())
    members = [client.edges for client in federation.clients if client.edges is not None]
    assert np.mean([part.shape[1] for part in members]) == pytest.approx(edges, abs=1e-9)
    sizes = [len(client.ids) for client in federation.clients]
    means = [clustering(part, size) for part, size in zip(members, sizes, strict=True)]
    assert round(float(np.mean(means)), 3) == printed
    assert sorted(np.concatenate([client.ids for client in federation.clients]).tolist()) == list(range(2485))


def test_fedpubs_split_is_its_own_whatever_the_seed() -> None:
    one, other = (build("cora", "published", 5, seed, FEDPUB, ()) for seed in (123, 7))
    assert one.hash == other.hash
    counts = [sum(client.count(role) for client in one.clients) for role in (TRAIN, VALIDATION, TEST)]
    assert counts == [497, 994, 994]


def test_fedsheafhns_split_is_one_permutation_of_torch_over_the_graph() -> None:
    federation = build("cora", "published", 20, 123, FEDSHEAFHN, ())
    torch.manual_seed(123)
    order = torch.randperm(2485).numpy()
    for client in federation.clients:
        assert set(client.ids[client.roles == TRAIN]) <= set(order[:994].tolist())
        assert set(client.ids[client.roles == TEST]) <= set(order[994 : 994 + 746].tolist())
        assert set(client.ids[client.roles == VALIDATION]) <= set(order[994 + 746 :].tolist())
    assert build("cora", "published", 20, 7, FEDSHEAFHN, ()).hash != federation.hash


def test_parts_are_the_clients_in_the_order_of_their_numbers() -> None:
    roles = np.array([TRAIN, TEST, TRAIN, VALIDATION], np.int8)
    parts = PublishedParts(np.array([1, 0, 1, 0]), roles, (50.0, 25.0, 25.0))
    graph = replace(random_graph(4), published={2: parts})
    drawn = Published().draw(graph, 2, 0, (50.0, 25.0, 25.0))
    assert [ids.tolist() for ids in drawn.ids] == [[1, 3], [0, 2]]
    assert [part.tolist() for part in drawn.roles] == [[TEST, VALIDATION], [TRAIN, TRAIN]]


@pytest.mark.parametrize(
    ("dataset", "clients", "expected"), [("cora", 30, "5, 10, 20"), ("citeseer", 10, "no")]
)
def test_other_clients_are_refused_in_one_line(dataset: str, clients: int, expected: str) -> None:
    with pytest.raises(RequestError, match=expected) as refusal:
        build(dataset, "published", clients, 123, FEDPUB, ())
    assert "\n" not in str(refusal.value)
