"""The data sets of the FedHGN study (arXiv 2408.05160): five hypergraphs, and three graphs whose hyperedges
are their neighbourhoods.

CoraCA: Yadati et al., "HyperGCN", NeurIPS 2019. DBLP4k and IMDB4k: the subsets of Fu et al., "MAGNN",
WWW 2020, DBLP4k as HeCo publishes it (Wang et al., KDD 2021), IMDB4k from MAGNN's raw table by the recipe
told there. 20News: the 100-word version of 20 Newsgroups as LEGCN publishes it (Yang et al., CIKM 2022).
Facebook: Rozemberczki, Allen, Sarkar, "Multi-scale Attributed Node Embedding", Journal of Complex Networks
2021, with the attenuated edges (half of all).
"""

from __future__ import annotations

import csv
import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.data import Graph, Hypergraph, undirected
from bench.dataset import Dataset
from bench.sources import Sources
from bench.spec import ClientSettings, Protocol

from ._pickles import csr, read_pickle
from ._prepare import clean, closed_neighbourhoods, l1_normalise_rows, raw_files, row_lists
from .subgraphs import Cora, read_embedded


def study_protocol(train: float) -> Protocol:
    """The study's protocol. Each client trains on ``train`` percent of its nodes (facts 1.4, 6)."""
    return Protocol(rounds=200, local_epochs=3, split=(train, 20, 40), initial="common", evaluate="epoch")


Raw = tuple[sparse.csr_matrix, NDArray[np.int64], list[list[int]]]
"""The features and the labels of all nodes, and the nodes of every hyperedge before cleaning."""


class CleanedHypergraph(Dataset, ABC):
    """A data set whose raw files list hyperedges, which are cleaned on loading (facts 1.1)."""

    family = "hypergraph"
    scenarios = ("label-dirichlet",)
    client = ClientSettings(model="hgnn", hidden=16)
    multisets: ClassVar[bool] = False

    @abstractmethod
    def raw(self, sources: Sources) -> Raw:
        """Read the raw files. Raises the same errors as ``load``."""

    def raw_hyperedges(self, sources: Sources) -> list[list[int]]:
        """Read the hyperedges as the raw files list them. Raises the same errors as ``load``."""
        return self.raw(sources)[2]

    def load(self, sources: Sources) -> Hypergraph:
        """All nodes and the cleaned hyperedges."""
        features, labels, hyperedges = self.raw(sources)
        cleaned = clean(hyperedges, self.multisets)
        return Hypergraph(features, labels, cleaned, int(labels.max()) + 1, self.multisets)


class CoraCA(CleanedHypergraph):
    """CoraCA: 2,708 papers, 1,433 words, 7 topics, 970 distinct sets of papers that share an author."""

    name = "coraca"
    title = "CoraCA"
    homepage = "https://github.com/malllabiisc/HyperGCN"
    licence = "none stated in the README of its repository"
    protocol = study_protocol(10)
    files = raw_files(
        "hypergraph/coraca",
        f"{homepage}/raw/de049387d8d8c9fe6ebab83cb4b49cacfd4ed534/data/coauthorship/cora",
        {
            "features.pickle": "a20ab3c4903d6cf97d277f5ce8d26735e31d08c888cdd11e3f0a5bb78d7c0602",
            "hypergraph.pickle": "777d661210bdd122a4ce25284e07c6368e875a28122e75dca912c631db0935f6",
            "labels.pickle": "0e6edd0d971dde22c1116fa662362262163a7a6d557eafd60ac6857de4569527",
        },
    )

    def raw(self, sources: Sources) -> Raw:
        """All papers; rows of features sum to 1. Hyperedges: papers of each author, in the file's order."""
        features, papers, topics = (read_pickle(path) for path in sources.get_all(self.files))
        return l1_normalise_rows(csr(features)), np.array(topics, np.int64), list(papers.values())


def _incidence(path: Path) -> sparse.csr_matrix:
    """Matrix of papers by others, from lines ``paper<TAB>other``: 1 if a line lists the pair."""
    papers, neighbours = np.loadtxt(path, np.int64, ndmin=2).T
    return sparse.csr_matrix((np.ones(len(papers), np.int64), (papers, neighbours)))


