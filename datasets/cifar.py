"""CIFAR-10, complete and as a sample.

Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009; prepared as the FedAGHN
study does: training and test images are merged, in file order.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

import numpy as np

from bench.data import Images
from bench.dataset import Dataset
from bench.sources import RawFile, Sources
from bench.spec import ClientSettings, Protocol

from ._pickles import read_pickle

FOLDER = "cifar-10-batches-py"
BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")

ARCHIVE = RawFile(
    path="cifar10/cifar-10-python.tar.gz",
    sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    also=("cifar-10-python.tar.gz",),
)


class _Batches(Dataset, ABC):
    family = "images"
    homepage = "https://www.cs.toronto.edu/~kriz/cifar.html"
    scenarios = ("dirichlet0.1",)
    protocol = Protocol(rounds=200, local_epochs=5, split=(70, 10, 20), initial="common")
    client = ClientSettings(
        model="cnn", hidden=512, dropout=0, optimizer="sgd", learning_rate=0.01, weight_decay=0, batch_size=64
    )

    def load(self, sources: Sources) -> Images:
        """Five training batches, then the test batch: pixels ``[n, 3, 32, 32]`` (red, green, blue)."""
        batches = [read_pickle(path) for path in sources.get_all(self.files)]
        pixels = np.concatenate([batch["data"] for batch in batches]).reshape(-1, 3, 32, 32)
        labels = np.concatenate([np.array(batch["labels"], np.int64) for batch in batches])
        return Images(pixels, labels, classes=10)


class Cifar10(_Batches):
    """CIFAR-10: 60,000 colour images of 32 x 32 pixels, 10 classes; torchvision's folder is read."""

    name = "cifar10"
    title = "CIFAR-10"
    files: ClassVar = tuple(
        RawFile(
            path=f"cifar10/{FOLDER}/{batch}",
            md5=md5,
            also=(f"{FOLDER}/{batch}",),
            archive=ARCHIVE,
            member=f"{FOLDER}/{batch}",
        )
        for batch, md5 in zip(
            BATCHES,
            (
                "c99cafc152244af753f735de768cd75f",
                "d4bba439e000b95fd0a9bffe97cbabec",
                "54ebc095f3ab1f0389bbae665268c751",
                "634d18415352ddfa80567beed471001a",
                "482c414d41f54cd18b22e5b47cb7c3cb",
                "40351d587109b95175f43aff81a1287e",
            ),
            strict=True,
        )
    )


class Cifar10Sample(_Batches):
    """The first 520 training and 85 test images of each class of CIFAR-10: for trying things out."""

    name = "cifar10-sample"
    title = "CIFAR-10 (sample)"
    files: ClassVar = tuple(
        RawFile(path=f"cifar10-sample/{FOLDER}/{batch}", sha256=sha256, also=(f"{FOLDER}/{batch}",))
        for batch, sha256 in zip(
            BATCHES,
            (
                "d09a36d0a28ffc1f40f741a13e34659106f3fb77e283b725eecf3b868d6c3ee4",
                "e680b013d7603cd9629eb950dedbe3dcec9a8e4a38748f3ead816c462568d118",
                "08d1ff11ef5d2c91e52d07ff05f085337adfcd247ba19346ff9496ff6c33a2ea",
                "c0c9cfdc07b8b8ac61d986b0f1ecf780d4d9bcd2ba9a0db271e86f4704be3b7b",
                "e3a976d1795e44b431276454a3527f033e8a6e06bd0ea1d624e78344b6655a29",
                "a02d63e717f3d641d99e4b2b659cbc728b29b7f99266e26c745a6272be35071b",
            ),
            strict=True,
        )
    )
