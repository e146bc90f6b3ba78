"""Computers and Photo: the Amazon co-purchase graphs.

Shchur, Mumme, Bojchevski, Günnemann, "Pitfalls of Graph Neural Network Evaluation", 2018.
"""

from __future__ import annotations

from abc import ABC
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy import sparse

from bench.data import Graph
from bench.dataset import Dataset
from bench.own_data import undirected
from bench.sources import RawFile, Sources
from bench.spec import ClientSettings, Protocol

from ._published import SCENARIOS, studied


def read_raw(path: Path) -> Graph:
    """The whole graph from the raw file, as PyG's ``Amazon``: features 1 where above 0, edges both ways."""
    with np.load(path, allow_pickle=False) as raw:
        features = sparse.csr_matrix(
            (raw["attr_data"], raw["attr_indices"], raw["attr_indptr"]), raw["attr_shape"]
        )
        links = sparse.csr_matrix((raw["adj_data"], raw["adj_indices"], raw["adj_indptr"]), raw["adj_shape"])
        labels = raw["labels"].astype(np.int64)
    words = sparse.csr_matrix(features > 0, dtype=np.float32)
    pairs = links.tocoo()
    edges = undirected(np.stack([pairs.row, pairs.col]), len(labels))
    return Graph(words, labels, edges, int(labels.max()) + 1)


class _CoPurchases(Dataset, ABC):
    family = "graph"
    homepage = "https://github.com/shchur/gnn-benchmark"
    licence = "MIT (LICENSE of its repository)"
    scenarios = SCENARIOS
    client = ClientSettings()

    def load(self, sources: Sources) -> Graph:
        """The largest component with normalised features."""
        return studied(read_raw(sources.get(self.files[0])), self.name)


def _raw_file(name: str, sha256: str) -> tuple[RawFile, ...]:
    file = f"amazon_electronics_{name.lower()}.npz"
    url = f"https://github.com/shchur/gnn-benchmark/raw/master/data/npz/{file}"
    return (RawFile(f"amazon/{name}/raw/{file}", sha256, url),)


class Computers(_CoPurchases):
    """Computers: 13,381 products bought together, 767 words of their reviews, 10 categories."""

    name = "computers"
    title = "Computers"
    protocol = Protocol(rounds=100, local_epochs=10)
    files: ClassVar = _raw_file(
        "Computers", "736ba1d9fd85eac2da83a5ad25c463f04b0031a6ca01563f90a7099d9e8ffb2c"
    )


class Photo(_CoPurchases):
    """Photo: 7,487 products bought together, 745 words of their reviews, 8 categories."""

    name = "photo"
    title = "Photo"
    protocol = Protocol(rounds=150, local_epochs=10)
    files: ClassVar = _raw_file("Photo", "bdb1feb8e6ff42ee44024b04479145029c563fd42fc31bff80af20887ba0439a")