class Dblp4k(CleanedHypergraph):
    """DBLP4k: 4,057 authors, 334 keywords, 4 areas, 6,242 distinct sets by paper and by term.

    The study reads the files of the library DHG. Their lists name an author once for each of his papers: for
    the list by conference, the published checksum fits no other reading; for terms it is inferred. The study
    keeps these repeats, as ``dblp4k-repeats`` does. In ``dblp4k`` every author counts once.
    """

    name = "dblp4k"
    title = "DBLP4k"
    homepage = "https://github.com/liun-online/HeCo"
    licence = "none stated in the README of its repository; the metadata of DBLP itself are CC0 1.0"
    protocol = study_protocol(6)
    files = raw_files(
        "hypergraph/dblp4k",
        f"{homepage}/raw/20e8ca2042838877b2c815279920218b6bbea1db/data/dblp",
        {
            "a_feat.npz": "997876bf8d90d29fdb90bf4801a9909893a9ee5646a85aeca079ce167595ec41",
            "labels.npy": "817efdc3ebb9e96067b8770dad5894b06ecabde2ac95d4b17443985f0439fda7",
            "pa.txt": "94cf38a92733d21664f55907305773bb6fb90dd9d1579392517596488f061382",
            "pt.txt": "78f3d6f9a528ed112a2d29bd2a672cdf13a03779a87ce89856e6a622eda280b8",
        },
    )

    def raw(self, sources: Sources) -> Raw:
        """All authors; rows of features sum to 1. Hyperedges come from ``joined``."""
        features, areas, authors, terms = sources.get_all(self.files)
        words = sparse.csr_matrix(sparse.load_npz(features), dtype=np.float32)
        labels = np.load(areas, allow_pickle=False).astype(np.int64)
        return l1_normalise_rows(words), labels, self.joined(_incidence(authors), _incidence(terms))

    def joined(self, authors: sparse.csr_matrix, terms: sparse.csr_matrix) -> list[list[int]]:
        """The authors of every paper, then the authors of all papers with every term, both by id."""
        return row_lists(authors) + row_lists(sparse.csr_matrix(terms.T @ authors))


class Dblp4kRepeats(Dblp4k):
    """DBLP4k whose terms name an author once for each of his papers: 6,338 hyperedges, 96 of one author."""

    name = "dblp4k-repeats"
    title = "DBLP4k, members repeated as released"
    multisets = True

    def joined(self, authors: sparse.csr_matrix, terms: sparse.csr_matrix) -> list[list[int]]:
        """The authors of all papers with every term, paper after paper, then the authors of every paper.

        Terms come first, as released: cleaning keeps the first of two hyperedges with the same authors.
        """
        authors_of, papers_with = row_lists(authors), row_lists(sparse.csr_matrix(terms.T))
        by_term = [[author for paper in papers for author in authors_of[paper]] for papers in papers_with]
        return by_term + authors_of


GENRES = ("Action", "Comedy", "Drama")
"""The classes of films, in order of their ids."""

Film = dict[str, str]


def _genres(film: Film) -> list[int]:
    """The class ids of a film's genres, in the film's order. Genres that are not classes are left out."""
    return [GENRES.index(genre) for genre in film["genres"].split("|") if genre in GENRES]


def word_counts(texts: Iterable[str]) -> sparse.csr_matrix:
    """Counts ``[texts, words]`` of all words that occur in at least two texts, in alphabetical order.

    A word is two or more word characters in a row, in lower case.
    """
    counts = [Counter(re.findall(r"\b\w\w+\b", text.lower())) for text in texts]
    texts_with = Counter(word for count in counts for word in count)
    words = sorted(word for word, number in texts_with.items() if number > 1)
    column = {word: index for index, word in enumerate(words)}
    table = sparse.lil_matrix((len(counts), len(words)), dtype=np.float32)
    for row, count in enumerate(counts):
        for word in count.keys() & column.keys():
            table[row, column[word]] = count[word]
    return table.tocsr()


def films_by_name(films: list[Film], columns: tuple[str, ...]) -> list[list[int]]:
    """The films of every name in these columns, with names in alphabetical order."""
    by_name: dict[str, list[int]] = {}
    for number, film in enumerate(films):
        for name in {film[column] for column in columns} - {""}:
            by_name.setdefault(name, []).append(number)
    return [by_name[name] for name in sorted(by_name)]


class Imdb4k(CleanedHypergraph):
    """IMDB4k: 4,278 films, 3,066 plot words, 3 genres, 2,810 distinct sets by director and by actor."""

    name = "imdb4k"
    title = "IMDB4k"
    homepage = "https://github.com/cynricfu/MAGNN"
    licence = "none stated in the README of its repository"
    protocol = study_protocol(6)
    files = raw_files(
        "hypergraph/imdb4k",
        f"{homepage}/raw/b8557f58ae04a7fe3e7a9fde64ea87c81b331efe/data/raw/IMDB",
        {"movie_metadata.csv": "74e4a9af314eea255147a6d48a5678ad7d0be3cb8ba3fdb819ef6edddb36e2ca"},
    )

    def raw(self, sources: Sources) -> Raw:
        """The films with a director, a first actor and a genre among the classes, in the table's order.

        The label is the first such genre. Word counts are scaled so that rows sum to 1. Hyperedges are the
        films of every director, then of every actor, both by name.
        """
        with sources.get(self.files[0]).open(encoding="utf-8", newline="") as table:
            films = [
                film
                for film in csv.DictReader(table)
                if film["director_name"] and film["actor_1_name"] and _genres(film)
            ]
        words = word_counts(film["plot_keywords"] for film in films)
        labels = np.array([_genres(film)[0] for film in films], np.int64)
        actors = films_by_name(films, ("actor_1_name", "actor_2_name", "actor_3_name"))
        return l1_normalise_rows(words), labels, films_by_name(films, ("director_name",)) + actors


