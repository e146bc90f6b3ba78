from __future__ import annotations

import gzip
import hashlib
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.data import Data, Graph, Images
from bench.dataset import DATASETS, Dataset
from bench.datasets.planetoid import PARTS, read_raw
from bench.errors import NoDataError, RequestError
from bench.sources import RawFile, Sources


def load(name: str, root: Path) -> Data:
    kind = DATASETS.named(name)
    sources = Sources((root,), download=False)
    if not any(sources.at_hand(file) for file in kind.files):
        pytest.skip(f"the data root has no raw files of {name}")
    return kind().load(sources)


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


@pytest.mark.parametrize("name", ["Cora", "CiteSeer", "PubMed"])
def test_raw_planetoid_files_equal_pyg(name: str, planetoid_root: Path) -> None:
    from torch_geometric.io import read_planetoid_data

    folder = planetoid_root / name / "raw"
    original = read_planetoid_data(str(folder), name.lower())
    graph = read_raw({part: folder / f"ind.{name.lower()}.{part}" for part in PARTS})
    np.testing.assert_array_equal(graph.features.toarray(), original.x.numpy())
    np.testing.assert_array_equal(graph.labels, original.y.numpy())
    np.testing.assert_array_equal(graph.edges[:, np.lexsort(graph.edges)], original.edge_index.numpy())


def test_pubmed_features_equal_pyg_normalisation(data_root: Path) -> None:
    from torch_geometric.io import read_planetoid_data
    from torch_geometric.transforms import NormalizeFeatures

    graph = load("pubmed", data_root)
    assert isinstance(graph, Graph)
    original = NormalizeFeatures()(
        read_planetoid_data(str(data_root / "planetoid" / "PubMed" / "raw"), "pubmed")
    )
    np.testing.assert_allclose(graph.features.toarray(), original.x.numpy(), rtol=1e-6, atol=0)


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


@pytest.mark.parametrize("name", ["pubmed", "photo", "coraca"])
def test_nothing_is_written_into_the_data_root(name: str, data_root: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in data_root.rglob("*") if "tiny" not in path.parts[-1]}
    load(name, data_root)
    after = {path: path.stat().st_mtime_ns for path in data_root.rglob("*") if "tiny" not in path.parts[-1]}
    assert after == before


@pytest.mark.parametrize("name", ["pubmed", "coraca", "cifar10-sample"])
def test_a_changed_pickle_is_refused_before_it_is_opened(name: str, tmp_path: Path) -> None:
    for file in DATASETS.named(name).files:
        path = tmp_path / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps({}))
    with pytest.raises(RequestError, match="is damaged or another version: expected sha256") as caught:
        DATASETS.named(name)().load(Sources((tmp_path,), download=False))
    assert "\n" not in str(caught.value)


# --- ogbn-arxiv, fabricated: its edges and features are nowhere at hand ---------------------------


