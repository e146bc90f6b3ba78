"""Numbers below 1e-38 as zero, while a run lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """The processor takes denormal floats as zero meanwhile.

    Weight decay takes the weights of dead units below 1e-38, where a processor multiplies matrices a
    hundred times slower.
    Threads that torch starts meanwhile inherit the setting.
    """
    before = bool(torch.tensor(1e-38) * 0.1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
