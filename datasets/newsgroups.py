"""20News: postings to news groups, joined by the words that they hold.

The 100-word version of 20 Newsgroups as LEGCN publishes it (Yang et al., "Semi-supervised Hypergraph
Node Classification on Hypergraph Line Expansion", CIKM 2022); prepared as the FedHGN study
(arXiv 2408.05160) does.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import sparse

from bench.data import Hypergraph
from bench.sources import RawFile, Sources

from ._fedhgn import CleanedHypergraph, fedhgn_protocol
from ._prepare import clean, row_lists

ORIGIN = "https://github.com/ycq091044/LEGCN/raw/d03f4745370a7493b18fb65f6d46f71b436a027b/data/20newsW100"


def _raw_file(name: str, sha256: str) -> RawFile:
    return RawFile(f"hypergraph/news20/{name}", sha256, f"{ORIGIN}/{name}")


CONTENT = _raw_file("20newsW100.content", "99022653fbf1c22d29e71ca1b382ec41a74dc3c9661774096dc1776c0077cd46")
EDGES = _raw_file("20newsW100.edges", "b427937f20ab794e75e0a206f70bbe051ef60807a84f42cfa6cf7ee060acdf16")


class News20(CleanedHypergraph):
    """20News: 16,242 postings, 100 words, 4 groups of topics, the set of postings with each word."""

    name = "news20"
    title = "20News"
    homepage = "https://github.com/ycq091044/LEGCN"
    licence = "none stated in the README of its repository"
    protocol = fedhgn_protocol(1)
    files: ClassVar = (CONTENT, EDGES)

    def raw_hyperedges(self, sources: Sources) -> list[list[int]]:
        """The postings with every word, in the words' order."""
        postings, words = np.loadtxt(sources.get(EDGES), np.int64, ndmin=2).T
        words = words - words.min()  # the raw file numbers words on from the last posting
        return row_lists(sparse.csr_matrix((np.ones(len(words), np.int64), (words, postings))))

    def load(self, sources: Sources) -> Hypergraph:
        """All postings by id; features are 0/1, not normalised."""
        content, _ = sources.get_all(self.files)
        table = np.loadtxt(content, np.int64, ndmin=2)  # id, 100 words, class: not in the order of ids
        table = table[np.argsort(table[:, 0])]
        labels = table[:, -1].copy()
        words = sparse.csr_matrix(table[:, 1:-1], dtype=np.float32)
        return Hypergraph(words, labels, clean(self.raw_hyperedges(sources)), int(labels.max()) + 1)
