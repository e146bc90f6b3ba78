"""What a method knows of its task, and the wire that counts what is exchanged before training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench import streams
from bench.nn.base import ClientModel
from bench.nn.randomness import seeded
from bench.spec import RunSpec

Stack = Mapping[str, Tensor]


class Task:
    """Sizes, parameter names, random streams and initial models. No labels.

    ``train_sizes`` ``[clients]`` float32 are the numbers of training items; ``parameters`` the
    names that can be sent, ``head`` and ``backbone`` its two parts. ``first`` is the number of the
    first client: those that join later are numbered after the others.
    """

    def __init__(
        self, spec: RunSpec, model: ClientModel, train_sizes: Tensor, device: torch.device, first: int = 0
    ) -> None:
        self.clients = len(train_sizes)
        self.rounds = spec.protocol.rounds
        self.local_epochs = spec.protocol.local_epochs
        self.device = device
        self.train_sizes = train_sizes
        self.shapes = {name: shape for name, shape in model.shapes.items() if name not in model.buffers}
        self.parameters = tuple(self.shapes)
        self.head = tuple(name for name in self.parameters if name in model.head)
        self.backbone = tuple(name for name in self.parameters if name not in model.head)
        self._seed = spec.seed
        self._first = first
        self._model = model

    def generator(self, *key: str | int) -> torch.Generator:
        """A torch generator on the CPU for the server's own randomness, keyed by what it is for."""
        return torch.Generator().manual_seed(streams.torch_seed(self._seed, "server", *key))

    def seeded(self, *key: str | int) -> AbstractContextManager[None]:
        """Networks built inside draw their initial weights from this stream."""
        return seeded(streams.torch_seed(self._seed, "server", *key))

    def common(self) -> dict[str, Tensor]:
        """One random model for all clients, ``[clients, ...]`` without copies, buffers included."""
        drawn = self._model.initial(streams.generator(self._seed, "initial", "common"))
        return {
            name: torch.from_numpy(value).to(self.device).expand(self.clients, *value.shape)
            for name, value in drawn.items()
        }

    def own(self) -> dict[str, Tensor]:
        """A random model of its own for every client, ``[clients, ...]``."""
        drawn = [
            self._model.initial(streams.generator(self._seed, "initial", client))
            for client in range(self._first, self._first + self.clients)
        ]
        return {
            name: torch.from_numpy(np.stack([one[name] for one in drawn])).to(self.device)
            for name in drawn[0]
        }


class Wire:
    """Counts the bytes of messages that clients and server exchange outside the round loop.

    Messages of an exchange (a layer of propagation, say) that a method numbers are counted apart,
    too, and in two codings: as they are, and with matrices of numbers as their non-zeros.
    """

    def __init__(self) -> None:
        self.bytes_up = 0
        self.bytes_down = 0
        self.numbered: dict[int, NDArray[np.int64]] = {}

    def upload(self, *arrays: NDArray[Any], exchange: int | None = None) -> None:
        """One client sends these arrays to the server."""
        self.bytes_up += self._count(arrays, exchange, 0)

    def download(self, *arrays: NDArray[Any], exchange: int | None = None) -> None:
        """The server sends these arrays to one client."""
        self.bytes_down += self._count(arrays, exchange, 1)

    def _count(self, arrays: Sequence[NDArray[Any]], exchange: int | None, direction: int) -> int:
        dense = sum(array.nbytes for array in arrays)
        if exchange is not None:
            counted = self.numbered.setdefault(exchange, np.zeros((2, 2), np.int64))
            counted[0, direction] += dense
            counted[1, direction] += sum(map(sparse_bytes, arrays))
        return dense

    def exchanges(self) -> NDArray[np.int64]:
        """Bytes ``[exchanges, coding (dense, sparse), direction (up, down)]`` of numbered exchanges."""
        if not self.numbered:
            return np.zeros((0, 2, 2), np.int64)
        return np.stack([self.numbered[number] for number in sorted(self.numbered)])


def sparse_bytes(array: NDArray[Any]) -> int:
    """Bytes of an array whose rows are sent as non-zeros, where that is shorter than the whole.

    A row of floats takes 4 bytes for its number of non-zeros, and 4 for the place of each besides
    its value. Arrays of one dimension (ids) are sent whole.
    """
    if array.ndim != 2:
        return array.nbytes
    coded = 4 * len(array) + (4 + array.itemsize) * int(np.count_nonzero(array))
    return min(array.nbytes, coded)
