"""Amazon's graphs against another loader of the same files."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from bench.data import Graph

from .raw_data import load


@pytest.mark.parametrize("name", ["photo", "computers"])
def test_amazon_equals_pyg(name: str, data_root: Path, tmp_path: Path) -> None:
    from torch_geometric.datasets import Amazon
    from torch_geometric.transforms import Compose, LargestConnectedComponents, NormalizeFeatures

    graph = load(name, data_root)
    assert isinstance(graph, Graph)
    raw = Path("amazon") / name.capitalize()
    shutil.copytree(data_root / raw / "raw", tmp_path / raw / "raw")  # PyG writes beside what it reads
    data = Amazon(
        str(tmp_path / "amazon"), name, Compose([LargestConnectedComponents(), NormalizeFeatures()])
    )[0]
    np.testing.assert_array_equal(graph.features.toarray(), data.x.numpy())
    np.testing.assert_array_equal(graph.labels, data.y.numpy())
    np.testing.assert_array_equal(
        graph.edges, data.edge_index.numpy()[:, np.lexsort(data.edge_index.numpy()[::-1])]
    )
