"""When Python looks for cyclic garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Look for cyclic garbage seldom: where millions of objects are made that stay, looking through them at
    every few hundred takes as long as making them.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(1_000_000)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
