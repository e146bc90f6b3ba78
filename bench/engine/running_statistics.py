"""Running statistics of batch normalisation that clients share (``client.bn_stats = "averaged"``)."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.engine.batch import Stack
from bench.engine.message import Message
from bench.nn.base import ClientModel


class AveragedStatistics:
    """The server's mean of the statistics of one round's participants, by their training items.

    They go with their layer's parameters: they leave a client that uploads these as it keeps them, and
    reach one that takes these over as they are sent. Layers that a method leaves at their clients, and models
    of which the clients send another one, keep their own. ``values`` are the means by name, without a row
    for every client.
    """

    def __init__(self, model: ClientModel, train_sizes: Tensor) -> None:
        self.values: dict[str, Tensor] = {}
        self._sizes = train_sizes
        trained = [name for name in model.shapes if name not in model.buffers]
        self._parameters = {
            buffer: [name for name in trained if _layer(name) == _layer(buffer)]
            for buffer in sorted(model.buffers)
        }

    def _with_layer(self, a: Stack, b: Stack) -> list[str]:
        """Names of statistics whose layer has the same parameters in both stacks."""
        return [
            buffer
            for buffer, names in self._parameters.items()
            if all(name in a and name in b and torch.equal(a[name], b[name]) for name in names)
        ]

    def collect(self, participants: Tensor, stack: Stack, upload: Stack) -> Message:
        """Replace the means; returns what the participants, whose rows the stacks hold, send for it."""
        shares = self._sizes[participants] / self._sizes[participants].sum()
        values = {name: stack[name] for name in self._with_layer(stack, upload)}
        self.values = {name: torch.tensordot(shares, value, dims=1) for name, value in values.items()}
        return Message(values)

    def hand_out(self, received: Stack, sent_stack: Stack) -> Message:
        """The means for clients that have received parameters as they were sent, a row for each."""
        return Message(
            {
                name: self.values[name].expand(received[name].shape)
                for name in self._with_layer(received, sent_stack)
                if name in self.values
            }
        )


def _layer(name: str) -> str:
    return name.rpartition(".")[0]