def write_gz(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def tiny_arxiv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    monkeypatch.setattr(kind, "files", files)
    return tmp_path


def load_arxiv(root: Path) -> Graph:
    graph = DATASETS.named("ogbn-arxiv")().load(Sources((root,), download=False))
    assert isinstance(graph, Graph)
    return graph


def test_arxiv_is_made_undirected_and_left_unnormalised(tiny_arxiv: Path) -> None:
    graph = load_arxiv(tiny_arxiv)
    assert graph.edges.T.tolist() == [[0, 1], [0, 3], [1, 0], [1, 2], [2, 1], [3, 0]]
    assert graph.labels.tolist() == [2, 0, 1, 2]
    assert graph.classes == 3
    np.testing.assert_array_equal(graph.features, np.load(tiny_arxiv / "features.npy")[:4])
    assert graph.features.dtype == np.float32


@pytest.mark.parametrize("folder", ["ogbn_arxiv", "arxiv"])
def test_the_folder_names_of_ogb_are_found(folder: str, tiny_arxiv: Path) -> None:
    (tiny_arxiv / "ogbn-arxiv").rename(tiny_arxiv / folder)
    assert len(load_arxiv(tiny_arxiv).labels) == 4


@pytest.mark.parametrize(
    "missing", [["edge.csv.gz"], ["node-feat.csv.gz"], ["edge.csv.gz", "node-feat.csv.gz"]]
)
def test_missing_edges_or_features_are_named(missing: list[str], tiny_arxiv: Path) -> None:
    for name in missing:
        (tiny_arxiv / "ogbn-arxiv" / "raw" / name).unlink()
    with pytest.raises(NoDataError) as caught:
        load_arxiv(tiny_arxiv)
    named = ", ".join(f"ogbn-arxiv/raw/{name}" for name in missing)
    assert str(caught.value).startswith(f"missing {named};")
    assert "ogbn-arxiv/arxiv.zip" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("edge.csv.gz", "0,1\n", "expected 5 rows of 2 columns, found 1 of 2"),
        ("edge.csv.gz", "0,1\n" * 4 + "0,6\n", "expected nodes 0 to 5"),
        ("edge.csv.gz", "0,1\n" * 4 + "0,x\n", "cannot be read"),
        ("node-feat.csv.gz", "0.5\n" * 6, "expected 6 rows of 128 columns, found 6 of 1"),
    ],
)
def test_damaged_edges_or_features_are_refused(name: str, text: str, message: str, tiny_arxiv: Path) -> None:
    write_gz(tiny_arxiv / "ogbn-arxiv" / "raw" / name, text)
    with pytest.raises(RequestError, match=message):
        load_arxiv(tiny_arxiv)


def test_a_truncated_file_is_refused(tiny_arxiv: Path) -> None:
    path = tiny_arxiv / "ogbn-arxiv" / "raw" / "node-feat.csv.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RequestError, match="cannot be read"):
        load_arxiv(tiny_arxiv)


def test_the_real_labels_without_edges_and_features(data_root: Path) -> None:
    if (data_root / "ogbn-arxiv" / "raw" / "edge.csv.gz").exists():
        graph = load("ogbn-arxiv", data_root)
        assert isinstance(graph, Graph)
        assert (len(graph.labels), graph.edges.shape[1], graph.classes) == (169_343, 2_315_598, 40)
    else:
        with pytest.raises(NoDataError, match=r"missing ogbn-arxiv/raw/edge\.csv\.gz, .*node-feat\.csv\.gz"):
            load("ogbn-arxiv", data_root)


# --- CIFAR ----------------------------------------------------------------------------------------


def batch(value: int, labels: list[int]) -> bytes:
    data = np.full((len(labels), 3072), value, np.uint8)
    data[:, 1024 + 32 * 5 + 7] = 200  # green, row 5, column 7
    return pickle.dumps({"data": data, "labels": labels, "batch_label": "x", "filenames": ["a"]}, 4)


@pytest.mark.parametrize("folder", ["cifar10/cifar-10-batches-py", "cifar-10-batches-py"])
def test_cifar_batches_are_merged_in_file_order(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = DATASETS.named("cifar10")
    files: list[RawFile] = []
    for number, file in enumerate(kind.files):
        content = batch(number, [number, 9 - number])
        path = tmp_path / folder / Path(file.path).name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        files.append(replace(file, md5=hashlib.md5(content).hexdigest()))
    monkeypatch.setattr(kind, "files", tuple(files))
    images = kind().load(Sources((tmp_path,), download=False))
    assert isinstance(images, Images)
    assert images.pixels.shape == (12, 3, 32, 32)
    assert images.pixels.dtype == np.uint8
    assert images.pixels[:, 0, 0, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]  # the test batch last
    assert np.argwhere(images.pixels[0] == 200).tolist() == [[1, 5, 7]]
    assert images.labels.tolist() == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5, 5, 4]
    assert images.classes == 10


def replace_files(kind: type[Dataset], root: Path, contents: list[bytes], patch: pytest.MonkeyPatch) -> None:
    """Files with these contents, whose sums are taken for the published ones."""
    files: list[RawFile] = []
    for file, content in zip(kind.files, contents, strict=True):
        path = root / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        files.append(replace(file, sha256=hashlib.sha256(content).hexdigest()))
    patch.setattr(kind, "files", tuple(files))


