"""A hypernetwork: it maps one vector per client to the parameters of every client's model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from bench.nn.randomness import dropout


class Hypernetwork(nn.Module):
    """An MLP body and one linear output layer per generated tensor.

    ``widths`` are the widths of the body's layers, input first. ReLU and dropout follow every layer
    except the output layers. Dropout is also applied to the input. With ``linear_end`` neither follows
    the body's last layer.

    The output layers hold nearly all weights. Their gradients are written into memory that is kept.
    """

    def __init__(
        self,
        widths: Sequence[int],
        shapes: Mapping[str, tuple[int, ...]],
        dropout_rate: float,
        linear_end: bool = False,
    ) -> None:
        super().__init__()
        self.rate = dropout_rate
        self.linear_end = linear_end
        self.shapes = dict(shapes)
        self.body = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.out = nn.ModuleDict(
            {_key(name): nn.Linear(widths[-1], math.prod(shape)) for name, shape in shapes.items()}
        )

    def _layer(self, name: str) -> nn.Linear:
        return cast(nn.Linear, self.out[_key(name)])

    def start_from(self, model: Mapping[str, Tensor], scale: float) -> None:
        """Let the output be ``model`` (one client's parameters) plus a part scaled by ``scale``.

        With torch's default initial weights all generated values have the same range, whatever a layer's
        fan-in. The client model trains badly from there.
        """
        with torch.no_grad():
            for name in self.shapes:
                layer = self._layer(name)
                layer.weight.mul_(scale)
                layer.bias.copy_(model[name].reshape(-1))

    def features(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """The input of the output layers, ``[clients, width]``; no dropout without a ``generator``."""
        x = dropout(x, self.rate, generator)
        *inner_layers, last_layer = self.body
        for layer in inner_layers:
            x = dropout(torch.relu(layer(x)), self.rate, generator)
        x = last_layer(x)
        return x if self.linear_end else dropout(torch.relu(x), self.rate, generator)

    def emit(self, features: Tensor) -> dict[str, Tensor]:
        """The generated parameters, ``[clients, ...]``, without an autograd graph."""
        with torch.no_grad():
            return {
                name: self._layer(name)(features).view(len(features), *shape)
                for name, shape in self.shapes.items()
            }

    def pull_back(self, features: Tensor, gradient: Mapping[str, Tensor]) -> Tensor:
        """Backward pass of the output layers.

        Sets their ``.grad`` from ``gradient`` (by name, ``[clients, ...]``) and returns the
        gradient with respect to ``features``.
        """
        features_gradient = torch.zeros_like(features)
        with torch.no_grad():
            for name in self.shapes:
                layer = self._layer(name)
                flat_gradient = gradient[name].reshape(len(features), -1)
                if layer.weight.grad is None or layer.bias.grad is None:
                    layer.weight.grad = torch.empty_like(layer.weight)
                    layer.bias.grad = torch.empty_like(layer.bias)
                torch.mm(flat_gradient.t(), features, out=layer.weight.grad)
                torch.sum(flat_gradient, dim=0, out=layer.bias.grad)
                features_gradient.addmm_(flat_gradient, layer.weight)
        return features_gradient


def clip_gradients(parameters: Sequence[nn.Parameter], limit: float) -> None:
    """Scale the gradients so that their joint norm is at most ``limit``."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    if norm > limit:  # the library's own clipping rewrites every gradient even when nothing is to do
        torch._foreach_mul_(gradients, float(limit / norm))


def _key(name: str) -> str:
    return name.replace(".", "_")  # a module's name may hold no dot
