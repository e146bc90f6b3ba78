"""The five graphs that all studies of subgraphs use, with the clients that FED-PUB and FedSheafHN made.

Cora, CiteSeer and PubMed: Yang, Cohen, Salakhutdinov, "Revisiting Semi-Supervised Learning with Graph
Embeddings", ICML 2016 (Planetoid). Cora and CiteSeer ship with the package; PubMed is read from its eight raw
files. Computers and Photo: Shchur, Mumme, Bojchevski, Günnemann, "Pitfalls of Graph Neural Network
Evaluation", 2018.

FED-PUB cuts the largest component with METIS 5.1.0 (default options) and draws everything else from
generators seeded with 1234; FedSheafHN runs the same code with the seed 123. ``NAME_published.npz`` holds
node numbers and roles alone (subgraph facts 11.1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.data import Graph, PublishedClients, PublishedKey, largest_component, undirected
from bench.dataset import Dataset
from bench.sources import Sources
from bench.spec import ClientSettings, Protocol

from ._pickles import csr, read_pickle
from ._prepare import normalise_rows, raw_files

FEDPUB = (20.0, 40.0, 40.0)
FEDSHEAFHN = (40.0, 30.0, 30.0)

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
"""Endings of Planetoid's raw files of a graph."""


def parts(labels: NDArray[np.int8]) -> tuple[NDArray[np.int64], ...]:
    """The nodes of every part, ascending; ``labels`` has the part of each node."""
    return tuple(np.flatnonzero(labels == part) for part in range(int(labels.max()) + 1))


def samples(nodes: NDArray[np.integer], sizes: NDArray[np.integer]) -> tuple[NDArray[np.int64], ...]:
    """The nodes of every client in the order of the draw; ``sizes`` has the number for each client."""
    return tuple(np.split(nodes.astype(np.int64), np.cumsum(sizes)[:-1]))


def unpack_published(file: IO[bytes]) -> dict[PublishedKey, PublishedClients]:
    """Read the clients of a file: (scenario, number of clients, split) -> clients.

    FedSheafHN assigns roles by permutations of its seed: the first for 10 and 30 clients, the second for 20
    and 50.
    """
    published: dict[PublishedKey, PublishedClients] = {}
    with np.load(file, allow_pickle=False) as arrays:
        for clients in (5, 10, 20):
            nodes = parts(arrays[f"parts.{clients}"])
            for scenario in ("published", "published-fresh"):
                roles = arrays[f"roles.{scenario}.{clients}"]
                published[scenario, clients, FEDPUB] = PublishedClients(nodes, roles)
        for clients in (10, 30, 50):
            nodes = samples(arrays[f"nodes.fedpub.{clients}"], arrays[f"sizes.fedpub.{clients}"])
            roles = arrays[f"roles.published-overlapping.{clients}"]
            published["published-overlapping", clients, FEDPUB] = PublishedClients(nodes, roles)
        for permutation, (few, many) in enumerate(((10, 30), (20, 50)), start=1):
            nodes = parts(arrays[f"parts.{few}"])
            published["published", few, FEDSHEAFHN] = PublishedClients(nodes, None, permutation)
            nodes = samples(arrays[f"nodes.fedsheafhn.{many}"], arrays[f"sizes.fedsheafhn.{many}"])
            published["published-overlapping", many, FEDSHEAFHN] = PublishedClients(nodes, None, permutation)
    return published


def _embedded(name: str) -> IO[bytes]:
    return (resources.files(__package__) / "embedded" / f"{name}.npz").open("rb")


def unpack(file: IO[bytes]) -> Graph:
    """Read a graph that ``scripts/make_embedded.py`` wrote: 0/1 features as bits, every edge once."""
    with np.load(file, allow_pickle=False) as arrays:
        bits = np.unpackbits(arrays["features"], axis=1, count=int(arrays["width"]))
        labels = arrays["labels"].astype(np.int64)
        edges = undirected(arrays["edges"], len(labels))
        return Graph(sparse.csr_matrix(bits, dtype=np.float32), labels, edges, int(arrays["classes"]))


def read_embedded(name: str) -> Graph:
    """Read the whole graph ``name`` from the package: 0/1 features, edges in both directions."""
    with _embedded(name) as file:
        return unpack(file)


