"""CIFAR-10 and CIFAR-100, complete and as samples, and what all image sets of the FedAGHN study share.

Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009; prepared as the FedAGHN
study does: training and test images are merged, in file order (image facts 1.1, 1.2).
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.data import Images
from bench.dataset import Dataset
from bench.sources import RawFile, Sources
from bench.spec import ClientSettings, Protocol

from ._pickles import read_pickle

TEN = "cifar-10-batches-py"


class ImageStudySet(Dataset, ABC):
    """An image set of the FedAGHN study. ``hyper`` is what it states in the footnote of its Section 4."""

    family = "images"
    scenarios = (
        "dirichlet0.1",
        "pathological",
        "case-study",
        "dirichlet0.1-released",
        "pathological-released",
    )
    protocol = Protocol(rounds=200, local_epochs=5, split=(70, 10, 20), initial="common")
    client = ClientSettings(
        model="cnn",
        hidden=512,
        dropout=0,
        optimizer="sgd",
        learning_rate=0.01,
        weight_decay=0,
        batch_size=64,
    )
    hyper: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "fedavg": {"weights": "samples"},
        "fedprox": {"weights": "samples", "mu": 0.01},
        "pfedhn": {
            "learning_rate": 0.005,
            "momentum": 0.0,
            "weight_decay": 0.0,
            "output": "residual",
            "combine": "sum",
        },
    }


def _members(home: str, archive_name: str, sha256: str, md5: Mapping[str, str]) -> tuple[RawFile, ...]:
    """Members of an archive, in the folder ``home`` or in torchvision's folder."""
    address = f"https://www.cs.toronto.edu/~kriz/{archive_name}"
    archive = RawFile(f"{home}/{archive_name}", sha256, address, also=(archive_name,))
    return tuple(
        RawFile(f"{home}/{name}", md5=digest, also=(name,), archive=archive, member=name)
        for name, digest in md5.items()
    )


def _of_sample(home: str, sha256: Mapping[str, str]) -> tuple[RawFile, ...]:
    """Files of a sample, in the folder ``home`` or directly in the data root."""
    return tuple(RawFile(f"{home}/{name}", digest, also=(name,)) for name, digest in sha256.items())


def _read(path: Path, key: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Pixels ``[n, 3, 32, 32]`` (red, green, blue) and classes ``[n]``. ``key`` names the classes."""
    batch = read_pickle(path)
    return np.asarray(batch["data"], np.uint8).reshape(-1, 3, 32, 32), np.array(batch[key], np.int64)


class _Cifar(ImageStudySet, ABC):
    """``files`` are pickles with labels under ``key``; the last one has the test images.

    A sample also has ``.npy`` files: first the labels of all training and of all test images, then the
    positions of the training and of the test images that it contains.
    """

    homepage = "https://www.cs.toronto.edu/~kriz/cifar.html"
    licence = "none stated on its page, which asks for a citation of the report of 2009"
    classes: ClassVar[int]
    key: ClassVar[str]

    def load(self, sources: Sources) -> Images:
        """Pixels ``[n, 3, 32, 32]`` of the training images, then of the test images."""
        paths = sources.get_all(self.files)
        parts = [_read(path, self.key) for path in paths if path.suffix != ".npy"]
        pixels, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        index = [np.load(path, allow_pickle=False) for path in paths if path.suffix == ".npy"]
        if not index:
            return Images(pixels, labels, self.classes)
        train, test, train_items, test_items = (array.astype(np.int64) for array in index)
        population = np.concatenate([train, test])
        positions = np.concatenate([train_items, len(train) + test_items])
        return Images(pixels, labels, self.classes, population, positions)


class Cifar10(_Cifar):
    """CIFAR-10: 60,000 colour images of 32 x 32 pixels, 10 classes; torchvision's folder is read."""

    name = "cifar10"
    title = "CIFAR-10"
    classes = 10
    key = "labels"
    files = _members(
        "cifar10",
        "cifar-10-python.tar.gz",
        "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        {
            f"{TEN}/data_batch_1": "c99cafc152244af753f735de768cd75f",
            f"{TEN}/data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            f"{TEN}/data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            f"{TEN}/data_batch_4": "634d18415352ddfa80567beed471001a",
            f"{TEN}/data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
            f"{TEN}/test_batch": "40351d587109b95175f43aff81a1287e",
        },
    )


