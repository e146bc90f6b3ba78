"""Facebook: pages of companies, governments, politicians and television shows that like each other.

Rozemberczki, Allen, Sarkar, "Multi-scale Attributed Node Embedding", Journal of Complex Networks 2021;
with the attenuated edges (half of all), as the FedHGN study (arXiv 2408.05160) has them.
"""

from __future__ import annotations

import csv
import json
from typing import ClassVar

import numpy as np
from scipy import sparse

from bench.data import Graph
from bench.own_data import undirected
from bench.sources import RawFile, Sources

from ._fedhgn import NeighbourhoodGraph, fedhgn_protocol
from ._prepare import closed_neighbourhoods

ORIGIN = "https://github.com/benedekrozemberczki/MUSAE/raw/5f901232957b6c9985d750aac48cda39a4b24285/input"

KINDS = ("company", "government", "politician", "tvshow")
"""The classes, in order of their ids."""


def _raw_file(name: str, sha256: str) -> RawFile:
    return RawFile(f"hypergraph/facebook/{name}", sha256, f"{ORIGIN}/{name}")


class Facebook(NeighbourhoodGraph):
    """Facebook: 22,470 pages, 4,714 features, 4 kinds, 85,424 attenuated edges, 22,407 neighbourhoods."""

    name = "facebook"
    title = "Facebook"
    homepage = "https://github.com/benedekrozemberczki/MUSAE"
    licence = "MIT (LICENSE of its repository)"
    protocol = fedhgn_protocol(0.8)
    files: ClassVar = (
        _raw_file(
            "attenuated_edges/facebook_edges.csv",
            "5e3bdf42994338da61431cbf4e6418f419b4b1bbd99762d4b0d37eea0b4562f0",
        ),
        _raw_file(
            "features/facebook.json", "ea870537646a93642a0008d38aa9bfeff02018070ba97b1f3f469d9622626436"
        ),
        _raw_file(
            "target/facebook_target.csv", "7bd96eafea3c2ca40f44bfa9e73642194696c21e38c7b29ed409c32ad14075cd"
        ),
    )

    def load(self, sources: Sources) -> Graph:
        """All pages; features are 0/1; self-loops are dropped."""
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
        hyperedges = closed_neighbourhoods(edges, len(labels))
        return Graph(features, labels, edges, len(KINDS), hyperedges)
