from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from toy_data import random_graph, random_hypergraph

from bench.data import Ragged
from bench.federation.identity import data_checksum, features_checksum, federation_hash
from bench.federation.types import Client, ClientHyperedges


def make_client(seed: int) -> Client:
    rng = np.random.default_rng(seed)
    nodes = 6
    members = Ragged.of([np.array([0, 2]), np.array([1]), np.array([3, 4, 5])])
    return Client(
        ids=rng.permutation(100)[:nodes],
        labels=rng.integers(0, 3, nodes),
        roles=rng.integers(0, 3, nodes).astype(np.int8),
        features=np.zeros((nodes, 2), np.float32),
        edges=np.array([[0, 1, 1, 2], [1, 0, 2, 1]], np.int64),
        hyperedges=ClientHyperedges(np.array([4, 7, 9]), members, np.array([2, 3, 5])),
        cross_edges=np.array([[0, 4, 5], [71, 3, 90]], np.int64),
    )


BASE: dict[str, Any] = {
    "dataset": "toy",
    "scenario": "non-overlapping",
    "classes": 3,
    "clients": (make_client(0), make_client(1)),
    "features": "ab" * 32,
}


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "toys"},
        {"scenario": "overlapping"},
        {"classes": 4},
        {"features": "ac" * 32},
        {"clients": BASE["clients"][::-1]},
        {"clients": BASE["clients"][:1]},
        {"dataset": "toynon-", "scenario": "overlapping"},
    ],
    ids=str,
)
def test_every_part_of_a_federation_is_in_its_hash(change: dict[str, Any]) -> None:
    again = BASE | {"clients": (make_client(0), make_client(1))}
    assert federation_hash(**(BASE | change)) != federation_hash(**BASE) == federation_hash(**again)


HYPEREDGES = ("hyperedges.ids", "hyperedges.sizes", "members.values", "members.offsets")
FIELDS = ("ids", "labels", "roles", "edges", "cross_edges", *HYPEREDGES)


@settings(deadline=None)
@given(st.sampled_from(FIELDS), st.integers(0, 1), st.integers(0, 100), st.sampled_from([-1, 1, 2]))
def test_any_changed_number_of_a_client_changes_the_hash(field: str, which: int, at: int, by: int) -> None:
    clients = [make_client(0), make_client(1)]
    client = clients[which]
    hyperedges = client.hyperedges
    assert hyperedges is not None
    owner = {"hyperedges": hyperedges, "members": hyperedges.members}.get(field.split(".")[0], client)
    array = getattr(owner, field.split(".")[-1])
    array.reshape(-1)[at % array.size] += by
    assert federation_hash(**(BASE | {"clients": clients})) != federation_hash(**BASE)


def test_the_hash_does_not_depend_on_how_arrays_are_stored() -> None:
    client = make_client(0)
    assert client.edges is not None
    foreign = replace(
        client,
        ids=client.ids.astype(">i8"),
        labels=client.labels.astype(np.int32),
        roles=client.roles.astype(np.int64),
        edges=np.asfortranarray(client.edges),
    )
    assert federation_hash(**(BASE | {"clients": [client]})) == federation_hash(
        **(BASE | {"clients": [foreign]})
    )


def test_equal_sparse_features_have_one_checksum() -> None:
    canonical = sparse.csr_matrix(np.array([[0, 1, 2], [3, 0, 0]], np.float32))
    shuffled = sparse.csr_matrix(
        (np.array([2, 1, 1, 2], np.float32), np.array([2, 1, 0, 0]), np.array([0, 2, 4])), shape=(2, 3)
    )
    assert not shuffled.has_canonical_format
    assert features_checksum(shuffled) == features_checksum(canonical)
    assert shuffled.indices.tolist() == [2, 1, 0, 0]  # the caller's matrix is left alone


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_matrix])
def test_any_changed_feature_and_another_shape_change_the_checksum(store: Any) -> None:
    values = np.arange(20, dtype=np.float32).reshape(4, 5)
    variants = [values, values.reshape(5, 4), np.pad(values, ((0, 0), (0, 1)))]
    for at in range(20):
        changed = values.copy()
        changed.reshape(-1)[at] += 0.5
        variants.append(changed)
    assert len({features_checksum(store(variant)) for variant in variants}) == len(variants)


def test_the_data_checksum_covers_labels_and_edges() -> None:
    graph, hypergraph = random_graph(30), random_hypergraph(30, 10)
    moved = hypergraph.hyperedges.values.copy()
    moved[0] = (moved[0] + 1) % 30
    variants = [
        graph,
        replace(graph, labels=graph.labels[::-1]),
        replace(graph, edges=graph.edges[:, 2:]),
        replace(graph, classes=5),
        hypergraph,
        replace(hypergraph, hyperedges=Ragged(hypergraph.hyperedges.offsets, moved)),
    ]
    sums = [data_checksum(data, features_checksum(data.features)) for data in variants]
    assert len(set(sums)) == len(variants)
