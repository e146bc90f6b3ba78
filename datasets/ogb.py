"""ogbn-arxiv: citations between computer-science papers, from OGB's raw files.

Hu et al., "Open Graph Benchmark: Datasets for Machine Learning on Graphs", NeurIPS 2020. Read
without the ``ogb`` package, which fails with torch 2.6 and newer.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.data import Graph, PublishedClients, PublishedKey, largest_component, undirected
from bench.dataset import Dataset
from bench.errors import RequestError
from bench.sources import RawFile, Sources
from bench.spec import ClientSettings, Protocol

from .subgraphs import FEDPUB, parts, samples

ARCHIVE = RawFile(
    path="ogbn-arxiv/arxiv.zip",
    sha256="49f85c801589ecdcc52cfaca99693aaea7b8af16a9ac3f41dd85a5f3193fe276",
    url="http://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip",
    also=("arxiv.zip",),
)


def _member(name: str, sha256: str | None = None) -> RawFile:
    return RawFile(
        path=f"ogbn-arxiv/raw/{name}",
        sha256=sha256,
        also=(f"ogbn_arxiv/raw/{name}", f"arxiv/raw/{name}"),
        archive=ARCHIVE,
        member=f"arxiv/raw/{name}",
    )


_OGB_EDGES = _member("edge.csv.gz")

EDGES = RawFile("ogbn-arxiv-edges/edge.csv.gz", also=(_OGB_EDGES.path, *_OGB_EDGES.also))
"""The citations in a form that others publish without features. The order differs, the graph is equal."""

PUBLISHED = RawFile(
    "partitions/published_arxiv.npz", "f828da4e0cc0ab58fa56629136f7e6217d820a62e19f6eb6ef7e16d57aa22a9f"
)
"""The clients made by FED-PUB's recipe from this graph (METIS 5.1.0, seed 1234)."""


def read_published(path: Path) -> dict[PublishedKey, PublishedClients]:
    """Read the nodes of the published clients. The file lacks their roles; no statistic needs these."""
    with np.load(path, allow_pickle=False) as arrays:
        published = {
            ("published", clients, FEDPUB): PublishedClients(parts(arrays[f"ogbn-arxiv.part.{clients}"]))
            for clients in (5, 10, 20)
        }
        for clients in (10, 30, 50):
            name = f"ogbn-arxiv.fedpub_overlapping.{clients}"
            nodes = samples(arrays[f"{name}.nodes"], arrays[f"{name}.sizes"])
            published["published-overlapping", clients, FEDPUB] = PublishedClients(nodes)
    return published


def read_table(path: Path, dtype: type[np.generic], columns: int, rows: int | None = None) -> NDArray[Any]:
    """Read a ``.csv.gz`` without header as ``[rows, columns]``.

    Raises:
        RequestError: the file is damaged or has another shape.
    """
    import pandas as pd  # slow to import, and needed here alone

    try:
        table = pd.read_csv(path, header=None).to_numpy(dtype)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise RequestError(f"{path} cannot be read ({error}); replace it by the original") from None
    if table.shape[1] != columns or rows not in (None, len(table)):
        raise RequestError(
            f"{path}: expected {'' if rows is None else f'{rows} rows of '}{columns} columns, "
            f"found {len(table)} of {table.shape[1]}; replace it by the original"
        )
    return table


class OgbnArxiv(Dataset):
    """ogbn-arxiv: 169,343 papers, 128 averaged word embeddings, 40 subject areas (connected)."""

    name = "ogbn-arxiv"
    title = "ogbn-arxiv"
    family = "graph"
    homepage = "https://ogb.stanford.edu/docs/nodeprop/#ogbn-arxiv"
    licence = "ODC-BY (as OGB states)"
    scenarios = ("non-overlapping", "overlapping")
    protocol = Protocol(rounds=150, local_epochs=10)
    client = ClientSettings()
    files: ClassVar = (
        _member("num-node-list.csv.gz", "9aa60a342efd209408933ace51e6b0a814e81c2894a993c44f9b173e477e2e82"),
        _member("num-edge-list.csv.gz", "430f1e00ae204bbb3208c5f494ab70170e9f2995fd3548d1754a74a8f59250d1"),
        _member("node-label.csv.gz", "b06e7cf75d909de66ce49bc4188a6dc525224f85dd6dcb36137de3d9321830d1"),
        _OGB_EDGES,
        _member("node-feat.csv.gz"),
    )

    def load(self, sources: Sources) -> Graph:
        """Load the largest component (the whole graph), made undirected. Features are not changed.

        Unpacked edges and features have no published checksum; only their archive has one. Their counts are
        checked against the two lists that have checksums.
        """
        *tables, feature_table = sources.get_all(self.files)
        graph = _structure(*tables)
        features = read_table(feature_table, np.float32, 128, len(graph.labels))
        return largest_component(replace(graph, features=features))

    def structure(self, sources: Sources) -> Graph:
        """Load the graph without features, from labels and edges only. If features are not available, these
        files may lie in the folder ``ogbn-arxiv-edges`` in OGB's layout. If the file of published clients is
        there, add the clients of the papers' tables of data sets.
        """
        graph = largest_component(_structure(*sources.get_all((*self.files[:3], EDGES))))
        if sources.at_hand(PUBLISHED) is None:
            return graph
        return replace(graph, published=read_published(sources.get(PUBLISHED)))


def _structure(node_list: Path, edge_list: Path, label_list: Path, edge_table: Path) -> Graph:
    """All papers and citations, undirected. Features have width 0."""
    nodes = int(read_table(node_list, np.int64, 1)[0, 0])
    citations = int(read_table(edge_list, np.int64, 1)[0, 0])
    labels = read_table(label_list, np.int64, 1, nodes).ravel()
    pairs = read_table(edge_table, np.int64, 2, citations).T
    return Graph(np.zeros((nodes, 0), np.float32), labels, undirected(pairs, nodes), int(labels.max()) + 1)
