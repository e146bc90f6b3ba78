"""Random streams: a function of seed and key alone, and different for different keys."""

from __future__ import annotations

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bench import streams

Key = tuple[str | int, ...]
keys = st.lists(
    st.one_of(st.text(st.characters(exclude_characters="\x1f", codec="utf-8"), max_size=6), st.integers()),
    max_size=4,
).map(tuple)


def test_the_value_is_that_of_the_written_recipe() -> None:
    """128 bits of BLAKE2b over seed and typed key, little end first, feed SFC64."""
    digest = hashlib.blake2b(b"7\x1fstr:dropout\x1fint:3\x1fint:-1", digest_size=16).digest()
    expected = int.from_bytes(digest, "little")
    assert streams.entropy(7, "dropout", 3, -1) == expected
    drawn = streams.generator(7, "dropout", 3, -1).integers(0, 2**63, 5)
    assert drawn.tolist() == np.random.Generator(np.random.SFC64(expected)).integers(0, 2**63, 5).tolist()
    assert streams.torch_seed(7, "dropout", 3, -1) == expected % 2**63


@given(st.integers(0, 50), keys, st.integers(0, 50), keys)
def test_different_keys_give_different_streams(seed: int, key: Key, other_seed: int, other_key: Key) -> None:
    same = (seed, *key) == (other_seed, *other_key)
    assert (streams.entropy(seed, *key) == streams.entropy(other_seed, *other_key)) == same
