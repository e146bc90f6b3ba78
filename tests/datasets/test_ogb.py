"""ogbn-arxiv from tables made by hand."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.data import Graph
from bench.dataset import DATASETS, Dataset
from bench.errors import NoDataError, RequestError
from bench.sources import Sources

from .raw_data import variant


def write_gz(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def arxiv(tmp_path: Path) -> type[Dataset]:
    """Six papers, five citations of which one is there both ways; papers 4 and 5 cite nothing else."""
    generator = np.random.default_rng(0)
    features = generator.normal(size=(6, 128)).astype(np.float32)
    np.save(tmp_path / "features.npy", features)
    texts = {
        "num-node-list.csv.gz": "6\n",
        "num-edge-list.csv.gz": "5\n",
        "node-label.csv.gz": "2\n0\n1\n2\n0\n1\n",
        "edge.csv.gz": "3,0\n0,3\n1,2\n0,1\n5,4\n",
        "node-feat.csv.gz": "".join(",".join(f"{value:.9g}" for value in row) + "\n" for row in features),
    }
    kind = DATASETS.named("ogbn-arxiv")
    sums = {name: write_gz(tmp_path / "ogbn-arxiv" / "raw" / name, text) for name, text in texts.items()}
    files = tuple(
        replace(file, sha256=sums[Path(file.path).name] if file.sha256 else None) for file in kind.files
    )
    return variant(kind, files=files)


def load_arxiv(arxiv: type[Dataset], root: Path) -> Graph:
    graph = arxiv().load(Sources((root,), download=False))
    assert isinstance(graph, Graph)
    return graph


@pytest.mark.parametrize("folder", ["ogbn-arxiv", "ogbn_arxiv", "arxiv"])
def test_arxiv_is_made_undirected_and_left_unnormalised(
    folder: str, arxiv: type[Dataset], tmp_path: Path
) -> None:
    (tmp_path / "ogbn-arxiv").rename(tmp_path / folder)  # OGB's own name, or that of its archive
    graph = load_arxiv(arxiv, tmp_path)
    assert graph.edges.T.tolist() == [[0, 1], [0, 3], [1, 0], [1, 2], [2, 1], [3, 0]]
    assert graph.labels.tolist() == [2, 0, 1, 2]
    assert graph.classes == 3
    np.testing.assert_array_equal(graph.features, np.load(tmp_path / "features.npy")[:4])
    assert graph.features.dtype == np.float32


def test_missing_edges_and_features_are_named(arxiv: type[Dataset], tmp_path: Path) -> None:
    names = [f"ogbn-arxiv/raw/{name}" for name in ("edge.csv.gz", "node-feat.csv.gz")]
    for name in names:
        (tmp_path / name).unlink()
    with pytest.raises(NoDataError, match=rf"^missing {', '.join(names)};.* ogbn-arxiv/arxiv\.zip"):
        load_arxiv(arxiv, tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("edge.csv.gz", "0,1\n", "expected 5 rows of 2 columns, found 1 of 2"),
        ("edge.csv.gz", "0,1\n" * 4 + "0,x\n", "cannot be read"),
        ("node-feat.csv.gz", "0.5\n" * 6, "expected 6 rows of 128 columns, found 6 of 1"),
        ("node-feat.csv.gz", "", "cannot be read"),  # its end is cut off
    ],
)
def test_damaged_edges_or_features_are_refused(
    name: str, text: str, message: str, arxiv: type[Dataset], tmp_path: Path
) -> None:
    path = tmp_path / "ogbn-arxiv" / "raw" / name
    if text:
        write_gz(path, text)
    else:
        path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RequestError, match=message):
        load_arxiv(arxiv, tmp_path)
