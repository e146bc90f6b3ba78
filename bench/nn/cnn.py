"""Convolutional network of the image study (FedAGHN's "4-layer CNN"; image facts 2.1 and 2.3).

conv 5x5 (3 -> 32) -> BN -> ReLU -> max-pool 2x2 -> conv 5x5 (32 -> 64) -> BN -> ReLU -> max-pool 2x2 ->
Linear(hidden) -> ReLU -> [embedding] -> Linear(classes), without padding: 878,730 parameters for
32 x 32 pixels, 10 classes and 512 hidden units. Pixels are scaled to [-1, 1]. Batch normalisation is
every client's own: batch statistics in training, running ones, which never leave the client, in evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from bench.errors import RequestError
from bench.federation.types import Client
from bench.nn.base import ClientModel, Drop, Inputs, fan_in_uniform
from bench.spec import ClientSettings

KERNEL = 5
WIDTHS = (32, 64)
MOMENTUM, EPSILON = 0.1, 1e-5
PIECE = 128
"""Images that are evaluated at once. 1024 of them cost 147 ms of a CPU core in pieces of 64, 157 of 128, 228
of 512, 257 in one; larger pieces mean fewer launches on an accelerator."""

Stack = Mapping[str, Tensor]


def pooled(size: int) -> int:
    """Height or width after both convolutions and poolings, at most 0 where the images are too small."""
    for _ in WIDTHS:
        size = (size - KERNEL + 1) // 2
    return size


class ImageInputs(Inputs):
    """Images of a block of clients, one client after the other and without padding.

    ``pixels`` uint8 ``[all items, channels, height, width]``; ``sizes`` the items of each client.
    """

    def __init__(self, pixels: Tensor, sizes: Sequence[int]) -> None:
        self.pixels = pixels
        self.sizes = list(sizes)
        self.items = max(self.sizes)
        self.lengths = torch.tensor(self.sizes, device=pixels.device)
        self._offsets = [0, *accumulate(self.sizes)]
        self._starts = torch.tensor(self._offsets[:-1], device=pixels.device)

    def of(self, client: int) -> Tensor:
        """All images of one client."""
        return self.pixels[self._offsets[client] : self._offsets[client + 1]]

    def select(self, items: Tensor, rows: Tensor) -> ImageInputs:
        """Items ``[rows, batch]`` of the block's clients ``rows``."""
        chosen = (self._starts[rows][:, None] + items).flatten()
        return ImageInputs(self.pixels[chosen], [items.shape[1]] * items.shape[0])


def scaled(pixels: Tensor) -> Tensor:
    """uint8 -> float32 in [-1, 1]: mean and deviation 0.5 in every channel, as the study normalises."""
    return pixels.float().div_(255).sub_(0.5).div_(0.5)


def convolutions(stack: Stack, pixels: Tensor, training: bool) -> Tensor:
    """Both convolution layers, ``[clients, batch, width]``.

    ``pixels`` uint8 ``[clients, batch, channels, height, width]``. Clients are groups of the
    channels, so that a channel's batch statistics are those of one client. In training the running
    statistics in ``stack`` are updated in place.
    """
    clients, batch = pixels.shape[:2]
    hidden = scaled(pixels).transpose(0, 1).flatten(1, 2)
    if hidden.is_cpu:
        hidden = hidden.contiguous(memory_format=torch.channels_last)
    for layer in "12":
        weight, bias = stack[f"conv{layer}.weight"].flatten(0, 1), stack[f"conv{layer}.bias"].flatten()
        mean = stack[f"bn{layer}.running_mean"].view(-1)  # never a copy, which would lose the update
        variance = stack[f"bn{layer}.running_var"].view(-1)
        scale, shift = stack[f"bn{layer}.weight"].flatten(), stack[f"bn{layer}.bias"].flatten()
        if not training:  # a convolution with its normalisation is a convolution
            scale = scale * torch.rsqrt(variance + EPSILON)
            weight, bias = weight * scale[:, None, None, None], torch.addcmul(shift, bias - mean, scale)
        hidden = functional.conv2d(hidden, weight, bias, groups=clients)
        if training:
            hidden = functional.batch_norm(hidden, mean, variance, scale, shift, True, MOMENTUM, EPSILON)
        # ReLU after pooling: the same values and gradients as before it, on a quarter of the numbers
        hidden = torch.relu(functional.max_pool2d(hidden, 2))
    return hidden.reshape(batch, clients, -1).transpose(0, 1)


def unstacked(stack: Stack) -> list[dict[str, Tensor]]:
    """Every client's part of a stack, ``[1, ...]``; gradients of the parts are joined by one copy."""
    if len(next(iter(stack.values()))) == 1:
        return [dict(stack)]
    parts = {name: torch.split(value, 1) for name, value in stack.items()}
    return [dict(zip(parts, one, strict=True)) for one in zip(*parts.values(), strict=True)]


