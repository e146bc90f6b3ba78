"""Counts what clients and server exchange outside the round loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class TrafficMeter:
    """Counts the bytes that clients and server exchange.

    A method may number its exchanges, such as layers of propagation. These are also counted one by one, in
    two codings: complete matrices, and only their non-zeros.
    """

    def __init__(self) -> None:
        self.bytes_up = 0
        self.bytes_down = 0
        self.numbered: dict[int, NDArray[np.int64]] = {}

    def upload(self, *arrays: NDArray[Any], exchange: int | None = None) -> None:
        """One client sends these arrays to the server."""
        self.bytes_up += self._count(arrays, exchange, 0)

    def download(self, *arrays: NDArray[Any], exchange: int | None = None) -> None:
        """The server sends these arrays to one client."""
        self.bytes_down += self._count(arrays, exchange, 1)

    def _count(self, arrays: Sequence[NDArray[Any]], exchange: int | None, direction: int) -> int:
        total = sum(array.nbytes for array in arrays)
        if exchange is not None:
            counts = self.numbered.setdefault(exchange, np.zeros((2, 2), np.int64))
            counts[0, direction] += total
            counts[1, direction] += sum(map(sparse_bytes, arrays))
        return total

    def exchanges(self) -> NDArray[np.int64]:
        """Bytes ``[exchanges, coding (dense, sparse), direction (up, down)]`` of numbered exchanges."""
        if not self.numbered:
            return np.zeros((0, 2, 2), np.int64)
        return np.stack([self.numbered[number] for number in sorted(self.numbered)])


def sparse_bytes(array: NDArray[Any]) -> int:
    """The bytes of an array whose rows are sent as non-zeros, if that is shorter than the whole.

    A row of floats takes 4 bytes for its number of non-zeros, and for each of these 4 bytes for its place
    in addition to its value. Arrays of one dimension (ids) are sent whole.
    """
    if array.ndim != 2:
        return array.nbytes
    size = 4 * len(array) + (4 + array.itemsize) * int(np.count_nonzero(array))
    return min(array.nbytes, size)
