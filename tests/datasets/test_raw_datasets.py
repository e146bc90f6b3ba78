from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from bench.data import Graph
from bench.dataset import DATASETS
from bench.errors import RequestError
from bench.sources import Sources

from .raw_data import load


# The largest components of facts 1.4: nodes, features, directed edges, classes.
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("pubmed", (19_717, 500, 88_648, 3)),
        ("computers", (13_381, 767, 491_556, 10)),
        ("photo", (7_487, 745, 238_086, 8)),
        # Table 1 of Platonov et al., which counts an edge once; Actor: Pei et al.
        ("minesweeper", (10_000, 7, 2 * 39_402, 2)),
        ("tolokers", (11_758, 10, 2 * 519_000, 2)),
        ("actor", (7_600, 932, 2 * 26_659, 5)),
        ("chameleon-filtered", (890, 2_325, 2 * 8_854, 5)),
        ("squirrel-filtered", (2_223, 2_089, 2 * 46_998, 5)),
    ],
)
def test_counts_of_the_largest_component(name: str, counts: tuple[int, ...], data_root: Path) -> None:
    graph = load(name, data_root)
    assert isinstance(graph, Graph)
    assert (*graph.features.shape, graph.edges.shape[1], graph.classes) == counts
    assert np.unique(graph.labels).tolist() == list(range(counts[3]))
    assert (np.diff(graph.edges[0] * len(graph.labels) + graph.edges[1]) > 0).all()


@pytest.mark.parametrize("name", ["pubmed", "coraca", "cifar10-sample"])
def test_a_changed_pickle_is_refused_before_it_is_opened(name: str, tmp_path: Path) -> None:
    for file in DATASETS.named(name).files:
        path = tmp_path / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps({}))
    with pytest.raises(RequestError, match="sha256") as caught:
        DATASETS.named(name)().load(Sources((tmp_path,), download=False))
    assert "\n" not in str(caught.value)
