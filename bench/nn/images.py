"""The inputs of client models of images, and convolutions with batch normalisation by client.

Pixels are scaled to [-1, 1]. Every client has its own batch normalisation: by batch statistics in
training, by running statistics in evaluation. Running statistics stay with the client.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from bench.errors import NotApplicableError
from bench.federation.types import Client
from bench.nn.base import ClientModel, Drop, Inputs
from bench.spec import ClientSettings

MOMENTUM, EPSILON = 0.1, 1e-5
"""Torch's defaults: share of a batch in the running statistics, and what is added to a variance."""
SMALLEST = 16
"""Height and width of the smallest images."""
PIECE = 128
"""Images that are evaluated at once. 1024 of them cost the CNN 147 ms of a CPU core in pieces of 64, 157 of
128, 228 of 512, 257 in one; larger pieces mean fewer launches on an accelerator."""

Stack = Mapping[str, Tensor]


class ImageInputs(Inputs):
    """The images of a block of clients, one client after the other, without padding.

    ``pixels`` are uint8 ``[all items, channels, height, width]``, ``sizes`` the numbers of each client's
    items.
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
        positions = (self._starts[rows][:, None] + items).flatten()
        return ImageInputs(self.pixels[positions], [items.shape[1]] * items.shape[0])


def scaled(pixels: Tensor) -> Tensor:
    """uint8 -> float32 in [-1, 1]: mean and deviation 0.5 in every channel, as the study normalises."""
    return pixels.float().div_(255).sub_(0.5).div_(0.5)


def channels_of_all(pixels: Tensor) -> Tensor:
    """uint8 ``[clients, batch, channels, ...]`` -> scaled ``[batch, clients * channels, ...]``.

    Clients are groups of the channels, so that a channel's statistics over a batch are those of one client.
    """
    hidden = scaled(pixels).transpose(0, 1).flatten(1, 2)
    return hidden.contiguous(memory_format=torch.channels_last) if hidden.is_cpu else hidden


def normalised_convolution(
    stack: Stack, hidden: Tensor, conv: str, norm: str, training: bool, stride: int = 1, padding: int = 0
) -> Tensor:
    """A convolution and its batch normalisation, by the names of the two layers.

    ``hidden`` ``[batch, clients * channels, height, width]``. In training the running statistics in
    ``stack`` are updated in place. A single value of a channel has no variance: it is normalised by
    running statistics, which stay as they are.
    """
    clients = len(stack[f"{conv}.weight"])
    weight = stack[f"{conv}.weight"].flatten(0, 1)
    bias = stack[f"{conv}.bias"].flatten() if f"{conv}.bias" in stack else None
    mean = stack[f"{norm}.running_mean"].view(-1)  # a view: a copy would lose the update
    variance = stack[f"{norm}.running_var"].view(-1)
    scale, shift = stack[f"{norm}.weight"].flatten(), stack[f"{norm}.bias"].flatten()
    if training:
        convolved = functional.conv2d(hidden, weight, bias, stride, padding, groups=clients)
        if convolved[:, 0].numel() > 1:
            return functional.batch_norm(convolved, mean, variance, scale, shift, True, MOMENTUM, EPSILON)
    # in evaluation the normalisation is folded into the convolution
    scale = scale * torch.rsqrt(variance + EPSILON)
    bias = torch.addcmul(shift, (-mean if bias is None else bias - mean), scale)
    weight = weight * scale[:, None, None, None]
    return functional.conv2d(hidden, weight, bias, stride, padding, groups=clients)


def unstacked(stack: Stack) -> list[dict[str, Tensor]]:
    """Every client's part of a stack, ``[1, ...]``. The gradients of the parts are joined by one copy."""
    if len(next(iter(stack.values()))) == 1:
        return [dict(stack)]
    parts = {name: torch.split(value, 1) for name, value in stack.items()}
    return [dict(zip(parts, values, strict=True)) for values in zip(*parts.values(), strict=True)]


class ImageModel(ClientModel):
    """A network of convolutions with a linear layer ``fc`` as head. A subclass defines the convolutions."""

    families = ("images",)
    batches = True
    one_by_one = True
    normalises = True
    head = frozenset({"fc.weight", "fc.bias"})

    def __init__(self, clients: Sequence[Client], classes: int, settings: ClientSettings) -> None:
        super().__init__(clients, classes, settings)
        self.channels, self.height, self.width = clients[0].features.shape[1:]
        if min(self.height, self.width) < SMALLEST:
            raise NotApplicableError(
                f"client.model '{self.name}' expects images of {SMALLEST} x {SMALLEST} pixels or more, got "
                f"{self.height} x {self.width}: choose another data set"
            )

    def collate(self, clients: Sequence[Client], device: torch.device) -> ImageInputs:
        """The clients' pixels one after the other."""
        pixels = np.concatenate([client.features for client in clients])
        return ImageInputs(torch.from_numpy(pixels).to(device), [len(client.ids) for client in clients])

    @abstractmethod
    def features(self, stack: Stack, pixels: Tensor, training: bool) -> Tensor:
        """The input of the head, ``[clients, batch, width]``.

        ``pixels`` are uint8 ``[clients, batch, channels, height, width]``. In training the running
        statistics in ``stack`` are updated in place.
        """

    def embed(self, stack: Stack, inputs: ImageInputs, drop: Drop | None) -> Tensor:
        """The ``features`` of all items.

        In training every client has a batch of the same size (``ImageInputs.select``). Evaluation goes
        through all items in pieces, and leaves zeros where there is no item.
        """
        if drop is None:
            embeddings = []
            for row, net in enumerate(unstacked(stack)):
                pieces = inputs.of(row).split(PIECE)
                embeddings.append(torch.cat([self.features(net, piece[None], False)[0] for piece in pieces]))
            return pad_sequence(embeddings, batch_first=True)
        pixels = inputs.pixels.view(len(inputs.sizes), inputs.items, *inputs.pixels.shape[1:])
        if not pixels.is_cpu:
            return self.features(stack, pixels, True)
        # Training step of the CNN, 20 clients with 64 images of CIFAR-10 each, milliseconds on two CPU cores,
        # channels last (first): one client after the other 348 (433), the same with the linear layers of all
        # at once 335 (418), grouped convolutions 550 (675), which is what torch.func.vmap comes to, patches
        # with bmm 1750. The first gives the same bits whatever the block size.
        pairs = zip(unstacked(stack), pixels, strict=True)
        return torch.cat([self.features(net, images[None], True) for net, images in pairs])

    def classify(self, stack: Stack, embedding: Tensor, inputs: ImageInputs, drop: Drop | None) -> Tensor:
        """The last linear layer."""
        if not embedding.is_cpu:
            return _classify(stack, embedding)
        pairs = zip(unstacked(stack), embedding.split(1), strict=True)
        return torch.cat([_classify(*pair) for pair in pairs])


def _classify(stack: Stack, embedding: Tensor) -> Tensor:
    return torch.baddbmm(stack["fc.bias"][:, None, :], embedding, stack["fc.weight"])