def read_planetoid(paths: Mapping[str, Path]) -> Graph:
    """Read the whole graph from the raw files ``ind.NAME.PART``, given by part.

    The rules are those of PyG's ``Planetoid``. Test row ``i`` belongs to node ``test.index[i]``. All other
    rows come in order. Nodes without a row (15 in CiteSeer) have no features and class 0. Self-loops and
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


def read_amazon(path: Path) -> Graph:
    """Read the whole graph like PyG's ``Amazon``: features are 1 where above 0, edges go both ways."""
    with np.load(path, allow_pickle=False) as raw:
        features, links = (
            sparse.csr_matrix(
                (raw[f"{name}_data"], raw[f"{name}_indices"], raw[f"{name}_indptr"]), raw[f"{name}_shape"]
            )
            for name in ("attr", "adj")
        )
        labels = raw["labels"].astype(np.int64)
    words = sparse.csr_matrix(features > 0, dtype=np.float32)
    edges = undirected(np.stack(links.tocoo().coords), len(labels))
    return Graph(words, labels, edges, int(labels.max()) + 1)


class _Subgraphs(Dataset, ABC):
    family = "graph"
    scenarios = ("non-overlapping", "overlapping", "published", "published-fresh", "published-overlapping")
    client = ClientSettings()

    @abstractmethod
    def whole(self, sources: Sources) -> Graph:
        """Load the whole graph. Raises the same errors as ``load``."""

    def load(self, sources: Sources) -> Graph:
        """Load the largest component with normalised features and its published clients."""
        part = largest_component(self.whole(sources))
        with _embedded(f"{self.name}_published") as file:
            return replace(part, features=normalise_rows(part.features), published=unpack_published(file))


class Cora(_Subgraphs):
    """Cora: 2,485 papers on machine learning, 1,433 words, 7 topics (largest component)."""

    name = "cora"
    title = "Cora"
    homepage = "https://github.com/kimiyoung/planetoid"
    licence = "MIT (LICENSE of its repository)"
    embedded = True
    protocol = Protocol(rounds=100, local_epochs=3)

    def whole(self, sources: Sources) -> Graph:
        """Read from the package."""
        return read_embedded(self.name)


class CiteSeer(Cora):
    """CiteSeer: 2,120 papers on computer science, 3,703 words, 6 topics (largest component)."""

    name = "citeseer"
    title = "CiteSeer"


class PubMed(_Subgraphs):
    """PubMed: 19,717 papers on diabetes, TF-IDF of 500 words, 3 topics (connected)."""

    name = "pubmed"
    title = "PubMed"
    homepage, licence = Cora.homepage, Cora.licence
    protocol = Protocol(rounds=100, local_epochs=15)
    files = raw_files(
        "planetoid/PubMed/raw",
        f"{homepage}/raw/master/data",
        {
            "ind.pubmed.x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
            "ind.pubmed.tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
            "ind.pubmed.allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
            "ind.pubmed.y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
            "ind.pubmed.ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
            "ind.pubmed.ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
            "ind.pubmed.graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
            "ind.pubmed.test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
        },
    )

    def whole(self, sources: Sources) -> Graph:
        """Read from Planetoid's files."""
        return read_planetoid(dict(zip(PARTS, sources.get_all(self.files), strict=True)))


class Computers(_Subgraphs):
    """Computers: 13,381 products bought together, 767 words of their reviews, 10 categories."""

    name = "computers"
    title = "Computers"
    homepage = "https://github.com/shchur/gnn-benchmark"
    licence = "MIT (LICENSE of its repository)"
    protocol = Protocol(rounds=100, local_epochs=10)
    files = raw_files(
        "amazon/Computers/raw",
        f"{homepage}/raw/master/data/npz",
        {
            "amazon_electronics_computers.npz": (
                "736ba1d9fd85eac2da83a5ad25c463f04b0031a6ca01563f90a7099d9e8ffb2c"
            )
        },
    )

    def whole(self, sources: Sources) -> Graph:
        """From the raw file."""
        return read_amazon(sources.get(self.files[0]))


class Photo(Computers):
    """Photo: 7,487 products bought together, 745 words of their reviews, 8 categories."""

    name = "photo"
    title = "Photo"
    protocol = Protocol(rounds=150, local_epochs=10)
    files = raw_files(
        "amazon/Photo/raw",
        f"{Computers.homepage}/raw/master/data/npz",
        {"amazon_electronics_photo.npz": "bdb1feb8e6ff42ee44024b04479145029c563fd42fc31bff80af20887ba0439a"},
    )
