"""JPEG files, in a folder or a zip archive, decoded once into an array under ``BENCH_HOME/images``."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError, features
from PIL import __version__ as pillow

from bench.errors import NoDataError, RequestError
from bench.paths import home, replacing_file

FORMAT = 1
"""Version of the cached arrays. Another number makes all of them again."""

Place = Path | zipfile.Path
"""A folder, on disk or in a zip archive. The JPEG files in it have names with slashes."""


def _stamp(place: Place, name: str) -> list[int] | None:
    """Numbers that change when the file changes; None if there is no such file."""
    with suppress(KeyError, OSError):
        if isinstance(place, zipfile.Path):
            member = place.root.getinfo(place.at + name)
            return [member.file_size, member.CRC]
        status = (place / name).stat()
        return [status.st_size, status.st_mtime_ns]
    return None


def _decode(place: Place, name: str, side: int) -> NDArray[np.uint8]:
    """Decode a file to red, green and blue, ``[3, side, side]``."""
    try:
        with Image.open(io.BytesIO((place / name).read_bytes()), formats=["JPEG"]) as image:
            pixels = np.asarray(image.convert("RGB"))
        if pixels.shape != (side, side, 3):
            raise ValueError(f"expected {side} x {side} pixels, got {pixels.shape[1]} x {pixels.shape[0]}")
    except Exception as error:  # a damaged picture may raise anything
        is_other = isinstance(error, UnidentifiedImageError)  # its text is a memory address
        reason = "it is something else" if is_other else " ".join(str(error).split()) or type(error).__name__
        raise RequestError(
            f"{place / name} is refused as a JPEG image: {reason}; replace it by the original"
        ) from None
    return pixels.transpose(2, 0, 1)


def decoded(place: Place, names: Sequence[str], side: int) -> NDArray[np.uint8]:
    """Decode JPEG files to RGB ``[names, 3, side, side]``, read-only. Channels of a grey file are equal.

    If names, file stamps and decoder have not changed, the result is read from ``BENCH_HOME/images``. One
    process decodes while others wait.

    Raises:
        NoDataError: files are missing; the message names the first.
        RequestError: a file is no JPEG image of ``side`` x ``side`` pixels.
    """
    stamps = [_stamp(place, name) for name in names]
    gaps = [name for name, stamp in zip(names, stamps, strict=True) if stamp is None]
    if gaps:
        raise NoDataError(
            f"{place} lacks {len(gaps)} of {len(names)} images, the first is {gaps[0]}; "
            f"unpack the original again"
        )
    made_from = [FORMAT, side, pillow, features.version("jpg"), list(names), stamps]
    identity = hashlib.sha256(json.dumps(made_from).encode()).hexdigest()
    path = home() / "images" / f"{identity}.npy"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if not path.exists():
            with replacing_file(path) as temporary, temporary.open("wb") as file:
                layout = {"descr": "|u1", "fortran_order": False, "shape": (len(names), 3, side, side)}
                np.lib.format.write_array_header_1_0(file, layout)
                for name in names:
                    file.write(_decode(place, name, side).tobytes())
    pixels: NDArray[np.uint8] = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    return pixels
