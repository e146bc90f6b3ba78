"""Arrays as people have them become what ``bench.data`` promises, or are refused with the first bad item."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Data as PyGData
from torch_geometric.data import HeteroData

from bench.data import Data, Graph, Hypergraph, Images, Ragged, made_right, of_torch_geometric
from bench.errors import RequestError

X = np.array([[1, 0], [0, 2], [3, 1], [0, 0]], np.float32)
PATH = np.array([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
"""The path 0 - 1 - 2 - 3, as the suite has edges."""


def made(features: Any = X, labels: Any = (0, 1, 1, 0), edges: Any = PATH) -> Graph:
    data, _ = made_right(Graph(features, labels, edges, 0), "graph")
    assert isinstance(data, Graph)
    return data


@pytest.mark.parametrize(
    "edges",
    [
        PATH,
        PATH.T,
        PATH[:, [5, 0, 3, 1, 4, 2]],
        PATH[:, ::2],
        np.array([[0, 1, 2, 2, 2, 0], [1, 2, 3, 3, 2, 0]]),  # one direction, a repeat and two loops
        PATH.astype(float),
        torch.from_numpy(PATH),
        sparse.coo_matrix((np.ones(3), ([0, 1, 2], [1, 2, 3])), (4, 4)),
    ],
)
def test_edges_of_any_form_are_both_ways_sorted_and_once(edges: Any) -> None:
    assert np.array_equal(made(edges=edges).edges, PATH)


@pytest.mark.parametrize(
    "features",
    [
        X.astype(np.float64),
        X.astype(np.int8),
        X > 0,
        torch.from_numpy(X),
        torch.from_numpy(X).to_sparse(),
        torch.from_numpy(X).to_sparse_csr(),
        sparse.csc_matrix(X),
        sparse.coo_matrix(X),
    ],
)
def test_features_of_any_form_are_float32(features: Any) -> None:
    found = made(features).features
    assert found.dtype == np.float32
    dense = found.toarray() if sparse.issparse(found) else found
    assert np.array_equal(dense, (X > 0) if getattr(features, "dtype", None) == np.bool_ else X)


@pytest.mark.parametrize(
    "labels",
    [[0, 1, 1, 0], [-1, 7, 7, -1], ["cat", "dog", "dog", "cat"], [[2.0], [5.0], [5.0], [2.0]]],
)
def test_labels_of_any_form_are_classes(labels: Any) -> None:
    found = made(labels=labels)
    assert found.labels.tolist() == [0, 1, 1, 0]
    assert found.classes == 2


def test_labels_that_are_right_keep_a_class_without_items() -> None:
    data, done = made_right(Graph(X, np.array([0, 2, 2, 0]), PATH, 3), "graph")
    assert (data.labels.tolist(), data.classes, done) == ([0, 2, 2, 0], 3, [])


def test_what_was_done_is_said_with_its_count() -> None:
    edges = np.array([[0, 1, 2, 2, 2], [1, 2, 3, 3, 2]])
    _, done = made_right(
        Graph(X.astype(np.float64), ["a", "b", "b", "a"], edges, 0),  # type: ignore[arg-type]
        "graph",
    )
    text = "; ".join(done)
    for part in ("float64", "a to b", "5 edges became 6"):
        assert part in text


def test_pixels_have_their_channels_first() -> None:
    pixels = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)
    data, done = made_right(Images(pixels, np.array([0, 1]), 2), "images")
    assert isinstance(data, Images)
    assert data.pixels.shape == (2, 3, 4, 5)
    assert data.pixels[1, 2, 3, 4] == pixels[1, 3, 4, 2]
    assert done


PIXELS = np.zeros((2, 1, 4, 4), np.uint8)
NAN = np.array([[1, 0], [0, np.nan], [3, 1], [0, 0]], np.float32)


def graph(features: Any = X, labels: Any = (0, 1, 1, 0), edges: Any = PATH, classes: int = 0) -> Graph:
    return Graph(features, labels, edges, classes)


def images(pixels: Any = PIXELS, labels: Any = (0, 1)) -> Images:
    return Images(pixels, labels, 2)


def hypergraph(*lists: list[int]) -> Hypergraph:
    return Hypergraph(X, np.array([0, 1, 1, 0]), Ragged.of([np.array(nodes) for nodes in lists]), 2)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (graph(NAN), "feature 1 of node 1"),
        (graph(sparse.csr_matrix(NAN)), "feature 1 of node 1"),
        (graph(X[0]), "(2,)"),
        (graph(labels=[0, np.nan, 1, 0]), "item 1"),
        (graph(labels=[1, 1, 1, 1]), "one label"),
        (graph(labels=[[0, 1], [1, 1], [1, 0], [0, 1]]), "(4, 2)"),
        (graph(labels=np.array([0, 1, -1, 0]), classes=2), "expected labels of 0 to 1, got -1 to 1"),
        (graph(labels=[0, 1, 1]), "expected a label for every item, got 3 for 4"),
        (graph(edges=np.array([[0, 1, 2], [1, 2, 4]])), "edge 2 joins 2 and 4"),
        (graph(edges=np.array([[0, 1], [1, -1]])), "edge 1 joins"),
        (graph(edges=np.arange(9).reshape(3, 3)), "(3, 3)"),
        (
            replace(graph(), hyperedges=hypergraph([3], [0, 9]).hyperedges),
            "hyperedge 1 has a member outside 0",
        ),
        (hypergraph([0, 1], [3, 4]), "hyperedge 1 has a member outside 0 to 3"),
        (hypergraph([0, 1], [2, 3], [-1, 2]), "hyperedge 2 has a member outside 0 to 3"),
        (images(PIXELS.astype(np.float32)), "0 to 255 as uint8, got float32"),
        (images(labels=[0, 1, 1]), "got 3 for 2"),
    ],
)
def test_what_is_not_plain_is_refused_with_the_first_place(data: Data, reason: str) -> None:
    family = {Graph: "graph", Hypergraph: "hypergraph", Images: "images"}[type(data)]
    with pytest.raises(RequestError, match=re.escape(reason)):
        made_right(data, family)  # type: ignore[arg-type]


def test_data_of_another_family_are_refused() -> None:
    with pytest.raises(RequestError, match="expected Hypergraph, got Graph"):
        made_right(graph(), "hypergraph")


def graph_of_five(**changes: Any) -> PyGData:
    """A triangle of nodes 0, 1, 2 and an edge of nodes 3, 4, directed."""
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 0, 4]])
    labels = torch.tensor([3, 5, 3, 5, 5])
    return PyGData(**{"x": torch.eye(5, dtype=torch.float64), "y": labels, "edge_index": edges, **changes})


def test_a_graph_of_torch_geometric_is_its_largest_component_or_all_of_it() -> None:
    part, done = of_torch_geometric(graph_of_five())
    assert part.edges.tolist() == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    assert part.labels.tolist() == [0, 1, 0]
    assert any("2 of 5 nodes" in text for text in done)
    assert len(of_torch_geometric(graph_of_five(), is_whole=True)[0].labels) == 5


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (graph_of_five(y=None), "labels"),
        (graph_of_five(x=None), "features"),
        (graph_of_five(y=torch.tensor([1])), "a label for every item, got 1 for 5"),
        (graph_of_five(y=torch.ones(5, 3)), r"\(5, 3\)"),
        (HeteroData(), "kinds of nodes"),
    ],
)
def test_a_graph_that_cannot_be_shared_out_is_refused(data: Any, word: str) -> None:
    with pytest.raises(RequestError, match=word):
        of_torch_geometric(data)
