"""The seam for client models: one network, evaluated for many clients at once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench.data import Family
from bench.federation.types import Client
from bench.registry import Kind
from bench.spec import ClientSettings


class Output(NamedTuple):
    """``logits`` ``[clients, items, classes]`` and ``embedding`` ``[clients, items, width]``."""

    logits: Tensor
    embedding: Tensor


class Inputs(ABC):
    """The data of a block of clients in the layout of one model, items padded to the longest client."""

    lengths: Tensor
    """Items of each client, int64 ``[clients]``."""
    items: int
    """Items of the longest client."""

    def begin_step(self) -> None:  # noqa: B027 - most models keep nothing between steps
        """Called before every training step; buffers handed out in the last one may be used again."""

    def select(self, items: Tensor, rows: Tensor) -> Inputs:
        """Items ``[rows, batch]`` of the block's clients ``rows``; only for models without a graph."""
        raise TypeError(f"{type(self).__name__} cannot be cut into batches")


Drop = Callable[[Tensor, int], Tensor]
"""Applies the dropout of one site: ``drop(activations [clients, items, width], site)``."""


def keep_all(activations: Tensor, site: int) -> Tensor:
    """Training without dropout."""
    return activations


class ClientModel(ABC):
    """A network whose parameters carry a leading client dimension.

    A subclass with a ``name`` of its own is found by the registry.

    ``shapes`` maps a parameter's name to its shape for one client; ``head`` names the parameters
    of the classifier, all others are the backbone; ``buffers`` names running statistics, which
    are kept with the client's parameters but neither trained nor sent; ``dropout_widths`` the
    width of the activations at every dropout site; ``batches`` says whether the model can train on
    some of a client's items at a time; ``one_by_one`` whether a CPU is faster with one
    client in a block, as it is where the activations of one fill the cache; ``normalises`` whether it
    normalises by the statistics of a batch, of which ``buffers`` are the running ones.
    """

    name: ClassVar[str]
    families: ClassVar[tuple[Family, ...]]

    shapes: dict[str, tuple[int, ...]]
    head: frozenset[str]
    batches: ClassVar[bool] = False
    one_by_one: ClassVar[bool] = False
    normalises: ClassVar[bool] = False
    buffers: frozenset[str] = frozenset()
    dropout_widths: tuple[int, ...] = ()

    @abstractmethod
    def __init__(self, clients: Sequence[Client], classes: int, settings: ClientSettings) -> None:
        """Sizes, and whatever must not differ between blocks, are read from all clients' data."""

    @abstractmethod
    def initial(self, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        """Random initial parameters of one client."""

    @abstractmethod
    def collate(self, clients: Sequence[Client], device: torch.device) -> Inputs:
        """Lay out a block of clients."""

    def collate_common(self, client: Client, count: int, device: torch.device) -> Inputs:
        """The same data for each of ``count`` clients; a model may hold what they share once."""
        return self.collate([client] * count, device)

    def forward(self, stack: Mapping[str, Tensor], inputs: Any, drop: Drop | None) -> Output:
        """Logits and embeddings; ``drop`` is None in evaluation and only then.

        In training they need be right for training items alone: a model may leave out what these do
        not depend on. A method that needs others' evaluates the clients (``Clients.reduce``).
        """
        embedding = self.embed(stack, inputs, drop)
        return Output(self.classify(stack, embedding, inputs, drop), embedding)

    @abstractmethod
    def embed(self, stack: Mapping[str, Tensor], inputs: Any, drop: Drop | None) -> Tensor:
        """What the head reads, ``[clients, items, width]``, by the backbone's parameters."""

    @abstractmethod
    def classify(
        self, stack: Mapping[str, Tensor], embedding: Tensor, inputs: Any, drop: Drop | None
    ) -> Tensor:
        """Logits ``[clients, items, classes]`` of embeddings, by the head's parameters."""


def glorot_bound(fan_in: int, fan_out: int) -> float:
    """Largest entry of a Glorot-uniform matrix ``[fan_in, fan_out]``."""
    return math.sqrt(6.0 / (fan_in + fan_out))


def glorot(rng: np.random.Generator, fan_in: int, fan_out: int) -> NDArray[np.float32]:
    """Glorot-uniform matrix ``[fan_in, fan_out]`` (the default of graph convolutions)."""
    bound = glorot_bound(fan_in, fan_out)
    return rng.uniform(-bound, bound, (fan_in, fan_out)).astype(np.float32)


def fan_in_uniform(rng: np.random.Generator, fan_in: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Uniform within ``1 / sqrt(fan_in)`` (torch's default for linear and convolution layers)."""
    bound = 1.0 / np.sqrt(fan_in)
    return rng.uniform(-bound, bound, shape).astype(np.float32)


CLIENT_MODELS: Kind[ClientModel] = Kind(
    "client.model", "bench.models", "bench.nn", "bench.nn.base:ClientModel"
)
