"""JPEG files, in a folder or a zip archive, decoded once into a checked array under ``BENCH_HOME/images``."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError, features
from PIL import __version__ as pillow

from bench.errors import NoDataError, RequestError
from bench.federation.cache import lock
from bench.paths import home
from bench.replacement import replacing_file
from bench.sources import digest

FORMAT = 1
"""Of the cached arrays; another number makes all of them again."""


class Pictures(ABC):
    """Where JPEG files lie, each under a name with slashes."""

    place: Path

    @abstractmethod
    def stamp(self, name: str) -> list[int] | None:
        """Numbers that change when the file does; None where there is no such file."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """The content of the file; whatever goes wrong may be raised."""


class Folder(Pictures):
    """Files below a folder."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def stamp(self, name: str) -> list[int] | None:
        """Size and time."""
        try:
            status = os.stat(self.place / name)
        except OSError:
            return None
        return [status.st_size, status.st_mtime_ns]

    def read(self, name: str) -> bytes:
        """The content of the file."""
        return (self.place / name).read_bytes()


class Zip(Pictures):
    """Members of a zip archive below one of its folders."""

    def __init__(self, place: Path, folder: str) -> None:
        self.place = place
        self.folder = folder
        self._archive = zipfile.ZipFile(place)

    def stamp(self, name: str) -> list[int] | None:
        """Size and checksum."""
        try:
            member = self._archive.getinfo(f"{self.folder}/{name}")
        except KeyError:
            return None
        return [member.file_size, member.CRC]

    def read(self, name: str) -> bytes:
        """The content of the member, whose checksum is verified."""
        return self._archive.read(f"{self.folder}/{name}")


def _decode(pictures: Pictures, name: str, side: int) -> NDArray[np.uint8]:
    """Red, green and blue ``[3, side, side]``."""
    try:
        with Image.open(io.BytesIO(pictures.read(name)), formats=["JPEG"]) as image:
            pixels = np.asarray(image.convert("RGB"))
        if pixels.shape != (side, side, 3):
            raise ValueError(f"expected {side} x {side} pixels, got {pixels.shape[1]} x {pixels.shape[0]}")
    except Exception as error:  # a damaged picture may raise anything
        is_other = isinstance(error, UnidentifiedImageError)  # whose text is an address in memory
        reason = "it is something else" if is_other else " ".join(str(error).split()) or type(error).__name__
        raise RequestError(
            f"{pictures.place / name} is refused as a JPEG image: {reason}; replace it by the original"
        ) from None
    return pixels.transpose(2, 0, 1)


def _intact_array(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8] | None:
    """The array of a file whose sum is the one beside it, mapped into memory; None if it is not."""
    try:
        if path.with_suffix(".sha256").read_text() != digest(path, "sha256"):
            return None
        pixels: NDArray[np.uint8] = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (OSError, ValueError, RequestError):
        return None
    return pixels if pixels.shape == shape and pixels.dtype == np.uint8 else None


def _cache(identity: str, shape: tuple[int, ...], rows: Iterator[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """The array of that identity, written row by row where it is not there or damaged, and in place at once.

    Raises:
        RequestError: ``BENCH_HOME`` cannot be written; and whatever ``rows`` raises.
    """
    path = home() / "images" / f"{identity}.npy"
    with lock(path):
        pixels = _intact_array(path, shape)
        if pixels is None:
            try:
                _write(path, shape, rows)
            except OSError as error:
                raise RequestError(
                    f"cannot write {path}: {error.strerror or error}; set BENCH_HOME to a folder with room"
                ) from None
            pixels = _intact_array(path, shape)
    if pixels is None:
        raise RequestError(f"{path} was changed while it was written; try again")
    return pixels


def _write(path: Path, shape: tuple[int, ...], rows: Iterator[NDArray[np.uint8]]) -> None:
    """Write the array as NPY, its sum beside it."""
    with replacing_file(path) as temporary:
        with temporary.open("wb") as file:
            layout = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, layout)
            for row in rows:
                file.write(row.tobytes())
        path.with_suffix(".sha256").write_text(digest(temporary, "sha256"))


def decoded(pictures: Pictures, names: Sequence[str], side: int) -> NDArray[np.uint8]:
    """Red, green and blue of JPEG files ``[names, 3, side, side]``, read-only; grey ones have all alike.

    They are decoded once: as long as the names, the files' stamps and the decoder stay the same, the
    result is taken from ``BENCH_HOME/images``, where its checksum is right.

    Raises:
        NoDataError: files are missing; the first is named.
        RequestError: a file is no JPEG image of ``side`` x ``side`` pixels.
    """
    stamps = [pictures.stamp(name) for name in names]
    gaps = [name for name, stamp in zip(names, stamps, strict=True) if stamp is None]
    if gaps:
        raise NoDataError(
            f"{pictures.place} lacks {len(gaps)} of {len(names)} images, the first is {gaps[0]}; "
            f"unpack the original again"
        )
    made_from = [FORMAT, side, pillow, features.version("jpg"), list(names), stamps]
    identity = hashlib.sha256(json.dumps(made_from).encode()).hexdigest()
    rows = (_decode(pictures, name, side) for name in names)
    return _cache(identity, (len(names), 3, side, side), rows)
