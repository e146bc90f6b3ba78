"""What clients and server send each other in a round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from bench.engine.batch import Stack


@dataclass(frozen=True, eq=False)
class Message:
    """One row a client in every tensor: ``model`` parameters by name, ``extras`` whatever else by name.

    What the server sends to all alike is expanded to a row a client, so that it is counted for each.
    """

    model: Stack = field(default_factory=dict)
    extras: Mapping[str, Tensor] = field(default_factory=dict)

    def of(self, clients: Tensor) -> Message:
        """The rows of some clients."""
        return Message(
            {name: value[clients] for name, value in self.model.items()},
            {name: value[clients] for name, value in self.extras.items()},
        )

    @property
    def bytes(self) -> int:
        """Size of all tensors together."""
        tensors = [*self.model.values(), *self.extras.values()]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@dataclass(frozen=True, eq=False)
class Update:
    """What a client's part of a round leaves: what the client keeps, and what it uploads."""

    keep: Stack
    upload: Message = field(default_factory=Message)
