"""The synthetic graph has the counts it is named after, and is a proper graph."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from bench.dataset import DATASETS
from bench.own_data import made_right
from bench.sources import Sources


@pytest.mark.slow
def test_arxiv_size_has_the_published_counts_and_is_one_seeded_graph() -> None:
    dataset = DATASETS.named("arxiv-size")
    graph = dataset().load(Sources(()))
    same, done = made_right(graph, "graph")  # sorted, both directions, no loops, no repeats
    assert not done
    assert np.array_equal(same.edges, graph.edges)
    nodes = len(graph.labels)
    assert (nodes, graph.edges.shape[1], graph.features.shape) == (169_343, 2_315_598, (169_343, 128))
    assert (graph.classes, int(graph.labels.min()), int(graph.labels.max())) == (40, 0, 39)
    matrix = coo_matrix((np.ones(graph.edges.shape[1]), tuple(graph.edges)), (nodes, nodes))
    assert connected_components(matrix, directed=False, return_labels=False) == 1
    assert np.array_equal(dataset().load(Sources(())).edges, graph.edges)


def test_cora_tenfold_has_ten_times_the_nodes_and_edges_of_cora() -> None:
    cora = DATASETS.named("cora")().load(Sources(()))
    graph = DATASETS.named("cora-tenfold")().load(Sources(()))
    assert not made_right(graph, "graph")[1]
    assert len(graph.labels) == 10 * len(cora.labels)
    assert graph.edges.shape[1] == 10 * cora.edges.shape[1]
    assert (graph.classes, graph.features.shape[1]) == (cora.classes, cora.features.shape[1])
    filled = [one.features.nnz / one.features.shape[0] for one in (cora, graph)]
    assert filled[1] == pytest.approx(filled[0], rel=0.05)
