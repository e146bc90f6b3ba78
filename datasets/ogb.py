"""ogbn-arxiv: citations between computer-science papers, from OGB's raw files.

Hu et al., "Open Graph Benchmark: Datasets for Machine Learning on Graphs", NeurIPS 2020. Read
without the ``ogb`` package, which fails with torch 2.6 and newer.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.data import Graph
from bench.dataset import Dataset
from bench.errors import RequestError
from bench.own_data import largest_component, undirected
from bench.sources import RawFile, Sources
from bench.spec import ClientSettings, Protocol

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


def read_table(path: Path, dtype: type[np.generic], columns: int, rows: int | None = None) -> NDArray[Any]:
    """A ``.csv.gz`` without header as ``[rows, columns]``.

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
        _member("edge.csv.gz"),
        _member("node-feat.csv.gz"),
    )

    def load(self, sources: Sources) -> Graph:
        """The largest component (the whole graph) made undirected; features are left as they are.

        Unpacked edges and features have no published checksum (only the archive has): their
        counts are checked against the two lists that have one.
        """
        node_list, edge_list, label_list, edge_table, feature_table = sources.get_all(self.files)
        nodes = int(read_table(node_list, np.int64, 1)[0, 0])
        citations = int(read_table(edge_list, np.int64, 1)[0, 0])
        labels = read_table(label_list, np.int64, 1, nodes).ravel()
        pairs = read_table(edge_table, np.int64, 2, citations).T
        features = read_table(feature_table, np.float32, 128, nodes)
        graph = Graph(features, labels, undirected(pairs, nodes), int(labels.max()) + 1)
        return largest_component(graph)
