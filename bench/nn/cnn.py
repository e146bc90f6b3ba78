"""Convolutional network of the image study (FedAGHN's "4-layer CNN"; image facts 2.1 and 2.3).

conv 5x5 (3 -> 32) -> BN -> ReLU -> max-pool 2x2 -> conv 5x5 (32 -> 64) -> BN -> ReLU -> max-pool 2x2 ->
Linear(hidden) -> ReLU -> [embedding] -> Linear(classes), without padding: 878,730 parameters for
32 x 32 pixels, 10 classes and 512 hidden units.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from bench.federation.types import Client
from bench.nn.base import fan_in_uniform
from bench.nn.images import ImageModel, Stack, channels_of_all, normalised_convolution
from bench.spec import ClientSettings

KERNEL = 5
WIDTHS = (32, 64)


def pooled(size: int) -> int:
    """Height or width after both convolutions and poolings."""
    for _ in WIDTHS:
        size = (size - KERNEL + 1) // 2
    return size


def convolutions(stack: Stack, pixels: Tensor, training: bool) -> Tensor:
    """Both convolution layers, ``[clients, batch, width]``; see ``ImageModel.features``."""
    clients, batch = pixels.shape[:2]
    hidden = channels_of_all(pixels)
    for layer in "12":
        hidden = normalised_convolution(stack, hidden, f"conv{layer}", f"bn{layer}", training)
        # ReLU after pooling: the same values and gradients as before it, on a quarter of the numbers
        hidden = torch.relu(functional.max_pool2d(hidden, 2))
    return hidden.reshape(batch, clients, -1).transpose(0, 1)


class CNN(ImageModel):
    """Two convolutions with batch normalisation and two linear layers for every client."""

    name = "cnn"
    buffers = frozenset({"bn1.running_mean", "bn1.running_var", "bn2.running_mean", "bn2.running_var"})

    def __init__(self, clients: Sequence[Client], classes: int, settings: ClientSettings) -> None:
        super().__init__(clients, classes, settings)
        self.flat = WIDTHS[-1] * pooled(self.height) * pooled(self.width)

    def initial(self, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        """Torch's defaults: uniform within ``1 / sqrt(fan in)``, normalisation as the identity."""
        parameters: dict[str, NDArray[np.float32]] = {}
        for layer, (before, after) in enumerate(pairwise((self.channels, *WIDTHS)), start=1):
            fan_in = before * KERNEL * KERNEL
            parameters[f"conv{layer}.weight"] = fan_in_uniform(rng, fan_in, (after, before, KERNEL, KERNEL))
            parameters[f"conv{layer}.bias"] = fan_in_uniform(rng, fan_in, (after,))
            parameters[f"bn{layer}.weight"] = np.ones(after, np.float32)
            parameters[f"bn{layer}.bias"] = np.zeros(after, np.float32)
            parameters[f"bn{layer}.running_mean"] = np.zeros(after, np.float32)
            parameters[f"bn{layer}.running_var"] = np.ones(after, np.float32)
        parameters["fc1.weight"] = fan_in_uniform(rng, self.flat, (self.flat, self.hidden))
        parameters["fc1.bias"] = fan_in_uniform(rng, self.flat, (self.hidden,))
        parameters["fc.weight"] = fan_in_uniform(rng, self.hidden, (self.hidden, self.classes))
        parameters["fc.bias"] = fan_in_uniform(rng, self.hidden, (self.classes,))
        return parameters

    def features(self, stack: Stack, pixels: Tensor, training: bool) -> Tensor:
        """The first linear layer's activation."""
        flat_maps = convolutions(stack, pixels, training)
        return torch.relu(torch.baddbmm(stack["fc1.bias"][:, None, :], flat_maps, stack["fc1.weight"]))
