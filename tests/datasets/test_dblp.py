"""DBLP's hypergraph from tables made by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from scipy import sparse

from bench.data import Hypergraph
from bench.dataset import DATASETS
from bench.datasets._fedhgn import CleanedHypergraph
from bench.federation.prepared import prepare
from bench.sources import Sources

from .raw_data import load_whole, sets_of, write


def test_repeats_are_the_papers_of_an_author_with_a_term(data_root: Path) -> None:
    plain, repeats = load_whole("dblp4k", data_root), load_whole("dblp4k-repeats", data_root)
    assert isinstance(repeats, Hypergraph)
    assert repeats.multisets
    assert abs(plain.features - repeats.features).max() == 0
    np.testing.assert_array_equal(plain.labels, repeats.labels)
    authors: dict[int, list[int]] = {}
    for paper, author in np.loadtxt(data_root / "hypergraph/dblp4k/pa.txt", int).tolist():
        authors.setdefault(paper, []).append(author)
    terms: dict[int, Counter[int]] = {}
    for paper, term in np.loadtxt(data_root / "hypergraph/dblp4k/pt.txt", int).tolist():
        terms.setdefault(term, Counter()).update(authors[paper])
    expected: dict[frozenset[int], Counter[int]] = {}
    for count in [*(terms[term] for term in sorted(terms)), *map(Counter, authors.values())]:
        if count.total() > 1:
            expected.setdefault(frozenset(count), count)
    assert [Counter(members) for members in sets_of(repeats)] == list(expected.values())
    assert sum(len(set(members)) == 1 for members in sets_of(repeats)) == 96
    distinct = {tuple(sorted(nodes)) for nodes in expected if len(nodes) > 1}
    assert distinct == set(sets_of(plain))


def test_dblp_joins_the_authors_of_a_paper_and_of_a_term(by_hand: Path) -> None:
    folder = by_hand / "hypergraph" / "dblp4k"
    # Papers 0 to 2, authors 0 to 3, terms 0 to 2. Term 1 is of papers 0 and 2, term 2 of paper 1 alone.
    files = {"pa.txt": "0\t1\n0\t0\n1\t2\n2\t2\n2\t3\n", "pt.txt": "0\t0\n0\t1\n1\t2\n2\t1\n"}
    write(folder, files)
    words = np.array([[1, 1, 0], [0, 0, 0], [0, 1, 0], [1, 1, 1]])
    sparse.save_npz(folder / "a_feat.npz", sparse.csr_matrix(words))
    np.save(folder / "labels.npy", np.array([1, 0, 2, 1], np.int32))
    data = load_whole("dblp4k", by_hand)
    kind = DATASETS.named("dblp4k")()
    assert isinstance(kind, CleanedHypergraph)
    raw = kind.raw_hyperedges(Sources((by_hand,), download=False))
    assert raw == [[0, 1], [2], [2, 3], [0, 1], [0, 1, 2, 3], [2]]
    assert sets_of(data) == [(0, 1), (2, 3), (0, 1, 2, 3)]
    expected = [[0.5, 0.5, 0], [0, 0, 0], [0, 1, 0], [1 / 3, 1 / 3, 1 / 3]]
    np.testing.assert_allclose(data.features.toarray(), expected, rtol=1e-6)
    assert data.labels.tolist() == [1, 0, 2, 1]
    assert (data.classes, data.labels.dtype) == (3, np.int64)


def test_dblp_with_repeats_names_an_author_once_a_paper(by_hand: Path) -> None:
    folder = by_hand / "hypergraph" / "dblp4k"
    # Authors of papers 0 to 4: 0 and 1, 0, 2, 2, 1 and 2. Papers of terms 0 to 3: 0 and 1, 2 and 3, 0, 4.
    files = {
        "pa.txt": "0\t1\n0\t0\n1\t0\n2\t2\n3\t2\n4\t1\n4\t2\n",
        "pt.txt": "0\t0\n1\t0\n2\t1\n3\t1\n0\t2\n4\t3\n",
    }
    write(folder, files)
    sparse.save_npz(folder / "a_feat.npz", sparse.csr_matrix(np.eye(3)))
    np.save(folder / "labels.npy", np.array([1, 0, 2], np.int32))
    # Author 0 has two papers with term 0; term 1 has two of author 2 alone. Terms come before papers,
    # so that {0, 1} is the first term's, and term 2 and paper 0 have no hyperedge of their own.
    assert sets_of(load_whole("dblp4k-repeats", by_hand)) == [(0, 0, 1), (2, 2), (1, 2)]
    assert sets_of(load_whole("dblp4k", by_hand)) == [(0, 1), (1, 2)]
    for name in ("dblp4k", "dblp4k-repeats"):
        assert prepare(name, (by_hand,), download=False).checksum  # it passes the check of hyperedges
