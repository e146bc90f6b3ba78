"""The data sets of the FedHGN study: against independent arrays, known counts and tables made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from bench.data import Graph, Hypergraph
from bench.dataset import DATASETS
from bench.datasets._fedhgn import CleanedHypergraph

from .raw_data import load_whole, sets_of, sources_of

ARRAYS = Path(__file__).resolve().parents[3] / "shared" / "data" / "hypergraph"

TRAINING = {
    "coraca": 10,
    "dblp4k": 6,
    "dblp4k-repeats": 6,
    "imdb4k": 6,
    "news20": 1,
    "cora-whole": 10,
    "citeseer-whole": 10,
    "facebook": 0.8,
}

WHOLE = ("cora-whole", "citeseer-whole", "facebook")


@pytest.mark.parametrize("name", TRAINING)
def test_protocol_of_the_study(name: str) -> None:
    kind = DATASETS.named(name)
    protocol = kind.protocol
    assert (protocol.rounds, protocol.local_epochs) == (200, 3)
    assert protocol.split == (TRAINING[name], 20, 40)
    assert (protocol.initial, protocol.evaluate) == ("common", "epoch")
    simple = name in WHOLE
    assert kind.family == ("graph" if simple else "hypergraph")
    assert kind.scenarios == (("label-dirichlet", "non-overlapping") if simple else ("label-dirichlet",))
    assert (kind.client.model, kind.client.hidden) == ("gcn" if simple else "hgnn", 16)


# Facts 1.1 and the data's own notes: nodes, features, hyperedges listed (before cleaning) and used, largest,
# nodes in one, nodes of each class.
CLEANED = {
    "coraca": (2708, 1433, 1072, 970, 43, 2388, [418, 351, 180, 818, 298, 426, 217]),
    "dblp4k": (4057, 334, 22_051, 6242, 1174, 4057, [1197, 745, 1109, 1006]),
    "dblp4k-repeats": (4057, 334, 22_051, 6338, 2538, 4057, [1197, 745, 1109, 1006]),
    "imdb4k": (4278, 3066, 7338, 2810, 52, 4064, [1135, 1584, 1559]),
    "news20": (16_242, 100, 100, 100, 2241, 16_242, [4605, 3519, 2656, 5462]),
}


@pytest.mark.parametrize("name", CLEANED)
def test_counts_of_the_hypergraphs(name: str, data_root: Path) -> None:
    nodes, features, listed, used, largest, covered, classes = CLEANED[name]
    data = load_whole(name, data_root)
    kind = DATASETS.named(name)()
    assert isinstance(kind, CleanedHypergraph)
    assert isinstance(data, Hypergraph)
    assert len(kind.raw_hyperedges(sources_of(name, data_root))) == listed
    assert data.features.shape == (nodes, features)
    assert len(data.hyperedges) == used
    assert data.hyperedges.sizes.min() >= 2
    assert data.hyperedges.sizes.max() == largest
    assert len(np.unique(data.hyperedges.values)) == covered
    assert np.bincount(data.labels).tolist() == classes
    assert data.classes == len(classes)


# Facts 1.1: nodes, features, undirected edges without self-loops, neighbourhoods, singletons, largest.
COUNTED = {
    "cora-whole": (2708, 1433, 5278, 2590, 0, 169),
    "citeseer-whole": (3327, 3703, 4552, 2996, 48, 100),
    "facebook": (22_470, 4714, 85_501 - 77, 22_407, 0, 309),
}


@pytest.mark.parametrize("name", WHOLE)
def test_counts_of_the_whole_graphs(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    root = tmp_path if DATASETS.named(name).embedded else request.getfixturevalue("data_root")
    nodes, features, edges, neighbourhoods, singletons, largest = COUNTED[name]
    data = load_whole(name, root)
    assert isinstance(data, Graph)
    assert data.hyperedges is not None
    assert data.features.shape == (nodes, features)
    assert data.edges.shape == (2, 2 * edges)
    assert len(data.hyperedges) == neighbourhoods
    assert (data.hyperedges.sizes == 1).sum() == singletons
    assert data.hyperedges.sizes.max() == largest
    assert set(data.features.data.tolist()) == {1.0}


def groups(arrays: Mapping[str, NDArray[Any]], name: str) -> list[tuple[int, ...]]:
    offsets = arrays[f"{name}_indptr"].tolist()
    nodes = arrays[f"{name}_indices"].astype(np.int64).tolist()
    return [tuple(nodes[start:end]) for start, end in pairwise(offsets)]


def neighbourhoods(pairs: NDArray[np.int64], nodes: int) -> list[tuple[int, ...]]:
    around = [{node} for node in range(nodes)]
    for u, v in pairs.tolist():
        around[u].add(v)
        around[v].add(u)
    return [tuple(sorted(members)) for members in around]


@pytest.mark.parametrize("name", [name for name in TRAINING if name != "dblp4k-repeats"])
def test_loaders_arrive_at_the_independent_arrays(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    path = ARRAYS / f"{name.removesuffix('-whole')}.npz"
    if not path.exists():
        pytest.skip(f"the independent arrays of {name} are not at hand: there is no {path.name}")
    data = load_whole(
        name, tmp_path if DATASETS.named(name).embedded else request.getfixturevalue("data_root")
    )
    with np.load(path, allow_pickle=False) as stored:
        arrays = dict(stored)

    stored_values = np.broadcast_to(arrays["x_values"], arrays["x_indices"].shape).astype(np.float64)
    matrix = (stored_values, arrays["x_indices"].astype(np.int64), arrays["x_indptr"].astype(np.int64))
    features = sparse.csr_matrix(matrix, shape=tuple(arrays["x_shape"]))
    if name in ("coraca", "dblp4k", "imdb4k"):
        sums = features.toarray().sum(axis=1)
        features = sparse.csr_matrix(sparse.diags(1 / np.where(sums > 0, sums, 1)) @ features)
    difference = abs(sparse.csr_matrix(data.features, dtype=np.float64) - features)
    assert data.features.shape == features.shape
    assert difference.max() < 1e-7
    np.testing.assert_array_equal(data.labels, arrays["labels"])

    if isinstance(data, Graph):
        pairs = arrays["edges_attenuated" if name == "facebook" else "edges"].astype(np.int64)
        expected_edges = sorted({(u, v) for a, b in pairs.tolist() for u, v in ((a, b), (b, a)) if u != v})
        assert list(map(tuple, data.edges.T.tolist())) == expected_edges
        raw, least = neighbourhoods(pairs, len(data.labels)), 1
    else:
        names = {"dblp4k": ("edges_paper", "edges_term"), "imdb4k": ("edges_director", "edges_actor")}
        raw, least = [one for group in names.get(name, ("edges",)) for one in groups(arrays, group)], 2
    first_of_each: list[tuple[int, ...]] = []
    seen = set()
    for members in raw:
        if len(members) >= least and members not in seen:
            seen.add(members)
            first_of_each.append(members)
    assert sets_of(data) == first_of_each
