"""Arrays as bytes in the database: compact, exact, and readable without pickle."""

from __future__ import annotations

import io
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


def pack_counts(counts: NDArray[np.int32]) -> bytes:
    """Zlib-compressed little-endian int32 of ``[rows, clients]``, row by row."""
    return zlib.compress(np.ascontiguousarray(counts, dtype="<i4").tobytes(), 6)


def unpack_counts(data: bytes, rows: int, clients: int) -> NDArray[np.int32]:
    """The array ``[rows, clients]`` that ``pack_counts`` wrote."""
    return np.frombuffer(zlib.decompress(data), dtype="<i4").reshape(rows, clients).astype(np.int32)


def pack_array(array: NDArray[Any]) -> bytes:
    """NPY bytes of an array of numbers."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def unpack_array(data: bytes) -> NDArray[Any]:
    """The array that ``pack_array`` wrote."""
    array: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    return array
