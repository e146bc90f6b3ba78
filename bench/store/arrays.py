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


def pack_matrices(counts: NDArray[np.int32]) -> dict[str, Any]:
    """The columns ``clients``, ``classes`` and ``data`` of counts ``[clients, classes, classes]``."""
    clients, classes, _ = counts.shape
    return {"clients": clients, "classes": classes, "data": pack_counts(counts.reshape(clients, classes**2))}


def unpack_matrices(clients: int, classes: int, data: bytes) -> NDArray[np.int32]:
    """The counts ``[clients, classes, classes]`` that ``pack_matrices`` took."""
    return unpack_counts(data, clients, classes**2).reshape(clients, classes, classes)


def pack_array(array: NDArray[Any]) -> bytes:
    """NPY bytes of an array of numbers."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def unpack_array(data: bytes) -> NDArray[Any]:
    """The array that ``pack_array`` wrote."""
    array: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    return array
