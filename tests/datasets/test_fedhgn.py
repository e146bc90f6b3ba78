"""The data sets of the FedHGN study: against independent arrays, known counts and tables made by hand."""

from __future__ import annotations

import json
from collections import Counter
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
from bench.datasets.fedhgn import CleanedHypergraph, films_by_name
from bench.federation.prepared import prepare

from .raw_data import load_whole, root_of, sets_of, sources_of, write

ARRAYS = Path(__file__).resolve().parents[3] / "shared" / "data" / "hypergraph"

TRAINING = {"coraca": 10, "dblp4k": 6, "dblp4k-repeats": 6, "imdb4k": 6, "news20": 1} | {
    "cora-whole": 10,
    "citeseer-whole": 10,
    "facebook": 0.8,
}
"""Percent of training nodes."""

WHOLE = ("cora-whole", "citeseer-whole", "facebook")


@pytest.mark.parametrize("name", TRAINING)
def test_protocol_of_the_study(name: str) -> None:
    kind = DATASETS.named(name)
    protocol = kind.protocol
    assert (protocol.rounds, protocol.local_epochs) == (200, 3)
    assert protocol.split == (TRAINING[name], 20, 40)
    assert (protocol.initial, protocol.evaluate) == ("common", "epoch")
    assert kind.family == ("graph" if name in WHOLE else "hypergraph")
    assert kind.scenarios == ("label-dirichlet", "non-overlapping")[: 2 if name in WHOLE else 1]
    assert (kind.client.model, kind.client.hidden) == ("gcn" if name in WHOLE else "hgnn", 16)


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
    assert (data.hyperedges.sizes.min() >= 2, data.hyperedges.sizes.max()) == (True, largest)
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
def test_counts_of_the_whole_graphs(name: str, request: pytest.FixtureRequest) -> None:
    nodes, features, edges, neighbourhoods, singletons, largest = COUNTED[name]
    data = load_whole(name, root_of(name, request))
    assert data.hyperedges is not None
    assert data.features.shape == (nodes, features)
    assert isinstance(data, Graph)
    assert data.edges.shape == (2, 2 * edges)
    sizes = data.hyperedges.sizes
    assert (len(sizes), (sizes == 1).sum(), sizes.max()) == (neighbourhoods, singletons, largest)
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
def test_loaders_arrive_at_the_independent_arrays(name: str, request: pytest.FixtureRequest) -> None:
    path = ARRAYS / f"{name.removesuffix('-whole')}.npz"
    if not path.exists():
        pytest.skip(f"the independent arrays of {name} are not at hand: there is no {path.name}")
    data = load_whole(name, root_of(name, request))
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
    assert sets_of(data) == list(dict.fromkeys(members for members in raw if len(members) >= least))


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
    distinct = {tuple(sorted(nodes)) for nodes in expected if len(nodes) > 1}
    assert distinct == set(sets_of(plain))


# --- tables made by hand ---------------------------------------------------------------------------


def test_dblp_joins_the_authors_of_a_paper_and_of_a_term(by_hand: Path) -> None:
    """Authors of papers 0 to 4: 0 and 1, 0, 2, 2, 1 and 2. Papers of terms 0 to 3: 0 and 1, 2 and 3, 0, 4.

    Author 0 has two papers with term 0; term 1 has two of author 2 alone. With repeats terms come before
    papers, so that {0, 1} is the first term's, and term 2 and paper 0 have no hyperedge of their own.
    """
    folder = by_hand / "hypergraph" / "dblp4k"
    papers, terms = "0\t1\n0\t0\n1\t0\n2\t2\n3\t2\n4\t1\n4\t2\n", "0\t0\n1\t0\n2\t1\n3\t1\n0\t2\n4\t3\n"
    write(folder, {"pa.txt": papers, "pt.txt": terms})
    sparse.save_npz(folder / "a_feat.npz", sparse.csr_matrix(np.array([[1, 1, 0], [0, 0, 0], [1, 1, 1]])))
    np.save(folder / "labels.npy", np.array([1, 0, 2], np.int32))
    plain = load_whole("dblp4k", by_hand)
    assert sets_of(plain) == [(0, 1), (1, 2)]
    expected = [[0.5, 0.5, 0], [0, 0, 0], [1 / 3, 1 / 3, 1 / 3]]
    np.testing.assert_allclose(plain.features.toarray(), expected, rtol=1e-6)
    assert (plain.labels.tolist(), plain.labels.dtype, plain.classes) == ([1, 0, 2], np.int64, 3)
    assert sets_of(load_whole("dblp4k-repeats", by_hand)) == [(0, 0, 1), (2, 2), (1, 2)]
    assert prepare("dblp4k-repeats", (by_hand,), download=False).checksum


