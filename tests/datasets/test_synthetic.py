"""The synthetic graphs have the counts that they are named after, and are proper graphs."""

from __future__ import annotations

import numpy as np
import pytest

from bench.data import Graph
from bench.dataset import DATASETS
from bench.own_data import largest_component, made_right
from bench.sources import Sources


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cora-tenfold", (10 * 2485, 10 * 10_138, 1433, 7)),
        pytest.param("arxiv-size", (169_343, 2_315_598, 128, 40), marks=pytest.mark.slow),
    ],
)
def test_it_has_the_counts_of_its_name_and_is_one_seeded_graph(name: str, counts: tuple[int, ...]) -> None:
    graph = DATASETS.named(name)().load(Sources(()))
    assert isinstance(graph, Graph)
    assert not made_right(graph, "graph")[1]  # sorted, both directions, no loops, no repeats
    nodes = len(graph.labels)
    assert (nodes, graph.edges.shape[1], graph.features.shape[1], graph.classes) == counts
    assert np.unique(graph.labels).tolist() == list(range(graph.classes))
    assert len(largest_component(graph).labels) == nodes
    again = DATASETS.named(name)().load(Sources(()))
    assert isinstance(again, Graph)
    assert np.array_equal(again.edges, graph.edges)


def test_cora_tenfold_has_as_many_words_a_node_as_cora() -> None:
    graphs = (DATASETS.named(name)().load(Sources(())) for name in ("cora", "cora-tenfold"))
    filled = [graph.features.nnz / graph.features.shape[0] for graph in graphs if isinstance(graph, Graph)]
    assert filled[1] == pytest.approx(filled[0], rel=0.05)
