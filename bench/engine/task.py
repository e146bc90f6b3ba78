"""What a method knows of its task: sizes, names, random streams and initial models."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np
import torch
from torch import Tensor

from bench import streams
from bench.nn.base import ClientModel
from bench.nn.randomness import seeded
from bench.spec import RunSpec


class Task:
    """Sizes, parameter names, random streams and initial models. There are no labels.

    Attributes:
        clients: the number of clients.
        rounds: the number of rounds.
        participation: the share of clients that take part in a round.
        newcomers: whether clients join after the last round.
        train_sizes: the numbers of training items, float32 ``[clients]``.
        shapes: the shape of every parameter that can be sent.
        parameters: the names of these, of which ``head`` and ``backbone`` are the two parts.
        layers: the names by layer. A layer is a module of the client model, such as a weight and its
            bias.

    ``offset`` is the number of the first client. Clients that join later are numbered after the others.
    """

    def __init__(
        self, spec: RunSpec, model: ClientModel, train_sizes: Tensor, device: torch.device, offset: int = 0
    ) -> None:
        self.clients = len(train_sizes)
        self.rounds = spec.protocol.rounds
        self.participation = spec.protocol.participation
        self.newcomers = spec.newcomers is not None
        self.device = device
        self.train_sizes = train_sizes
        self.shapes = {name: shape for name, shape in model.shapes.items() if name not in model.buffers}
        self.parameters = tuple(self.shapes)
        self.head = tuple(name for name in self.parameters if name in model.head)
        self.backbone = tuple(name for name in self.parameters if name not in model.head)
        self.layers: dict[str, tuple[str, ...]] = {}
        for name in self.parameters:
            layer = name.rpartition(".")[0] or name
            self.layers[layer] = (*self.layers.get(layer, ()), name)
        self._seed = spec.seed
        self._offset = offset
        self._model = model

    def generator(self, *key: str | int) -> torch.Generator:
        """A torch generator on the CPU for the server's randomness. The key says what it is for."""
        return torch.Generator().manual_seed(streams.torch_seed(self._seed, "server", *key))

    def seeded(self, *key: str | int) -> AbstractContextManager[None]:
        """Draw the initial weights of networks that are built in the ``with`` block from a stream of this
        key.
        """
        return seeded(streams.torch_seed(self._seed, "server", *key))

    def common(self) -> dict[str, Tensor]:
        """One random model for all clients, ``[clients, ...]`` without copies, with buffers."""
        parameters = self._model.initial(streams.generator(self._seed, "initial", "common"))
        return {
            name: torch.from_numpy(value).to(self.device).expand(self.clients, *value.shape)
            for name, value in parameters.items()
        }

    def own(self) -> dict[str, Tensor]:
        """A random model for every client, ``[clients, ...]``."""
        draws = [
            self._model.initial(streams.generator(self._seed, "initial", client))
            for client in range(self._offset, self._offset + self.clients)
        ]
        return {
            name: torch.from_numpy(np.stack([draw[name] for draw in draws])).to(self.device)
            for name in draws[0]
        }
