"""ResNet-18 with the stem for ImageNet (He et al., CVPR 2016), as torchvision builds it (image facts 2.2).

conv 7x7/2 (3 -> 64) -> BN -> ReLU -> max-pool 3x3/2 -> four stages of two blocks, 64 to 512 channels,
the first block of the later ones with stride 2 -> mean over the map -> [embedding, 512] -> Linear(classes).
A block adds conv 3x3 -> BN -> ReLU -> conv 3x3 -> BN to its input, which a stride of 2 takes through
conv 1x1/2 -> BN, and ends in a ReLU. 11,227,812 parameters for 100 classes, 11,279,112 for 200; names are
torchvision's. ``client.hidden`` plays no part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from bench.federation.types import Client
from bench.nn.base import fan_in_uniform
from bench.nn.images import ImageModel, Stack, channels_of_all, normalised_convolution
from bench.spec import ClientSettings

STEM = 64
STAGES = (64, 128, 256, 512)
BLOCKS = 2


class Block(NamedTuple):
    """A residual block: the name before its layers' names, its widths, and the stride that it begins with."""

    name: str
    before: int
    after: int

    @property
    def stride(self) -> int:
        """2 where the width grows."""
        return 1 if self.before == self.after else 2


def blocks() -> Iterator[Block]:
    """All blocks in order."""
    before = STEM
    for stage, after in enumerate(STAGES, start=1):
        for number in range(BLOCKS):
            yield Block(f"layer{stage}.{number}", before, after)
            before = after


def convolutions(channels: int) -> Iterator[tuple[str, str, tuple[int, int, int, int]]]:
    """Every convolution in order: its name, that of its normalisation, and the shape of its weight."""
    yield "conv1", "bn1", (STEM, channels, 7, 7)
    for name, before, after in blocks():
        yield f"{name}.conv1", f"{name}.bn1", (after, before, 3, 3)
        yield f"{name}.conv2", f"{name}.bn2", (after, after, 3, 3)
        if before != after:
            yield f"{name}.downsample.0", f"{name}.downsample.1", (after, before, 1, 1)


class ResNet18(ImageModel):
    """Twenty convolutions in residual blocks, with batch normalisation, for every client."""

    name = "resnet18"

    def __init__(self, clients: Sequence[Client], classes: int, settings: ClientSettings) -> None:
        super().__init__(clients, classes, settings)
        self.shapes = {}
        buffers = []
        for conv, norm, shape in convolutions(self.channels):
            self.shapes[f"{conv}.weight"] = shape
            for kind in ("weight", "bias", "running_mean", "running_var"):
                self.shapes[f"{norm}.{kind}"] = shape[:1]
            buffers += [f"{norm}.running_mean", f"{norm}.running_var"]
        self.shapes |= {"fc.weight": (STAGES[-1], classes), "fc.bias": (classes,)}
        self.buffers = frozenset(buffers)

    def initial(self, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        """Torchvision's: He's normal weights by fan out, normalisation as the identity, a default head."""
        parameters: dict[str, NDArray[np.float32]] = {}
        for name, shape in self.shapes.items():
            if len(shape) == 4:
                deviation = math.sqrt(2 / (shape[0] * shape[2] * shape[3]))
                parameters[name] = deviation * rng.standard_normal(shape, np.float32)
            elif name in self.head:
                parameters[name] = fan_in_uniform(rng, STAGES[-1], shape)
            else:
                is_one = name.endswith((".weight", ".running_var"))
                parameters[name] = np.full(shape, float(is_one), np.float32)
        return parameters

    def features(self, stack: Stack, pixels: Tensor, training: bool) -> Tensor:
        """The mean of the last stage's maps."""
        clients, batch = pixels.shape[:2]
        hidden = channels_of_all(pixels)
        hidden = normalised_convolution(stack, hidden, "conv1", "bn1", training, stride=2, padding=3)
        # ReLU after pooling: the same values and gradients as before it, on a quarter of the numbers
        hidden = torch.relu(functional.max_pool2d(hidden, 3, stride=2, padding=1))
        for block in blocks():
            hidden = _residual(stack, hidden, block, training)
        return hidden.mean((2, 3)).view(batch, clients, -1).transpose(0, 1)


def _residual(stack: Stack, hidden: Tensor, block: Block, training: bool) -> Tensor:
    name, stride = block.name, block.stride
    residual = torch.relu(
        normalised_convolution(stack, hidden, f"{name}.conv1", f"{name}.bn1", training, stride, 1)
    )
    residual = normalised_convolution(stack, residual, f"{name}.conv2", f"{name}.bn2", training, padding=1)
    if stride > 1:
        conv, norm = f"{name}.downsample.0", f"{name}.downsample.1"
        hidden = normalised_convolution(stack, hidden, conv, norm, training, stride)
    return torch.relu(residual + hidden)