def test_cifar100_has_its_fine_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = []
    for fine in ([99, 3, 5], [7, 0]):
        data = np.array(fine, np.uint8)[:, None].repeat(3072, axis=1)
        both = {"data": data, "fine_labels": fine, "coarse_labels": [1] * len(fine), "filenames": []}
        contents.append(pickle.dumps(both, 4))
    kind = DATASETS.named("cifar100")
    replace_files(kind, tmp_path, contents, monkeypatch)
    images = kind().load(Sources((tmp_path,), download=False))
    assert isinstance(images, Images)
    assert images.labels.tolist() == images.pixels[:, 2, 31, 31].tolist() == [99, 3, 5, 7, 0]
    assert images.classes == 100


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "fine_labels": [0, 1]}, 4)[:-100],
        pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [0, 1]}, 4),
        pickle.dumps({"data": np.zeros((2, 3071), np.uint8), "fine_labels": [0, 1]}, 4),
        pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "fine_labels": [0]}, 4),
        pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "fine_labels": ["a", "b"]}, 4),
        pickle.dumps([1, 2], 4),
        b"",
    ],
)
def test_a_truncated_or_foreign_pickle_is_one_line(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = DATASETS.named("cifar100")
    replace_files(kind, tmp_path, [content, content], monkeypatch)
    with pytest.raises(RequestError, match="train is refused") as caught:
        kind().load(Sources((tmp_path,), download=False))
    assert "\n" not in str(caught.value)


def test_the_sample_is_not_taken_for_the_whole(data_root: Path) -> None:
    root = data_root / "cifar10-sample"
    if not root.exists():
        pytest.skip("the data root has no sample of CIFAR-10")
    with pytest.raises(NoDataError, match="is another file"):
        DATASETS.named("cifar10")().load(Sources((root,), download=False))


def test_the_sample_from_either_folder(data_root: Path) -> None:
    images = load("cifar10-sample", data_root)
    again = load("cifar10-sample", data_root / "cifar10-sample")
    assert isinstance(images, Images)
    assert isinstance(again, Images)
    assert images.pixels.shape == (6050, 3, 32, 32)
    assert np.bincount(images.labels).tolist() == [605] * 10
    np.testing.assert_array_equal(images.pixels, again.pixels)
    folder = data_root / "cifar10-sample"
    labels = np.load(folder / "train_labels_full.npy")[np.load(folder / "train_sample_index.npy")]
    np.testing.assert_array_equal(images.labels[:5200], labels)


@pytest.mark.parametrize(("name", "classes", "images"), [("cifar10", 10, 605), ("cifar100", 100, 60)])
def test_samples_know_all_labels(name: str, classes: int, images: int, data_root: Path) -> None:
    sample = load(f"{name}-sample", data_root)
    assert isinstance(sample, Images)
    assert sample.population is not None
    assert sample.positions is not None
    assert np.bincount(sample.labels).tolist() == [images] * classes
    assert np.bincount(sample.population).tolist() == [60_000 // classes] * classes
    np.testing.assert_array_equal(sample.population[sample.positions], sample.labels)


@pytest.mark.parametrize(
    ("family", "rounds", "model"),
    [("cifar10", 200, "cnn"), ("cifar100", 200, "cnn"), ("tiny-imagenet", 40, "resnet18")],
)
def test_image_sets_have_the_study_s_protocol(family: str, rounds: int, model: str) -> None:
    """Image facts 1.3 and 3; samples have the same."""
    for kind in (DATASETS.named(family), DATASETS.named(f"{family}-sample")):
        assert (kind.protocol.rounds, kind.protocol.local_epochs) == (rounds, 5)
        assert (kind.protocol.split, kind.protocol.initial) == ((70, 10, 20), "common")
        assert (kind.client.model, kind.client.batch_size, kind.client.learning_rate) == (model, 64, 0.01)
        assert (kind.client.optimizer, kind.client.weight_decay, kind.client.dropout) == ("sgd", 0, 0)
