"""The base class of client models: one network, evaluated for many clients at once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
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
    """The data of a block of clients in the layout of one model. Items are padded to the longest client."""

    lengths: Tensor
    """Items of each client, int64 ``[clients]``."""
    items: int
    """Items of the longest client."""

    def select(self, items: Tensor, rows: Tensor) -> Inputs:
        """Select items ``[rows, batch]`` of the block's clients ``rows``. Models on graphs cannot."""
        raise TypeError(f"{type(self).__name__} cannot be cut into batches")


Drop = Callable[[Tensor, int], Tensor]
"""Applies the dropout of one site: ``drop(activations [clients, items, width], site)``."""


def keep_all(activations: Tensor, site: int) -> Tensor:
    """No dropout in training."""
    return activations


class ClientModel(ABC):
    """A network whose parameters have a leading client dimension.

    The registry finds every subclass with a ``name`` of its own.

    Attributes:
        head: the names of the classifier's parameters. The other parameters are the backbone.
        buffers: the names of running statistics. They stay with the client, and are neither trained nor
            sent.
        first_matrix: the name of a matrix of which sparse features multiply few rows; empty if there is none.
        dropout_widths: the width of the activations at every dropout site.
        batches: whether the model can train on some of a client's items at a time.
        one_by_one: whether a CPU is faster with one client in a block, since its activations fill the
            cache.
        normalises: whether the model normalises by batch statistics. Then ``buffers`` has the running
            ones.
    """

    name: ClassVar[str]
    families: ClassVar[tuple[Family, ...]]

    head: frozenset[str]
    batches: ClassVar[bool] = False
    one_by_one: ClassVar[bool] = False
    normalises: ClassVar[bool] = False
    buffers: frozenset[str] = frozenset()
    first_matrix: str = ""
    dropout_widths: tuple[int, ...] = ()

    def __init__(self, clients: Sequence[Client], classes: int, settings: ClientSettings) -> None:
        """Read sizes, and everything that must not differ between blocks, from all clients' data."""
        self.inputs = int(clients[0].features.shape[1])
        self.hidden, self.classes = settings.hidden, classes

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter for one client, by name."""
        return {name: value.shape for name, value in self.initial(np.random.default_rng(0)).items()}

    @abstractmethod
    def initial(self, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        """Draw the initial parameters of one client."""

    @abstractmethod
    def collate(self, clients: Sequence[Client], device: torch.device) -> Inputs:
        """Lay out the data of a block of clients."""

    def collate_common(self, client: Client, count: int, device: torch.device) -> Inputs:
        """Lay out the same data for each of ``count`` clients. A model may hold once what they share."""
        return self.collate([client] * count, device)

    def forward(self, stack: Mapping[str, Tensor], inputs: Any, drop: Drop | None) -> Output:
        """Logits and embeddings. ``drop`` is None in evaluation.

        In training they need only be right for training items: a model may leave out what these do not
        depend on. A method that needs other items evaluates the clients (``Clients.reduce``).
        """
        embedding = self.embed(stack, inputs, drop)
        return Output(self.classify(stack, embedding, inputs, drop), embedding)

    def gradients(
        self,
        stack: Mapping[str, Tensor],
        inputs: Any,
        drop: Drop | None,
        loss: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, dict[str, Tensor]] | None:
        """The ``loss`` ``[clients]`` of the logits in training, and its gradients by parameter.

        They are those of autograd, to the bit. ``drop`` is ``keep_all`` or a ``randomness.DropoutMasks``.
        None: autograd computes them.
        """
        return None

    @abstractmethod
    def embed(self, stack: Mapping[str, Tensor], inputs: Any, drop: Drop | None) -> Tensor:
        """The input of the head, ``[clients, items, width]``, from the backbone's parameters."""

    @abstractmethod
    def classify(
        self, stack: Mapping[str, Tensor], embedding: Tensor, inputs: Any, drop: Drop | None
    ) -> Tensor:
        """Logits ``[clients, items, classes]`` from embeddings and the head's parameters."""


def glorot_bound(fan_in: int, fan_out: int) -> float:
    """The largest entry of a Glorot-uniform matrix ``[fan_in, fan_out]``."""
    return math.sqrt(6.0 / (fan_in + fan_out))


def glorot(rng: np.random.Generator, fan_in: int, fan_out: int) -> NDArray[np.float32]:
    """A Glorot-uniform matrix ``[fan_in, fan_out]``, the default of graph convolutions."""
    bound = glorot_bound(fan_in, fan_out)
    return rng.uniform(-bound, bound, (fan_in, fan_out)).astype(np.float32)


def fan_in_uniform(rng: np.random.Generator, fan_in: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Uniform within ``1 / sqrt(fan_in)``, torch's default for linear and convolution layers."""
    bound = 1.0 / np.sqrt(fan_in)
    return rng.uniform(-bound, bound, shape).astype(np.float32)


CLIENT_MODELS: Kind[ClientModel] = Kind("client.model", "bench.nn", "bench.nn.base:ClientModel")