class News20(CleanedHypergraph):
    """20News: 16,242 postings, 100 words, 4 groups of topics, the set of postings with each word."""

    name = "news20"
    title = "20News"
    homepage = "https://github.com/ycq091044/LEGCN"
    licence = "none stated in the README of its repository"
    protocol = study_protocol(1)
    files = raw_files(
        "hypergraph/news20",
        f"{homepage}/raw/d03f4745370a7493b18fb65f6d46f71b436a027b/data/20newsW100",
        {
            "20newsW100.content": "99022653fbf1c22d29e71ca1b382ec41a74dc3c9661774096dc1776c0077cd46",
            "20newsW100.edges": "b427937f20ab794e75e0a206f70bbe051ef60807a84f42cfa6cf7ee060acdf16",
        },
    )

    def raw(self, sources: Sources) -> Raw:
        """All postings by id; features are 0/1. Hyperedges: each word's postings, in the words' order."""
        content, edges = sources.get_all(self.files)
        table = np.loadtxt(content, np.int64, ndmin=2)  # id, 100 words, class: not in the order of ids
        table = table[np.argsort(table[:, 0])]
        postings, words = np.loadtxt(edges, np.int64, ndmin=2).T
        words = words - words.min()  # in the raw file words are numbered after postings
        incidence = sparse.csr_matrix((np.ones(len(words), np.int64), (words, postings)))
        features = sparse.csr_matrix(table[:, 1:-1], dtype=np.float32)
        return features, table[:, -1].copy(), row_lists(incidence)


class _NeighbourhoodGraph(Dataset, ABC):
    """A simple graph whose hyperedges are its distinct closed neighbourhoods (facts 1.1)."""

    family = "graph"
    scenarios = ("label-dirichlet", "non-overlapping")
    client = ClientSettings(model="gcn", hidden=16)


KINDS = ("company", "government", "politician", "tvshow")
"""The classes of pages, in order of their ids."""


class Facebook(_NeighbourhoodGraph):
    """Facebook: 22,470 pages, 4,714 features, 4 kinds, 85,424 attenuated edges, 22,407 neighbourhoods."""

    name = "facebook"
    title = "Facebook"
    homepage = "https://github.com/benedekrozemberczki/MUSAE"
    licence = "MIT (LICENSE of its repository)"
    protocol = study_protocol(0.8)
    files = raw_files(
        "hypergraph/facebook",
        f"{homepage}/raw/5f901232957b6c9985d750aac48cda39a4b24285/input",
        {
            "attenuated_edges/facebook_edges.csv": (
                "5e3bdf42994338da61431cbf4e6418f419b4b1bbd99762d4b0d37eea0b4562f0"
            ),
            "features/facebook.json": "ea870537646a93642a0008d38aa9bfeff02018070ba97b1f3f469d9622626436",
            "target/facebook_target.csv": "7bd96eafea3c2ca40f44bfa9e73642194696c21e38c7b29ed409c32ad14075cd",
        },
    )

    def load(self, sources: Sources) -> Graph:
        """Load all pages. Features are 0/1. Self-loops are dropped."""
        edge_table, feature_lists, targets = sources.get_all(self.files)
        with targets.open(encoding="utf-8", newline="") as table:
            kinds = {int(page["id"]): KINDS.index(page["page_type"]) for page in csv.DictReader(table)}
        labels = np.array([kinds[page] for page in range(len(kinds))], np.int64)

        pages: dict[str, list[int]] = json.loads(feature_lists.read_text(encoding="utf-8"))
        rows = np.repeat([int(page) for page in pages], [len(features) for features in pages.values()])
        columns = np.concatenate([np.array(features, np.int64) for features in pages.values()])
        shape = (len(labels), int(columns.max()) + 1)
        features = sparse.csr_matrix((np.ones(len(columns), np.float32), (rows, columns)), shape)

        pairs = np.loadtxt(edge_table, np.int64, delimiter=",", skiprows=1, ndmin=2).T
        edges = undirected(pairs, len(labels))
        return Graph(features, labels, edges, len(KINDS), closed_neighbourhoods(edges, len(labels)))


class CoraWhole(_NeighbourhoodGraph):
    """Cora, whole: 2,708 papers, 1,433 words, 7 topics, 5,278 citations, 2,590 neighbourhoods."""

    name = "cora-whole"
    title = "Cora (whole)"
    homepage, licence = Cora.homepage, Cora.licence
    embedded = True
    archive: ClassVar[str] = "cora"
    protocol = study_protocol(10)

    def load(self, sources: Sources) -> Graph:
        """Load the whole graph from the package. Features are 0/1."""
        graph = read_embedded(self.archive)
        return replace(graph, hyperedges=closed_neighbourhoods(graph.edges, len(graph.labels)))


class CiteSeerWhole(CoraWhole):
    """CiteSeer, whole: 3,327 papers, 3,703 words, 6 topics, 4,552 citations, 2,996 neighbourhoods."""

    name = "citeseer-whole"
    title = "CiteSeer (whole)"
    archive = "citeseer"