FILMS = """director_name,actor_1_name,actor_2_name,actor_3_name,genres,plot_keywords
Zoe,Ann,Bob,,Horror|Comedy|Action,big dog|Dog
Zoe,Bob,,,Drama,a cat|dog
,Ann,Bob,,Drama,cat
Yve,,Ann,Bob,Drama,cat
Yve,Ann,Bob,Bob,Horror,cat
"Ynez, Q.",Ann,Bob,Bob,Action|Comedy,big cat
"""


def test_imdb_films_words_and_names(by_hand: Path) -> None:
    write(by_hand, {"hypergraph/imdb4k/movie_metadata.csv": FILMS})
    data = load_whole("imdb4k", by_hand)
    # Kept: rows 0, 1 and 5. Others lack a director, a first actor or a genre that is a class.
    assert (data.labels.tolist(), data.classes) == ([1, 2, 0], 3)
    # Words of two films at least: big, cat, dog ("a" is too short).
    expected = [[1 / 3, 0, 2 / 3], [0, 0.5, 0.5], [0.5, 0.5, 0]]
    np.testing.assert_allclose(data.features.toarray(), expected, rtol=1e-6)
    # Directors Ynez and Zoe, then actors Ann and Bob; Ynez has one film.
    assert sets_of(data) == [(0, 1), (0, 2), (0, 1, 2)]
    films = [{"one": "A", "two": "A"}, {"one": "", "two": "B"}, {"one": "B", "two": "A"}]
    assert films_by_name(films, ("one", "two")) == [[0, 2], [1, 2]], "a film is once in a name's list"


def test_facebook_ignores_self_loops(by_hand: Path) -> None:
    kinds = ["tvshow", "company", "politician", "government"]
    rows = (f'{page},7,"A, ""{page}""",{kinds[page]}\n' for page in (1, 0, 3, 2))
    files = {
        "attenuated_edges/facebook_edges.csv": "x1,x2\n3,0\n1,1\n0,3\n2,0\n",
        "features/facebook.json": json.dumps({"2": [4, 0], "0": [], "1": [1], "3": [0]}),
        "target/facebook_target.csv": "id,facebook_id,page_name,page_type\n" + "".join(rows),
    }
    write(by_hand / "hypergraph" / "facebook", files)
    data = load_whole("facebook", by_hand)
    assert isinstance(data, Graph)
    assert data.edges.T.tolist() == [[0, 2], [0, 3], [2, 0], [3, 0]]
    assert sets_of(data) == [(0, 2, 3), (1,), (0, 2), (0, 3)]
    assert data.labels.tolist() == [3, 0, 2, 1]
    assert data.features.toarray().tolist() == [[0] * 5, [0, 1, 0, 0, 0], [1, 0, 0, 0, 1], [1, 0, 0, 0, 0]]


def test_news_rows_are_sorted_by_id_and_words_numbered_from_0(by_hand: Path) -> None:
    content, edges = "2\t1\t0\t1\n0\t1\t1\t0\n1\t0\t1\t2\n", "0\t4\n0\t3\n1\t4\n2\t3\n"
    files = {"20newsW100.content": content, "20newsW100.edges": edges}
    write(by_hand / "hypergraph" / "news20", files)
    data = load_whole("news20", by_hand)
    assert data.features.toarray().tolist() == [[1, 1], [0, 1], [1, 0]]  # not normalised
    assert data.labels.tolist() == [0, 2, 1]
    assert sets_of(data) == [(0, 2), (0, 1)]
