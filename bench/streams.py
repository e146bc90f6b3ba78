"""Random streams, each with a key that names its purpose.

No code draws from a global generator. The run's seed and a key such as ``("dropout", client, round)`` name a
stream. Streams with different keys are independent. The order of clients, the block size, the number of
workers or a new method therefore cannot change the numbers of another stream.
"""

from __future__ import annotations

import hashlib
import operator

import numpy as np

Stream = np.random.Generator | np.random.RandomState
"""A random generator: NumPy's new type, or its legacy type, which drew the partitions of other papers."""


def entropy(seed: int, *key: str | int) -> int:
    """128 bits that identify the stream ``(seed, *key)`` on every machine."""
    parts = (f"str:{part}" if isinstance(part, str) else f"int:{operator.index(part)}" for part in key)
    text = "\x1f".join([str(seed), *parts])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")


def generator(seed: int, *key: str | int) -> np.random.Generator:
    """NumPy generator of the stream ``(seed, *key)`` (SFC64: the fastest bytes NumPy has)."""
    return np.random.Generator(np.random.SFC64(entropy(seed, *key)))


def torch_seed(seed: int, *key: str | int) -> int:
    """Seed for a ``torch.Generator`` of the stream ``(seed, *key)``."""
    return entropy(seed, *key) & (2**63 - 1)
