from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures
from torch_geometric.utils import remove_self_loops, to_undirected

from bench.data import Graph, Ragged, largest_component, undirected
from bench.datasets._prepare import (
    clean,
    closed_neighbourhoods,
    normalise_rows,
    row_lists,
)

NODES = 8
PAIRS = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=12)


def columns(pairs: list[tuple[int, int]]) -> np.ndarray[Any, Any]:
    return np.array(pairs, np.int64).reshape(-1, 2).T


def graph_of(pairs: list[tuple[int, int]], nodes: int) -> Graph:
    features = sparse.csr_matrix(np.eye(nodes, dtype=np.float32))
    return Graph(features, np.arange(nodes), undirected(columns(pairs), nodes), nodes)


def test_small_integers_do_not_overflow() -> None:
    pairs = np.array([[50_000], [60_000]], np.uint16)
    assert undirected(pairs, 60_001).T.tolist() == [[50_000, 60_000], [60_000, 50_000]]


@given(PAIRS)
def test_undirected_equals_pyg(pairs: list[tuple[int, int]]) -> None:
    expected = to_undirected(remove_self_loops(torch.tensor(columns(pairs)))[0], num_nodes=NODES)
    np.testing.assert_array_equal(undirected(columns(pairs), NODES), expected.numpy())


def test_largest_component_by_hand() -> None:
    part = largest_component(graph_of([(0, 5), (6, 1), (1, 3), (3, 6), (2, 4)], 8))
    assert part.labels.tolist() == [1, 3, 6]  # in their old order
    assert part.edges.T.tolist() == [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]
    assert part.features.toarray().argmax(axis=1).tolist() == [1, 3, 6]
    assert part.classes == 8
    # the first of equal components
    assert largest_component(graph_of([(2, 3), (0, 1)], 4)).labels.tolist() == [0, 1]


def test_sums_are_in_single_precision_whatever_scipy_adds_in() -> None:
    """1 + (2^-24 + 2^-49): the small ones make 2^-24 in single precision, half of what 1 can take up, which
    rounds to even. In double precision the sum is above that half, and rounds to 1 + 2^-23.
    """
    rows = sparse.csr_matrix(np.array([[1, 2**-24, 2**-49], [0, 0, 0], [3, 1, 0]], np.float32))
    assert normalise_rows(rows).toarray().tolist() == [[1, 2**-24, 2**-49], [0, 0, 0], [0.75, 0.25, 0]]
    assert rows.toarray()[2].tolist() == [3, 1, 0]  # the argument is left alone


def pyg(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    normalised: np.ndarray[Any, Any] = NormalizeFeatures()(Data(x=torch.tensor(rows))).x.numpy()
    return normalised


@given(arrays(np.float32, (5, 7), elements=st.sampled_from([0, 1]) | st.floats(-2, 2, width=32)))
def test_features_equal_pyg_and_exactly_where_they_are_zeros_and_ones(rows: np.ndarray[Any, Any]) -> None:
    for features, tolerance in ((rows, 1e-6), ((rows > 0).astype(np.float32), 0)):
        got = normalise_rows(sparse.csr_matrix(features)).toarray()
        np.testing.assert_allclose(got, pyg(features), rtol=tolerance, atol=tolerance)


def lists(ragged: Ragged) -> list[list[int]]:
    return [ragged[index].tolist() for index in range(len(ragged))]


def test_cleaning_by_hand() -> None:
    raw = [[3], [2, 0], [1, 4, 2], [0, 2], [], [5, 5], [2, 1, 4], [4, 1, 4]]
    assert lists(clean(raw)) == [[0, 2], [1, 2, 4], [1, 4]]


def test_cleaning_of_multisets_by_hand() -> None:
    # A single node named twice stays; of lists of the same nodes the first does, however often it names each.
    raw = [[3], [2, 0, 2], [0, 2], [], [5, 5], [5, 5, 5], [4, 1], [4, 1, 4]]
    assert lists(clean(raw, multisets=True)) == [[0, 2, 2], [5, 5], [1, 4]]


def test_row_lists_ascend_and_keep_empty_rows() -> None:
    rows = sparse.csr_matrix((np.ones(3), np.array([2, 0, 1]), np.array([0, 2, 2, 3])), shape=(3, 3))
    assert row_lists(rows) == [[0, 2], [], [1]]


@given(PAIRS)
def test_closed_neighbourhoods_against_sets(pairs: list[tuple[int, int]]) -> None:
    expected: list[list[int]] = []
    for node in range(NODES):
        around = {node} | {v for u, v in pairs if u == node} | {u for u, v in pairs if v == node}
        if sorted(around) not in expected:
            expected.append(sorted(around))
    assert lists(closed_neighbourhoods(undirected(columns(pairs), NODES), NODES)) == expected
