"""Tiny-ImageNet from a folder or an archive that the test makes: three classes of 12 and 2 images."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bench.data import Images
from bench.dataset import DATASETS, Dataset
from bench.datasets.tiny_imagenet import FOLDER
from bench.errors import NoDataError, RequestError
from bench.federation.prepared import prepare
from bench.sources import Sources

from .raw_data import variant

IDS = ("n03", "n01", "n02")
VALIDATION = {10: "n02", 9: "n01", 2: "n02", 7: "n03", 30: "n01", 1: "n03"}
"""Number of a validation image and the id of its class."""


def jpeg(red: int, green: int, blue: int, side: int = 8, kind: str = "JPEG") -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (side, side), (red, green, blue)).save(content, kind, quality=100, subsampling=0)
    return content.getvalue()


def colour(label: int, number: int, validation: bool = False) -> tuple[int, int, int]:
    """What tells an image of these tests from all others."""
    return 8 * number, 100 * label, 200 * validation


@pytest.fixture
def tiny() -> type[Dataset]:
    """The complete data set, but for its size and its archive's sum."""
    kind = DATASETS.named("tiny-imagenet")
    return variant(kind, side=8, images=12, held=(12, 2))


@pytest.fixture
def root(tmp_path: Path, tiny: type[Dataset]) -> Path:
    folder = tmp_path / "root" / "tiny-imagenet" / FOLDER
    (folder / "val" / "images").mkdir(parents=True)
    (folder / "wnids.txt").write_text("".join(f"{name}\n" for name in IDS))
    rows = (f"val_{number}.JPEG\t{name}\t0\t0\t9\t9\n" for number, name in VALIDATION.items())
    (folder / "val" / "val_annotations.txt").write_text("".join(rows))
    for name in IDS:
        (folder / "train" / name / "images").mkdir(parents=True)
        for number in range(12):
            picture = jpeg(*colour(sorted(IDS).index(name), number))
            (folder / "train" / name / "images" / f"{name}_{number}.JPEG").write_bytes(picture)
    for number, name in VALIDATION.items():
        picture = jpeg(*colour(sorted(IDS).index(name), number, True))
        (folder / "val" / "images" / f"val_{number}.JPEG").write_bytes(picture)
    return tmp_path / "root"


def load(kind: type[Dataset], root: Path) -> Images:
    images = kind().load(Sources((root,), download=False))
    assert isinstance(images, Images)
    return images


def colours(images: Images) -> list[tuple[int, int, int]]:
    """The colour of every image, to the nearest that a test uses."""
    steps = np.array([8, 100, 200])
    means = images.pixels.mean(axis=(2, 3))
    return [tuple(row) for row in (np.round(means / steps) * steps).astype(int).tolist()]


TEXT_ORDER = [0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9]
EXPECTED = [colour(label, number) for label in range(3) for number in TEXT_ORDER] + [
    # val_1 (n03), val_10 (n02), val_2 (n02), val_30 (n01), val_7 (n03), val_9 (n01)
    colour(2, 1, True),
    colour(1, 10, True),
    colour(1, 2, True),
    colour(0, 30, True),
    colour(2, 7, True),
    colour(0, 9, True),
]
LABELS = [0] * 12 + [1] * 12 + [2] * 12 + [2, 1, 1, 0, 2, 0]


def test_images_are_merged_class_by_class_and_by_name(tiny: type[Dataset], root: Path) -> None:
    images = load(tiny, root)
    assert images.pixels.shape == (42, 3, 8, 8)
    assert images.pixels.dtype == np.uint8
    assert images.labels.tolist() == LABELS
    assert colours(images) == EXPECTED
    assert images.population is None
    assert images.classes == 3


def test_the_archive_gives_the_same_and_is_not_unpacked(
    tiny: type[Dataset], root: Path, tmp_path: Path, home: Path
) -> None:
    folder = load(tiny, root)
    target = tmp_path / "zipped" / f"{FOLDER}.zip"
    target.parent.mkdir()
    with zipfile.ZipFile(target, "w") as archive:
        for file in sorted(root.rglob("*.*")):
            archive.write(file, file.relative_to(root / "tiny-imagenet"))
    original = tiny.files[0].archive
    assert original is not None
    known = replace(original, sha256=hashlib.sha256(target.read_bytes()).hexdigest())
    tiny = variant(tiny, files=tuple(replace(file, archive=known) for file in tiny.files))
    zipped = load(tiny, target.parent)
    np.testing.assert_array_equal(zipped.pixels, folder.pixels)
    np.testing.assert_array_equal(zipped.labels, folder.labels)
    assert not list(home.rglob("*.JPEG"))


