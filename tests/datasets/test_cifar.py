"""CIFAR's batches from files made by hand, its samples where they are at hand, the image sets' protocol."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.data import Images
from bench.dataset import DATASETS, Dataset
from bench.sources import RawFile, Sources

from .raw_data import load, variant


def with_files(kind: type[Dataset], root: Path, contents: list[bytes]) -> type[Dataset]:
    """The data set of files with these contents, whose sums are taken for the published ones."""
    files: list[RawFile] = []
    for file, content in zip(kind.files, contents, strict=True):
        path = root / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        files.append(replace(file, md5=None, sha256=hashlib.sha256(content).hexdigest()))
    return variant(kind, files=tuple(files))


@pytest.mark.parametrize("folder", ["cifar10", ""])
def test_cifar_batches_are_merged_in_file_order(folder: str, tmp_path: Path) -> None:
    contents = []
    for number in range(6):
        data = np.full((2, 3072), number, np.uint8)
        data[:, 1024 + 32 * 5 + 7] = 200  # green, row 5, column 7
        batch = {"data": data, "labels": [number, 9 - number], "batch_label": "x", "filenames": ["a"]}
        contents.append(pickle.dumps(batch, 4))
    kind = with_files(DATASETS.named("cifar10"), tmp_path, contents)
    images = kind().load(Sources((tmp_path / folder,), download=False))
    assert isinstance(images, Images)
    assert images.pixels.shape == (12, 3, 32, 32)
    assert images.pixels.dtype == np.uint8
    assert images.pixels[:, 0, 0, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]  # the test batch last
    assert np.argwhere(images.pixels[0] == 200).tolist() == [[1, 5, 7]]
    assert images.labels.tolist() == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5, 5, 4]
    assert images.classes == 10


def test_cifar100_has_its_fine_labels(tmp_path: Path) -> None:
    contents = []
    for fine in ([99, 3, 5], [7, 0]):
        data = np.array(fine, np.uint8)[:, None].repeat(3072, axis=1)
        both = {"data": data, "fine_labels": fine, "coarse_labels": [1] * len(fine), "filenames": []}
        contents.append(pickle.dumps(both, 4))
    kind = with_files(DATASETS.named("cifar100"), tmp_path, contents)
    images = kind().load(Sources((tmp_path,), download=False))
    assert isinstance(images, Images)
    assert images.labels.tolist() == images.pixels[:, 2, 31, 31].tolist() == [99, 3, 5, 7, 0]
    assert images.classes == 100


def test_the_sample_from_either_folder(data_root: Path) -> None:
    images = load("cifar10-sample", data_root)
    again = load("cifar10-sample", data_root / "cifar10-sample")
    assert isinstance(images, Images)
    assert isinstance(again, Images)
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
    assert sample.pixels.shape == (images * classes, 3, 32, 32)
    assert np.bincount(sample.labels).tolist() == [images] * classes
    assert np.bincount(sample.population).tolist() == [60_000 // classes] * classes
    np.testing.assert_array_equal(sample.population[sample.positions], sample.labels)


@pytest.mark.parametrize(
    ("name", "rounds", "model"),
    [("cifar10", 200, "cnn"), ("cifar100", 200, "cnn"), ("tiny-imagenet", 40, "resnet18")],
)
def test_image_sets_have_the_study_s_protocol(name: str, rounds: int, model: str) -> None:
    """Image facts 1.3 and 3; samples have the same."""
    for kind in (DATASETS.named(name), DATASETS.named(f"{name}-sample")):
        assert (kind.protocol.rounds, kind.protocol.local_epochs) == (rounds, 5)
        assert (kind.protocol.split, kind.protocol.initial) == ((70, 10, 20), "common")
        assert (kind.client.model, kind.client.batch_size, kind.client.learning_rate) == (model, 64, 0.01)
        assert (kind.client.optimizer, kind.client.weight_decay, kind.client.dropout) == ("sgd", 0, 0)
