"""DBLP4k: authors of DBLP, joined by the papers that they wrote and the terms of those papers.

The subset of Fu, Zhang, Meng, King, "MAGNN: Metapath Aggregated Graph Neural Network", WWW 2020, as
HeCo publishes it (Wang et al., KDD 2021); prepared as the FedHGN study (arXiv 2408.05160) does.

The study reads the library DHG's files, whose lists name an author once for each of his papers (the
published checksum of the list by conference fits no other reading; for terms it is inferred), and does
not remove repeats: ``dblp4k-repeats``. In ``dblp4k`` every author counts once.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy import sparse

from bench.data import Hypergraph
from bench.sources import RawFile, Sources

from ._fedhgn import CleanedHypergraph, fedhgn_protocol
from ._prepare import clean, l1_normalise_rows, row_lists

ORIGIN = "https://github.com/liun-online/HeCo/raw/20e8ca2042838877b2c815279920218b6bbea1db/data/dblp"


def _raw_file(name: str, sha256: str) -> RawFile:
    return RawFile(f"hypergraph/dblp4k/{name}", sha256, f"{ORIGIN}/{name}")


FEATURES = _raw_file("a_feat.npz", "997876bf8d90d29fdb90bf4801a9909893a9ee5646a85aeca079ce167595ec41")
AREAS = _raw_file("labels.npy", "817efdc3ebb9e96067b8770dad5894b06ecabde2ac95d4b17443985f0439fda7")
AUTHORS = _raw_file("pa.txt", "94cf38a92733d21664f55907305773bb6fb90dd9d1579392517596488f061382")
TERMS = _raw_file("pt.txt", "78f3d6f9a528ed112a2d29bd2a672cdf13a03779a87ce89856e6a622eda280b8")


def _incidence(path: Path) -> sparse.csr_matrix:
    """Papers by what they are listed with, from lines ``paper<TAB>other``: 1 where listed."""
    papers, neighbours = np.loadtxt(path, np.int64, ndmin=2).T
    return sparse.csr_matrix((np.ones(len(papers), np.int64), (papers, neighbours)))


class Dblp4k(CleanedHypergraph):
    """DBLP4k: 4,057 authors, 334 keywords, 4 areas, 6,242 distinct sets by paper and by term."""

    name = "dblp4k"
    title = "DBLP4k"
    homepage = "https://github.com/liun-online/HeCo"
    licence = "none stated in the README of its repository; the metadata of DBLP itself are CC0 1.0"
    protocol = fedhgn_protocol(6)
    files: ClassVar = (FEATURES, AREAS, AUTHORS, TERMS)
    multisets: ClassVar[bool] = False

    def raw_hyperedges(self, sources: Sources) -> list[list[int]]:
        """The authors of every paper, then the authors of all papers with every term, both by id."""
        authors, terms = (_incidence(path) for path in sources.get_all((AUTHORS, TERMS)))
        return row_lists(authors) + row_lists(sparse.csr_matrix(terms.T @ authors))

    def load(self, sources: Sources) -> Hypergraph:
        """All authors; rows of features sum to 1."""
        features, areas, *_ = sources.get_all(self.files)
        words = sparse.csr_matrix(sparse.load_npz(features), dtype=np.float32)
        labels = np.load(areas, allow_pickle=False).astype(np.int64)
        hyperedges = clean(self.raw_hyperedges(sources), self.multisets)
        return Hypergraph(l1_normalise_rows(words), labels, hyperedges, int(labels.max()) + 1, self.multisets)


class Dblp4kRepeats(Dblp4k):
    """DBLP4k whose terms name an author once for each of his papers: 6,338 hyperedges, 96 of one author."""

    name = "dblp4k-repeats"
    title = "DBLP4k, members repeated as released"
    multisets = True

    def raw_hyperedges(self, sources: Sources) -> list[list[int]]:
        """The authors of all papers with every term, paper after paper, then the authors of every paper.

        Terms come first, as released: of two hyperedges of the same authors cleaning keeps the first.
        """
        authors, terms = (_incidence(path) for path in sources.get_all((AUTHORS, TERMS)))
        authors_of = row_lists(authors)
        papers_with = row_lists(sparse.csr_matrix(terms.T))
        by_term = [[author for paper in papers for author in authors_of[paper]] for papers in papers_with]
        return by_term + authors_of
