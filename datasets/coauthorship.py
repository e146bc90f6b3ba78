"""CoraCA: papers of Cora, joined by a hyperedge per author.

Yadati et al., "HyperGCN: A New Method of Training Graph Convolutional Networks on Hypergraphs",
NeurIPS 2019; prepared as the FedHGN study (arXiv 2408.05160) does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from bench.data import Hypergraph, Ragged
from bench.dataset import Dataset
from bench.sources import RawFile, Sources
from bench.spec import ClientSettings, Protocol

from ._pickles import csr, read_pickle
from ._prepare import l1_normalise_rows


def clean(hyperedges: Iterable[list[int]]) -> Ragged:
    """Hyperedges of at least two nodes, each set of nodes once (its first time), nodes ascending."""
    distinct = dict.fromkeys(tuple(sorted(set(nodes))) for nodes in hyperedges if len(nodes) > 1)
    return Ragged.of([np.array(nodes, np.int64) for nodes in distinct])


def _raw_file(name: str, sha256: str) -> RawFile:
    url = f"https://github.com/malllabiisc/HyperGCN/raw/master/data/coauthorship/cora/{name}.pickle"
    return RawFile(f"hypergraph/coraca/{name}.pickle", sha256, url)


class CoraCA(Dataset):
    """CoraCA: 2,708 papers, 1,433 words, 7 topics, 970 distinct sets of papers that share an author."""

    name = "coraca"
    title = "CoraCA"
    family = "hypergraph"
    homepage = "https://github.com/malllabiisc/HyperGCN"
    scenarios = ("label-dirichlet",)
    protocol = Protocol(rounds=200, local_epochs=3, split=(10, 20, 40), initial="common", evaluate="epoch")
    client = ClientSettings(model="hgnn", hidden=16)
    files: ClassVar = (
        _raw_file("features", "a20ab3c4903d6cf97d277f5ce8d26735e31d08c888cdd11e3f0a5bb78d7c0602"),
        _raw_file("hypergraph", "777d661210bdd122a4ce25284e07c6368e875a28122e75dca912c631db0935f6"),
        _raw_file("labels", "0e6edd0d971dde22c1116fa662362262163a7a6d557eafd60ac6857de4569527"),
    )

    def load(self, sources: Sources) -> Hypergraph:
        """All papers, rows of features summing to 1, cleaned hyperedges in the raw file's order."""
        features, authors, topics = (read_pickle(path) for path in sources.get_all(self.files))
        labels = np.array(topics, np.int64)
        return Hypergraph(
            l1_normalise_rows(csr(features)), labels, clean(authors.values()), int(labels.max()) + 1
        )
