"""Dropout and initial weights of server networks, from named streams instead of a global generator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


def dropout(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Inverted dropout drawn from ``generator``. Without a generator (in evaluation) nothing is dropped."""
    if generator is None or rate == 0:
        return x
    mask = torch.rand(x.shape, generator=generator) >= rate
    return x * mask.to(x.device, x.dtype) / (1 - rate)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw the initial weights of modules that are built in the ``with`` block from this seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
