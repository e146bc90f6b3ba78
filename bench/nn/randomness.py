"""Dropout masks and initial weights from named streams instead of a global generator.

Every client draws its masks from a generator of its own for its own number of items. So neither padding,
blocks nor the order of clients can change them. An element is kept when a random byte is at least
``round(256 p)``. The scale follows from the rate that this gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor


def threshold(rate: float) -> int:
    """Smaller bytes are dropped."""
    return round(256 * rate)


class DropoutMasks:
    """The masks of one block of clients for all local epochs of a round.

    Args:
        generators: one per client.
        lengths: items of each client.
        widths: width of the activations at every dropout site.
        epochs: local epochs.
        rate: probability of dropping an element.
        items: items that activations are padded to.
    """

    def __init__(
        self,
        generators: Sequence[np.random.Generator],
        lengths: Sequence[int],
        widths: Sequence[int],
        epochs: int,
        rate: float,
        items: int,
        device: torch.device,
    ) -> None:
        self._threshold = threshold(rate)
        self._scale = 256 / (256 - self._threshold)
        self._epoch = 0
        total = sum(widths)
        edges = np.cumsum([0, *widths])
        masks = [np.zeros((epochs, len(lengths), items, width), np.bool_) for width in widths]
        for index, (rng, length) in enumerate(zip(generators, lengths, strict=True)):
            words = rng.bit_generator.random_raw(-(-epochs * length * total // 8))
            octets = words.astype("<u8", copy=False).view(np.uint8)[: epochs * length * total]
            octets = octets.reshape(epochs, length * total)
            for site, width in enumerate(widths):
                part = octets[:, length * edges[site] : length * edges[site + 1]]
                np.greater_equal(
                    part.reshape(epochs, length, width),
                    self._threshold,
                    out=masks[site][:, index, :length],
                )
        # as bytes: torch converts those to floats several times faster than booleans
        self._masks = [torch.from_numpy(site.view(np.uint8)).to(device) for site in masks]

    def begin_epoch(self, epoch: int) -> None:
        """Use the masks of this epoch."""
        self._epoch = epoch

    def __call__(self, activations: Tensor, site: int) -> Tensor:
        """Drop and rescale ``activations`` ``[clients, items, width]``."""
        return activations * self.factors(site)

    def factors(self, site: int) -> Tensor:
        """What activations of a site are multiplied by: zero, or the scale of those that are kept."""
        return self._masks[site][self._epoch].to(torch.float32).mul_(self._scale)


def dropout(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Inverted dropout of a server's network. Without a generator (in evaluation) nothing is dropped."""
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
