"""Tiny-ImageNet, complete and as a sample.

Stanford's 200 classes of ImageNet at 64 x 64 pixels, prepared as the FedAGHN study does: training and
validation images are merged, the test images, which have no labels, are not used (image facts 1.1, 1.2).
"""

from __future__ import annotations

import zipfile
from abc import ABC
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from bench.data import Images
from bench.sources import RawFile, Sources

from ._pictures import Place, decoded
from .cifar import ImageStudySet

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


def _files(ids: Path, annotations: Path, images: int, held: tuple[int, int]) -> list[_File]:
    """The training images class by class, then the validation images, both sorted by name as text.

    ``held``: how many images of a class are here (lowest training numbers, first validation images).
    """
    classes = {name: label for label, name in enumerate(sorted(ids.read_text(encoding="utf-8").split()))}
    training = [
        _File(f"train/{name}/images/{name}_{number}.JPEG", label, number < held[0])
        for name, label in classes.items()
        for number in sorted(range(images), key=str)
    ]
    validation = []
    counts = dict.fromkeys(classes, 0)
    for line in annotations.read_text(encoding="utf-8").splitlines():
        name, class_id, *_ = line.split("\t")
        validation.append(_File(f"val/images/{name}", classes[class_id], counts[class_id] < held[1]))
        counts[class_id] += 1
    return training + sorted(validation)


class _TinyImageNet(ImageStudySet, ABC):
    """``images`` are the training images of a class, ``held`` its training and validation images here.

    The index of a class is the position of its id among all sorted ids. Within a class, the images have the
    order that they have if training and validation images are merged into one folder.
    """

    homepage = "https://cs231n.stanford.edu/"
    licence = (
        "none stated with its archive; ImageNet, whose images these are, gives access for "
        "non-commercial research and education alone"
    )
    protocol = ImageStudySet.protocol.model_copy(update={"rounds": 40})
    client = ImageStudySet.client.model_copy(update={"model": "resnet18"})
    hyper: ClassVar = {
        **ImageStudySet.hyper,
        "fedcp": {"strength": 1.0},
        "h_fedamp": {"self_weight": 0.1},
        "cfl": {"eps1": 0.4, "eps2": 1.6, "start_round": 8},
    }
    side: ClassVar[int] = 64
    images: ClassVar[int] = 500
    held: ClassVar[tuple[int, int]] = (500, 50)

    def load(self, sources: Sources) -> Images:
        """Load pixels ``[n, 3, 64, 64]`` from the folder, else from the archive."""
        ids, annotations = sources.get_all(self.files)
        files = _files(ids, annotations, self.images, self.held)
        names = [file.name for file in files if file.held]
        pixels = decoded(self._place(ids.parent, sources), names, self.side)
        labels = np.array([file.label for file in files], np.int64)
        classes = int(labels.max()) + 1
        if len(names) == len(files):
            return Images(pixels, labels, classes)
        positions = np.flatnonzero([file.held for file in files])
        return Images(pixels, labels[positions], classes, labels, positions)

    def _place(self, folder: Path, sources: Sources) -> Place:
        """The folder of the ids, or the archive if this folder has no images."""
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
