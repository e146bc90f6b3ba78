"""Lists of raw files, and preparation that the data sets share, before any partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.data import Ragged
from bench.sources import RawFile


def raw_files(folder: str, address: str, sums: Mapping[str, str]) -> tuple[RawFile, ...]:
    """Raw files, from name -> SHA-256 sum. They lie in ``folder`` of a data root and at ``address``."""
    return tuple(RawFile(f"{folder}/{name}", sha256, f"{address}/{name}") for name, sha256 in sums.items())


def row_lists(matrix: sparse.csr_matrix) -> list[list[int]]:
    """The stored columns of each row, ascending."""
    matrix = matrix.sorted_indices()
    columns = matrix.indices.tolist()
    return [columns[start:end] for start, end in pairwise(matrix.indptr.tolist())]


def clean(hyperedges: Iterable[Iterable[int]], multisets: bool = False) -> Ragged:
    """Keep hyperedges of at least two members. Of equal sets of nodes keep the first. Sort nodes ascending.

    With ``multisets`` a node is a member as often as it is named, else once.
    """
    lists: dict[frozenset[int], list[int]] = {}
    for nodes in hyperedges:
        members = sorted(nodes if multisets else set(nodes))
        if len(members) > 1:
            lists.setdefault(frozenset(members), members)
    return Ragged.of([np.array(members, np.int64) for members in lists.values()])


def closed_neighbourhoods(edges: NDArray[np.int64], nodes: int) -> Ragged:
    """The distinct sets of a node and its neighbours, in the order of each set's first node.

    ``edges`` ``[2, m]`` come from a ``Graph``. A node without edges is a set of one.
    """
    links = sparse.csr_matrix((np.ones(edges.shape[1], np.int8), (edges[0], edges[1])), (nodes, nodes))
    closed = sparse.csr_matrix(links + sparse.identity(nodes, np.int8))
    distinct_sets = dict.fromkeys(tuple(members) for members in row_lists(closed))
    return Ragged.of([np.array(members, np.int64) for members in distinct_sets])


def normalise_rows(features: sparse.csr_matrix) -> sparse.csr_matrix:
    """Subtract the smallest entry of the matrix, then divide each row by max(its sum, 1).

    PyG's ``NormalizeFeatures`` computes the same up to last digits. The results are equal wherever sums are
    exact (0/1 features).
    """
    smallest = features.min()  # entries that are not stored count as 0
    differences = sparse.csr_matrix(features.toarray() - smallest) if smallest else features.copy()
    return _divide_rows(differences, np.maximum(_row_sums(differences), np.float32(1)))


def l1_normalise_rows(features: sparse.csr_matrix) -> sparse.csr_matrix:
    """Divide each row of non-negative entries by its sum; rows of zeros stay."""
    sums = _row_sums(features)
    return _divide_rows(features.copy(), np.where(sums > 0, sums, np.float32(1)))


def _row_sums(matrix: sparse.csr_matrix) -> NDArray[np.float32]:
    """Sums by row, in the precision of the entries and in NumPy's order of addition.

    All shipped results use these last digits, and a federation's hash covers them. SciPy's ``sum`` gives the
    same digits up to version 1.17. From 1.18 on it adds in double precision.
    """
    filled = np.flatnonzero(np.diff(matrix.indptr))
    sums = np.zeros(matrix.shape[0], np.float32)
    sums[filled] = np.add.reduceat(matrix.data, matrix.indptr[filled])
    return sums


def _divide_rows(matrix: sparse.csr_matrix, divisors: NDArray[np.float32]) -> sparse.csr_matrix:
    matrix.data = matrix.data / np.repeat(divisors, np.diff(matrix.indptr))
    return matrix
