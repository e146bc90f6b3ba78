"""What a client says of itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from bench.federation.types import TEST, TRAIN, UNUSED, Client

VALUES = np.array([[0, 1.5, 0], [2, 0, 0], [0, 0, 0], [0, 3, 4]], np.float32)


def client(features: sparse.csr_matrix | np.ndarray) -> Client:  # type: ignore[type-arg]
    items = features.shape[0]
    roles = np.array([TRAIN, TEST, UNUSED, TRAIN], np.int8)
    return Client(np.arange(10, 10 + items), np.zeros(items, np.int64), roles, features)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_features_are_dense_float32_however_they_are_stored(store) -> None:  # type: ignore[no-untyped-def]
    for kind in (np.float32, np.float64):
        dense = client(store(VALUES.astype(kind))).dense()
        assert isinstance(dense, np.ndarray)
        assert dense.dtype == np.float32
        np.testing.assert_array_equal(dense, VALUES)
    one = client(store(VALUES))
    positions = np.array([[3, 0], [0, 2], [1, 1]])
    np.testing.assert_array_equal(one.dense(positions), VALUES[positions])
    assert one.dense(np.zeros((2, 0), np.int64)).shape == (2, 0, 3)


def test_pixels_keep_their_shape_and_scale() -> None:
    pixels = np.arange(4 * 2 * 3 * 3, dtype=np.uint8).reshape(4, 2, 3, 3)
    one = client(pixels)
    np.testing.assert_array_equal(one.dense(), pixels)
    np.testing.assert_array_equal(one.dense(np.array([2])), pixels[2:3])