class CNN(ClientModel):
    """Two convolutions with batch normalisation and two linear layers for every client."""

    name = "cnn"
    families = ("images",)
    batches = True
    one_by_one = True
    head = frozenset({"fc.weight", "fc.bias"})
    buffers = frozenset({"bn1.running_mean", "bn1.running_var", "bn2.running_mean", "bn2.running_var"})

    def __init__(self, clients: Sequence[Client], classes: int, settings: ClientSettings) -> None:
        if settings.batch_size is None:
            raise RequestError(
                "client.model 'cnn' normalises by the statistics of a batch, got client.batch_size=None: "
                "set client.batch_size=64"
            )
        channels, height, width = clients[0].features.shape[1:]
        if min(pooled(height), pooled(width)) < 1:
            raise RequestError(
                f"client.model 'cnn' expects images of 16 x 16 pixels or more, got {height} x {width}: "
                f"choose another data set"
            )
        self.channels = (channels, *WIDTHS)
        self.hidden, self.classes = settings.hidden, classes
        self.flat = WIDTHS[-1] * pooled(height) * pooled(width)
        self.shapes = {name: value.shape for name, value in self.initial(np.random.default_rng(0)).items()}

    def initial(self, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        """Torch's defaults: uniform within ``1 / sqrt(fan in)``, normalisation as the identity."""
        drawn: dict[str, NDArray[np.float32]] = {}
        for layer, (before, after) in enumerate(pairwise(self.channels), start=1):
            fan_in = before * KERNEL * KERNEL
            drawn[f"conv{layer}.weight"] = fan_in_uniform(rng, fan_in, (after, before, KERNEL, KERNEL))
            drawn[f"conv{layer}.bias"] = fan_in_uniform(rng, fan_in, (after,))
            drawn[f"bn{layer}.weight"] = np.ones(after, np.float32)
            drawn[f"bn{layer}.bias"] = np.zeros(after, np.float32)
            drawn[f"bn{layer}.running_mean"] = np.zeros(after, np.float32)
            drawn[f"bn{layer}.running_var"] = np.ones(after, np.float32)
        drawn["fc1.weight"] = fan_in_uniform(rng, self.flat, (self.flat, self.hidden))
        drawn["fc1.bias"] = fan_in_uniform(rng, self.flat, (self.hidden,))
        drawn["fc.weight"] = fan_in_uniform(rng, self.hidden, (self.hidden, self.classes))
        drawn["fc.bias"] = fan_in_uniform(rng, self.hidden, (self.classes,))
        return drawn

    def collate(self, clients: Sequence[Client], device: torch.device) -> ImageInputs:
        """The clients' pixels one after the other."""
        pixels = np.concatenate([client.features for client in clients])
        return ImageInputs(torch.from_numpy(pixels).to(device), [len(client.ids) for client in clients])

    def embed(self, stack: Stack, inputs: ImageInputs, drop: Drop | None) -> Tensor:
        """The first linear layer's activation.

        Training takes a batch of the same size from every client (``ImageInputs.select``) and
        updates the running statistics in ``stack`` in place. Evaluation goes through all items in
        pieces; it leaves zeros where there is no item.
        """
        if drop is None:
            embeddings = [
                torch.cat([_embed(one, piece[None], False)[0] for piece in inputs.of(row).split(PIECE)])
                for row, one in enumerate(unstacked(stack))
            ]
            return pad_sequence(embeddings, batch_first=True)
        pixels = inputs.pixels.view(len(inputs.sizes), inputs.items, *inputs.pixels.shape[1:])
        if not pixels.is_cpu:
            return _embed(stack, pixels, True)
        # Training step of 20 clients with 64 images of CIFAR-10 each, milliseconds on two CPU cores, channels
        # last (first): one client after the other 348 (433), the same with the linear layers of all at once
        # 335 (418), grouped convolutions 550 (675), which is what torch.func.vmap comes to, patches with
        # bmm 1750. The first gives the same bits whatever the block size.
        pairs = zip(unstacked(stack), pixels, strict=True)
        return torch.cat([_embed(one, images[None], True) for one, images in pairs])

    def classify(self, stack: Stack, embedding: Tensor, inputs: ImageInputs, drop: Drop | None) -> Tensor:
        """The last linear layer."""
        if not embedding.is_cpu:
            return _classify(stack, embedding)
        return torch.cat([_classify(*one) for one in zip(unstacked(stack), embedding.split(1), strict=True)])


def _embed(stack: Stack, pixels: Tensor, training: bool) -> Tensor:
    features = convolutions(stack, pixels, training)
    return torch.relu(torch.baddbmm(stack["fc1.bias"][:, None, :], features, stack["fc1.weight"]))


def _classify(stack: Stack, embedding: Tensor) -> Tensor:
    return torch.baddbmm(stack["fc.bias"][:, None, :], embedding, stack["fc.weight"])
