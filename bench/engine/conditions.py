"""What a process does otherwise while a run lasts: tiny numbers, and memory that was freed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch

TRIM_THRESHOLD, MMAP_MAX = -1, -4
"""Parameters of glibc's ``mallopt``."""

NEVER, USUAL_TRIM, USUAL_MMAPS = 2**31 - 1, 128 * 1024, 65536


@contextmanager
def run_conditions() -> Iterator[None]:
    """Denormal floats count as zero, and memory that is freed stays with the process meanwhile.

    Weight decay takes the weights of dead units below 1e-38, where a processor multiplies matrices a
    hundred times slower. And a step of a method that works on all parameters of a block (masks, mixtures,
    generated models) frees temporaries of many megabytes, which the C library hands back to the system and
    gets anew, page by page, in the next step: a quarter of FED-PUB's round on Cora with 50 clients. Both
    hold for threads that torch starts meanwhile; on another C library than glibc the second is left alone.
    """
    before = bool(torch.tensor(1e-38) * 0.1 == 0)
    torch.set_flush_denormal(True)
    _allocate(trim=NEVER, mmaps=0)
    try:
        yield
    finally:
        _allocate(trim=USUAL_TRIM, mmaps=USUAL_MMAPS)
        torch.set_flush_denormal(before)


def _allocate(trim: int, mmaps: int) -> None:
    """Free bytes at the end of the heap that are given back, and blocks that may lie outside of it."""
    with suppress(OSError, TypeError, AttributeError):  # no handle on the process, no such function
        library = ctypes.CDLL(None)
        library.mallopt(TRIM_THRESHOLD, trim)
        library.mallopt(MMAP_MAX, mmaps)
        if trim != NEVER:
            library.malloc_trim(0)
