"""Small data sets for the tests of federations, made in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.data import Data, Graph, Hypergraph, Images, Ragged
from bench.dataset import Dataset
from bench.sources import Sources
from bench.spec import ClientSettings, Protocol

CIRCLE = """
import numpy as np

from bench.data import Hypergraph, Ragged
from bench.dataset import Dataset
from bench.spec import ClientSettings, Protocol

class Circle(Dataset):
    name, title, family, homepage = "circle", "Circle", "hypergraph", "https://example.org"
    scenarios = ("label-dirichlet",)
    protocol = Protocol(rounds=6, local_epochs=2, split=(30, 20, 40), initial="common")
    client = ClientSettings(model="hgnn", hidden=4)

    def load(self, sources):
        nodes = np.arange(60)
        hyperedges = Ragged.of([(nodes[:3] + first) % 60 for first in nodes])
        return Hypergraph(np.eye(60, dtype=np.float32), nodes % 2, hyperedges, 2)
"""
"""A plug-in, the data set 'circle': every three neighbours on a circle of two classes in turns."""


def undirected(pairs: set[tuple[int, int]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    both = sorted({(u, v) for a, b in pairs for u, v in ((a, b), (b, a)) if u != v})
    return np.array(both, np.int64).reshape(-1, 2).T


def random_graph(nodes: int, degree: float = 6.0, classes: int = 4, seed: int = 0) -> Graph:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, nodes, (2, int(nodes * degree / 2)))
    pairs = {(int(u), int(v)) for u, v in ends.T} | {(i, i + 1) for i in range(nodes - 1)}
    features = rng.random((nodes, 5)).astype(np.float32)
    return Graph(features, rng.integers(0, classes, nodes), undirected(pairs), classes)


def random_hypergraph(nodes: int = 120, hyperedges: int = 60, seed: int = 0) -> Hypergraph:
    rng = np.random.default_rng(seed)
    lists = [rng.permutation(nodes)[: rng.integers(2, 7)] for _ in range(hyperedges)]
    features = rng.random((nodes, 5)).astype(np.float32)
    return Hypergraph(features, rng.integers(0, 3, nodes), Ragged.of(lists), 3)


def random_images(items: int = 400, seed: int = 0) -> Images:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (items, 1, 2, 2)).astype(np.uint8)
    return Images(pixels, np.arange(items) % 10, 10)


def toy(data: Data) -> type[Dataset]:
    """A data set called 'toy' that counts how often it is loaded."""
    kinds = {Graph: "graph", Hypergraph: "hypergraph", Images: "images"}

    class Toy(Dataset):
        name = "toy"
        title = "Toy"
        family = kinds[type(data)]  # type: ignore[assignment]
        homepage = ""
        scenarios = ()
        protocol = Protocol()
        client = ClientSettings()
        loads = 0

        def load(self, sources: Sources) -> Data:
            type(self).loads += 1
            return data

    return Toy
