"""CoraCA: papers of Cora, joined by a hyperedge per author.

Yadati et al., "HyperGCN: A New Method of Training Graph Convolutional Networks on Hypergraphs",
NeurIPS 2019; prepared as the FedHGN study (arXiv 2408.05160) does.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bench.data import Hypergraph
from bench.sources import RawFile, Sources

from ._fedhgn import CleanedHypergraph, fedhgn_protocol
from ._pickles import csr, read_pickle
from ._prepare import clean, l1_normalise_rows

ORIGIN = "https://github.com/malllabiisc/HyperGCN/raw/de049387d8d8c9fe6ebab83cb4b49cacfd4ed534"


def _raw_file(name: str, sha256: str) -> RawFile:
    url = f"{ORIGIN}/data/coauthorship/cora/{name}.pickle"
    return RawFile(f"hypergraph/coraca/{name}.pickle", sha256, url)


FEATURES = _raw_file("features", "a20ab3c4903d6cf97d277f5ce8d26735e31d08c888cdd11e3f0a5bb78d7c0602")
AUTHORS = _raw_file("hypergraph", "777d661210bdd122a4ce25284e07c6368e875a28122e75dca912c631db0935f6")
TOPICS = _raw_file("labels", "0e6edd0d971dde22c1116fa662362262163a7a6d557eafd60ac6857de4569527")


class CoraCA(CleanedHypergraph):
    """CoraCA: 2,708 papers, 1,433 words, 7 topics, 970 distinct sets of papers that share an author."""

    name = "coraca"
    title = "CoraCA"
    homepage = "https://github.com/malllabiisc/HyperGCN"
    licence = "none stated in the README of its repository"
    protocol = fedhgn_protocol(10)
    files: ClassVar = (FEATURES, AUTHORS, TOPICS)

    def raw_hyperedges(self, sources: Sources) -> list[list[int]]:
        """The papers of every author, in the raw file's order."""
        papers: dict[str, list[int]] = read_pickle(sources.get(AUTHORS))
        return list(papers.values())

    def load(self, sources: Sources) -> Hypergraph:
        """All papers; rows of features sum to 1."""
        features, _, topics = sources.get_all(self.files)
        labels = np.array(read_pickle(topics), np.int64)
        hyperedges = clean(self.raw_hyperedges(sources))
        return Hypergraph(
            l1_normalise_rows(csr(read_pickle(features))), labels, hyperedges, int(labels.max()) + 1
        )
