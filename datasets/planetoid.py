"""Cora, CiteSeer and PubMed: the citation graphs of the Planetoid collection.

Yang, Cohen, Salakhutdinov, "Revisiting Semi-Supervised Learning with Graph Embeddings", ICML 2016.
Cora and CiteSeer ship with the package; PubMed is read from its eight raw files.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import IO, ClassVar

import numpy as np
from scipy import sparse

from bench.data import Graph
from bench.dataset import Dataset
from bench.own_data import undirected
from bench.sources import RawFile, Sources
from bench.spec import ClientSettings, Protocol

from ._fedhgn import NeighbourhoodGraph, fedhgn_protocol
from ._pickles import csr, read_pickle
from ._prepare import closed_neighbourhoods
from ._published import SCENARIOS, studied

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


def read_raw(paths: Mapping[str, Path]) -> Graph:
    """The whole graph from the raw files ``ind.NAME.PART``, given by part.

    As PyG's ``Planetoid``: test row ``i`` belongs to node ``test.index[i]``, all other rows come
    in order; nodes without a row (15 in CiteSeer) have no features and class 0; self-loops and
    repeated edges are dropped. Features are as published, not normalised.
    """
    known_rows, test = csr(read_pickle(paths["allx"])), csr(read_pickle(paths["tx"]))
    test_nodes = np.loadtxt(paths["test.index"], np.int64)
    rows = np.concatenate([np.arange(known_rows.shape[0]), test_nodes])
    nodes = int(rows.max()) + 1

    stack = sparse.vstack([known_rows, test]).tocoo()
    features = sparse.csr_matrix((stack.data, (rows[stack.row], stack.col)), (nodes, stack.shape[1]))
    features.eliminate_zeros()
    labels = np.zeros(nodes, np.int64)
    one_hot = np.concatenate([read_pickle(paths["ally"]), read_pickle(paths["ty"])])
    labels[rows] = one_hot.argmax(axis=1)

    neighbours: dict[int, list[int]] = read_pickle(paths["graph"])
    source = np.repeat(list(neighbours), [len(targets) for targets in neighbours.values()])
    target = np.concatenate([np.asarray(targets, np.int64) for targets in neighbours.values()])
    return Graph(features, labels, undirected(np.stack([source, target]), nodes), one_hot.shape[1])


def pack(graph: Graph, file: Path) -> None:
    """Write a graph with 0/1 features compactly: features as bits, every edge once; see ``unpack``."""
    np.savez_compressed(
        file,
        features=np.packbits(sparse.csr_matrix(graph.features).toarray() > 0, axis=1),
        width=np.int64(graph.features.shape[1]),
        labels=graph.labels.astype(np.uint8),
        edges=graph.edges[:, graph.edges[0] < graph.edges[1]].astype(np.uint16),
        classes=np.int64(graph.classes),
    )


def unpack(file: IO[bytes]) -> Graph:
    """Read the graph that ``pack`` wrote."""
    with np.load(file, allow_pickle=False) as arrays:
        bits = np.unpackbits(arrays["features"], axis=1, count=int(arrays["width"]))
        labels = arrays["labels"].astype(np.int64)
        edges = undirected(arrays["edges"], len(labels))
        return Graph(sparse.csr_matrix(bits, dtype=np.float32), labels, edges, int(arrays["classes"]))


def read_embedded(name: str) -> Graph:
    """The whole graph of that name from the package itself: 0/1 features, edges both ways."""
    with (resources.files(__package__) / "embedded" / f"{name}.npz").open("rb") as file:
        return unpack(file)


class _Citations(Dataset, ABC):
    family = "graph"
    homepage = "https://github.com/kimiyoung/planetoid"
    licence = "MIT (LICENSE of its repository)"
    scenarios = SCENARIOS
    client = ClientSettings()


class _Embedded(_Citations, ABC):
    embedded = True

    def load(self, sources: Sources) -> Graph:
        """The largest component with normalised features, from the package itself."""
        return studied(read_embedded(self.name), self.name)


class Cora(_Embedded):
    """Cora: 2,485 papers on machine learning, 1,433 words, 7 topics (largest component)."""

    name = "cora"
    title = "Cora"
    enlarged = "cora-tenfold"
    protocol = Protocol(rounds=100, local_epochs=3)


class CiteSeer(_Embedded):
    """CiteSeer: 2,120 papers on computer science, 3,703 words, 6 topics (largest component)."""

    name = "citeseer"
    title = "CiteSeer"
    protocol = Protocol(rounds=100, local_epochs=3)


class _Whole(NeighbourhoodGraph, ABC):
    homepage = "https://github.com/kimiyoung/planetoid"
    licence = "MIT (LICENSE of its repository)"
    embedded = True
    archive: ClassVar[str]

    def load(self, sources: Sources) -> Graph:
        """The whole graph with 0/1 features, from the package itself."""
        graph = read_embedded(self.archive)
        return replace(graph, hyperedges=closed_neighbourhoods(graph.edges, len(graph.labels)))


class CoraWhole(_Whole):
    """Cora, whole: 2,708 papers, 1,433 words, 7 topics, 5,278 citations, 2,590 neighbourhoods."""

    name = "cora-whole"
    title = "Cora (whole)"
    archive = "cora"
    protocol = fedhgn_protocol(10)


class CiteSeerWhole(_Whole):
    """CiteSeer, whole: 3,327 papers, 3,703 words, 6 topics, 4,552 citations, 2,996 neighbourhoods."""

    name = "citeseer-whole"
    title = "CiteSeer (whole)"
    archive = "citeseer"
    protocol = fedhgn_protocol(10)


def _raw_files(name: str, sums: Mapping[str, str]) -> tuple[RawFile, ...]:
    return tuple(
        RawFile(
            path=f"planetoid/{name}/raw/ind.{name.lower()}.{part}",
            sha256=sums[part],
            url=f"https://github.com/kimiyoung/planetoid/raw/master/data/ind.{name.lower()}.{part}",
        )
        for part in PARTS
    )


class PubMed(_Citations):
    """PubMed: 19,717 papers on diabetes, TF-IDF of 500 words, 3 topics (connected)."""

    name = "pubmed"
    title = "PubMed"
    protocol = Protocol(rounds=100, local_epochs=15)
    files: ClassVar = _raw_files(
        "PubMed",
        {
            "x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
            "tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
            "allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
            "y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
            "ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
            "ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
            "graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
            "test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
        },
    )

    def load(self, sources: Sources) -> Graph:
        """The largest component (the whole graph) with normalised features."""
        paths = dict(zip(PARTS, sources.get_all(self.files), strict=True))
        return studied(read_raw(paths), self.name)
