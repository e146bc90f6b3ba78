from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.data import Graph

from .raw_data import load


# The largest components of facts 1.4: nodes, features, directed edges, classes.
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("pubmed", (19_717, 500, 88_648, 3)),
        ("computers", (13_381, 767, 491_556, 10)),
        ("photo", (7_487, 745, 238_086, 8)),
    ],
)
def test_counts_of_the_largest_component(name: str, counts: tuple[int, ...], data_root: Path) -> None:
    graph = load(name, data_root)
    assert isinstance(graph, Graph)
    assert (*graph.features.shape, graph.edges.shape[1], graph.classes) == counts
    assert np.unique(graph.labels).tolist() == list(range(counts[3]))
    assert (np.diff(graph.edges[0] * len(graph.labels) + graph.edges[1]) > 0).all()


@pytest.mark.parametrize("name", ["pubmed", "photo", "coraca"])
def test_nothing_is_written_into_the_data_root(name: str, data_root: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in data_root.rglob("*") if "tiny" not in path.parts[-1]}
    load(name, data_root)
    after = {path: path.stat().st_mtime_ns for path in data_root.rglob("*") if "tiny" not in path.parts[-1]}
    assert after == before
