"""Settings of the process while a run lasts: tiny numbers count as zero, and freed memory is kept."""

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
    """Count denormal floats as zero and keep freed memory within the ``with`` block.

    Weight decay takes the weights of dead units below 1e-38, where a processor multiplies matrices a
    hundred times slower. Steps of methods that work on all parameters of a block (masks, mixtures,
    generated models) free temporaries of many megabytes. The C library gives them back to the system and
    gets them again, page by page, in the next step: this took a quarter of FED-PUB's round on Cora with
    50 clients. Threads that torch starts within the block behave the same. On another C library than
    glibc, memory is left alone.
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
    """Set how many free bytes at the end of the heap are given back, and how many blocks may lie outside of
    it.
    """
    with suppress(OSError, TypeError, AttributeError):  # no handle on the process, no such function
        library = ctypes.CDLL(None)
        library.mallopt(TRIM_THRESHOLD, trim)
        library.mallopt(MMAP_MAX, mmaps)
    if trim != NEVER:
        give_back_freed_memory()


def give_back_freed_memory() -> None:
    """Return freed pages to the system, if the C library (glibc) has a call for it."""
    with suppress(OSError, TypeError, AttributeError):  # no handle on the process, no such function
        ctypes.CDLL(None).malloc_trim(0)
