"""What clients and server send each other in a round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from bench.engine.batch import Stack


@dataclass(frozen=True, eq=False)
class Message:
    """Tensors with one row for each client: ``model`` has parameters by name, ``extras`` anything else by
    name.

    What the server sends to all clients is expanded to one row each, so that it is counted for each.

    Raises:
        ValueError: the tensors have different numbers of rows, or one carries a gradient.
    """

    model: Stack = field(default_factory=dict)
    extras: Mapping[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tensors = {**self.model, **self.extras}
        if len({value.shape[:1] for value in tensors.values()}) > 1:
            shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in tensors.items())
            raise ValueError(f"a message needs a row for every client in every tensor, got {shapes}")
        for name, value in tensors.items():
            if value.requires_grad:
                raise ValueError(f"a message gives {name} with a gradient: detach it")

    def of(self, clients: Tensor) -> Message:
        """Select the rows of some clients."""
        return Message(
            {name: value[clients] for name, value in self.model.items()},
            {name: value[clients] for name, value in self.extras.items()},
        )

    @property
    def bytes(self) -> int:
        """The size of all tensors together."""
        tensors = [*self.model.values(), *self.extras.values()]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@dataclass(frozen=True, eq=False)
class Update:
    """The result of the clients' part of a round: what clients keep, and what they upload."""

    keep: Stack
    upload: Message = field(default_factory=Message)