def test_a_sample_has_the_first_images_of_each_class(tiny: type[Dataset], root: Path) -> None:
    """Numbers 0 to 2 of the training images and the first validation image in the order of the file."""
    folder = root / "tiny-imagenet" / FOLDER
    for name in IDS:
        for number in range(3, 12):
            (folder / "train" / name / "images" / f"{name}_{number}.JPEG").unlink()
    for file in ("val_2.JPEG", "val_30.JPEG", "val_1.JPEG"):
        (folder / "val" / "images" / file).unlink()
    images = load(variant(tiny, held=(3, 1)), root)
    assert images.population is not None
    assert images.positions is not None
    assert images.population.tolist() == LABELS
    assert images.labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 1, 2, 0]
    training = [label * 12 + place for label in range(3) for place in (0, 1, 4)]
    assert images.positions.tolist() == [*training, 37, 40, 41]
    assert colours(images) == [EXPECTED[place] for place in images.positions]


def test_images_are_decoded_once_and_another_one_at_the_same_place_is_seen(
    tiny: type[Dataset], root: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(tiny, root).pixels
    with monkeypatch.context() as patch:
        patch.setattr("bench.datasets._pictures._decode", None)
        np.testing.assert_array_equal(load(tiny, root).pixels, first)
    assert {path.suffix for path in (home / "images").iterdir()} <= {".npy", ".lock"}
    file = root / "tiny-imagenet" / FOLDER / "train" / "n01" / "images" / "n01_0.JPEG"
    file.write_bytes(jpeg(240, 200, 200))
    assert colours(load(tiny, root))[0] == (240, 200, 200)


def test_a_grey_image_has_three_equal_channels(tiny: type[Dataset], root: Path) -> None:
    file = root / "tiny-imagenet" / FOLDER / "train" / "n01" / "images" / "n01_0.JPEG"
    content = io.BytesIO()
    Image.new("L", (8, 8), 77).save(content, "JPEG", quality=100)
    file.write_bytes(content.getvalue())
    assert np.abs(load(tiny, root).pixels[0].astype(int) - 77).max() <= 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (jpeg(1, 2, 3)[:-8], "truncated"),
        (b"", "something else"),
        (jpeg(1, 2, 3, side=9), "9 x 9"),
        (jpeg(1, 2, 3, kind="PNG"), "something else"),
    ],
)
def test_a_broken_jpeg_is_named_in_one_line(
    content: bytes, reason: str, tiny: type[Dataset], root: Path, home: Path
) -> None:
    (root / "tiny-imagenet" / FOLDER / "val" / "images" / "val_7.JPEG").write_bytes(content)
    with pytest.raises(RequestError, match=rf"val_7\.JPEG is refused.*{reason}") as caught:
        load(tiny, root)
    assert "\n" not in str(caught.value)
    assert not list((home / "images").glob("*.npy"))


def test_missing_images_are_no_data_and_the_first_is_named(
    tiny: type[Dataset], root: Path, home: Path
) -> None:
    for number in (10, 4):
        (root / "tiny-imagenet" / FOLDER / "train" / "n02" / "images" / f"n02_{number}.JPEG").unlink()
    with pytest.raises(NoDataError, match=r"2 of 42 images.*n02_10\.JPEG") as caught:
        load(tiny, root)
    assert "\n" not in str(caught.value)
    assert not home.exists()


def test_the_sample(data_root: Path) -> None:
    if not (data_root / "tiny-imagenet-sample").exists():
        pytest.skip("the data root has no sample of Tiny-ImageNet")
    images = prepare("tiny-imagenet-sample", (data_root,), download=False).data
    assert isinstance(images, Images)
    assert images.pixels.shape == (4000, 3, 64, 64)
    assert np.bincount(images.labels).tolist() == [20] * 200
    assert images.population is not None
    assert np.bincount(images.population).tolist() == [550] * 200
    folder = data_root / "tiny-imagenet-sample" / FOLDER
    ids = sorted((folder / "wnids.txt").read_text().split())
    picture = Image.open(folder / "train" / ids[7] / "images" / f"{ids[7]}_10.JPEG").convert("RGB")
    place = 7 * 15 + sorted(range(15), key=str).index(10)
    np.testing.assert_array_equal(images.pixels[place].transpose(1, 2, 0), np.asarray(picture))
