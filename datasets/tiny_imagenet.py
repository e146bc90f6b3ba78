"""Tiny-ImageNet, complete and as a sample.

Stanford's 200 classes of ImageNet at 64 x 64 pixels, prepared as the FedAGHN study does: training and
validation images are merged, the test images, which have no labels, are not used (image facts 1.1, 1.2).
"""

from __future__ import annotations

import zipfile
from abc import ABC
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from bench.data import Images
from bench.dataset import Dataset
from bench.sources import RawFile, Sources

from ._image_study import CLIENT, HYPER, PROTOCOL, SCENARIOS
from ._pictures import Place, decoded

FOLDER = "tiny-imagenet-200"
IDS, ANNOTATIONS = "wnids.txt", "val/val_annotations.txt"

ARCHIVE = RawFile(
    path=f"tiny-imagenet/{FOLDER}.zip",
    sha256="6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
    url=f"https://cs231n.stanford.edu/{FOLDER}.zip",
    also=(f"{FOLDER}.zip",),
)


class _File(NamedTuple):
    """An image of the complete set: its name below the folder, its class, and whether it is here."""

    name: str
    label: int
    held: bool


def _class_ids(path: Path) -> dict[str, int]:
    """Class index by id: its position among all ids in order."""
    ids = sorted(path.read_text(encoding="utf-8").split())
    return {name: label for label, name in enumerate(ids)}


def _training(classes: dict[str, int], images: int, held: int) -> Iterator[_File]:
    """So many images of every class, class by class; those with the lowest numbers are here."""
    for name, label in classes.items():
        for number in sorted(range(images), key=str):
            yield _File(f"train/{name}/images/{name}_{number}.JPEG", label, number < held)


def _validation(path: Path, classes: dict[str, int], held: int) -> list[_File]:
    """All images of the annotations; the first ones of every class are here."""
    files = []
    counts = [0] * len(classes)
    for line in path.read_text(encoding="utf-8").splitlines():
        name, class_id, *_ = line.split("\t")
        label = classes[class_id]
        files.append(_File(f"val/images/{name}", label, counts[label] < held))
        counts[label] += 1
    return sorted(files)


class _TinyImageNet(Dataset, ABC):
    """``images`` are the training images of a class, ``held`` its training and validation images here.

    The class index is the position of a class's id among all ids in order. Images are the training
    images class by class and then the validation images, both by file name in the order of texts, so
    that those of a class stand as they do where the two are merged into a folder for each class. The
    images held are the first training images by number and the first validation images of the file.
    """

    family = "images"
    homepage = "https://cs231n.stanford.edu/"
    licence = (
        "none stated with its archive; ImageNet, whose images these are, gives access for "
        "non-commercial research and education alone"
    )
    scenarios = SCENARIOS
    protocol = PROTOCOL.model_copy(update={"rounds": 40})
    client = CLIENT.model_copy(update={"model": "resnet18"})
    hyper: ClassVar = {
        **HYPER,
        "fedcp": {"strength": 1.0},
        "h_fedamp": {"self_weight": 0.1},
        "cfl": {"eps1": 0.4, "eps2": 1.6, "start_round": 8},
    }
    side: ClassVar[int] = 64
    images: ClassVar[int] = 500
    held: ClassVar[tuple[int, int]] = (500, 50)

    def load(self, sources: Sources) -> Images:
        """Pixels ``[n, 3, 64, 64]``, from the folder or else the archive."""
        ids, annotations = sources.get_all(self.files)
        classes = _class_ids(ids)
        training, validation = self.held
        files = [
            *_training(classes, self.images, training),
            *_validation(annotations, classes, validation),
        ]
        names = [file.name for file in files if file.held]
        pixels = decoded(self._place(ids.parent, sources), names, self.side)
        labels = np.array([file.label for file in files], np.int64)
        if len(names) == len(files):
            return Images(pixels, labels, len(classes))
        positions = np.flatnonzero([file.held for file in files])
        return Images(pixels, labels[positions], len(classes), labels, positions)

    def _place(self, folder: Path, sources: Sources) -> Place:
        """The folder that has the ids, or the archive where that has no images."""
        archive = self.files[0].archive
        if (folder / "train").is_dir() or archive is None:
            return folder
        return zipfile.Path(sources.get(archive), f"{FOLDER}/")


class TinyImageNet(_TinyImageNet):
    """Tiny-ImageNet: 110,000 labelled colour images of 64 x 64 pixels, 200 classes; folder or zip archive."""

    name = "tiny-imagenet"
    title = "Tiny-ImageNet"
    files: ClassVar = tuple(
        RawFile(
            path=f"tiny-imagenet/{FOLDER}/{name}",
            also=(f"{FOLDER}/{name}",),
            archive=ARCHIVE,
            member=f"{FOLDER}/{name}",
        )
        for name in (IDS, ANNOTATIONS)
    )


class TinyImageNetSample(_TinyImageNet):
    """The first 15 training and 5 validation images of each class of Tiny-ImageNet, and the labels of all."""

    name = "tiny-imagenet-sample"
    title = "Tiny-ImageNet (sample)"
    held = (15, 5)
    files: ClassVar = tuple(
        RawFile(path=f"tiny-imagenet-sample/{FOLDER}/{name}", sha256=sha256, also=(f"{FOLDER}/{name}",))
        for name, sha256 in (
            (IDS, "a36eb4b603007f1985cdfbfc5987166a2710b3c6f0f6d3e29636fc129bba527b"),
            (ANNOTATIONS, "c37765a8b40fce4f28962bf1847a2537e2781753974cbb2447eeb50ff31130a2"),
        )
    )