class Cifar10Sample(Cifar10):
    """The first 520 training and 85 test images of each class of CIFAR-10, and the labels of all."""

    name = "cifar10-sample"
    title = "CIFAR-10 (sample)"
    files = _of_sample(
        "cifar10-sample",
        {
            f"{TEN}/data_batch_1": "d09a36d0a28ffc1f40f741a13e34659106f3fb77e283b725eecf3b868d6c3ee4",
            f"{TEN}/data_batch_2": "e680b013d7603cd9629eb950dedbe3dcec9a8e4a38748f3ead816c462568d118",
            f"{TEN}/data_batch_3": "08d1ff11ef5d2c91e52d07ff05f085337adfcd247ba19346ff9496ff6c33a2ea",
            f"{TEN}/data_batch_4": "c0c9cfdc07b8b8ac61d986b0f1ecf780d4d9bcd2ba9a0db271e86f4704be3b7b",
            f"{TEN}/data_batch_5": "e3a976d1795e44b431276454a3527f033e8a6e06bd0ea1d624e78344b6655a29",
            f"{TEN}/test_batch": "a02d63e717f3d641d99e4b2b659cbc728b29b7f99266e26c745a6272be35071b",
            "train_labels_full.npy": "fad921ba16b0efeebb54393d1351545d1fe1a357f6f81324c821e3e11b956c70",
            "test_labels_full.npy": "19004b019bd095265b4ce6637c9ff979c66abcbc8e658a665f791b487cdea5eb",
            "train_sample_index.npy": "8eb2f0ad38b4ffd9fc84c3ab8a174d957fd35251735c3311980259a713aef5ad",
            "test_sample_index.npy": "5b5b80856b54be696b44a118b22edbb28dd8414dd69e557d102a32afd5bcbd1f",
        },
    )


class Cifar100(_Cifar):
    """CIFAR-100: 60,000 colour images of 32 x 32 pixels, 100 fine classes; torchvision's folder is read."""

    name = "cifar100"
    title = "CIFAR-100"
    classes = 100
    key = "fine_labels"
    files = _members(
        "cifar100",
        "cifar-100-python.tar.gz",
        "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
        {
            "cifar-100-python/train": "16019d7e3df5f24257cddd939b257f8d",
            "cifar-100-python/test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
        },
    )


class Cifar100Sample(Cifar100):
    """The first 50 training and 10 test images of each fine class of CIFAR-100, and the labels of all."""

    name = "cifar100-sample"
    title = "CIFAR-100 (sample)"
    files = _of_sample(
        "cifar100-sample",
        {
            "cifar-100-python/train": "da57cbe3add7c30338816303fcf548af20e4274b17cc8c6d849ac8a54f70dccc",
            "cifar-100-python/test": "d41b4f87dd18a0cea566355aac1ed611769ac042d4bf85998c0b7594fed86fea",
            "train_fine_labels_full.npy": "6034b309a18a5e30fd2b2e7c72d0d3f215eceff0c8090e65c0475e6a263572c5",
            "test_fine_labels_full.npy": "93aab9ea5f997326363d9b8d2cc8c79959aea6238706af79a3a0a80fa1c61546",
            "train_sample_index.npy": "3015b492e09c88f15663621e86747c4aceb1a6a74027db6a00328c13d45ec391",
            "test_sample_index.npy": "5c5d3d65f6ae2502ef9e7cd1bb2e8d259b4f08bd4dd180c60b48b694c5d74fd4",
        },
    )
