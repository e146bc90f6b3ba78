"""Adam and SGD on stacked parameters. Their state belongs to the clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "amsgrad": False, "maximize": False, "fused": True}
SGD = {"momentum": 0.0, "dampening": 0.0, "nesterov": False, "maximize": False, "fused": True}
"""Arguments that no setting changes."""


@dataclass(frozen=True)
class Optimiser:
    """The rule of a step. ``decay_of`` gives some parameters a weight decay of their own."""

    kind: Literal["adam", "sgd"]
    learning_rate: float
    weight_decay: float = 0.0
    decay_of: Mapping[str, float] = field(default_factory=dict)

    def decay(self, name: str) -> float:
        """The weight decay of a parameter."""
        return self.decay_of.get(name, self.weight_decay)


class OptimiserState:
    """The optimisers of all clients for one set of parameters ``[clients, ...]``.

    The numbers equal those of one ``torch.optim`` object per client. Moments and step counts belong to a
    client and stay when its weights are replaced.

    Attributes:
        round: the round of the last fit.
    """

    def __init__(self, clients: int) -> None:
        self.round = -1
        self._clients = clients
        self._moments: dict[str, tuple[Tensor, Tensor]] = {}
        self._steps: dict[str, Tensor] = {}  # on the CPU, where a step's count is looked up
        self._unread: dict[str, tuple[Tensor, Tensor, Tensor]] = {}
        """The rows ``[clients, rows]`` that ``_moments`` has of a matrix, and both moments of all other rows,
        which are the same for all clients.
        """

    def share(self, name: str, matrix: Tensor, rows: Tensor) -> bool:
        """Hold a matrix's moments per client in ``rows`` ``[clients, rows]``, and once in all other rows.

        If steps were taken with moments that are held for every client, return False and change nothing.
        """
        if not self._steps:
            self._unread[name] = rows, torch.zeros_like(matrix), torch.zeros_like(matrix)
            self._begin(name, matrix.new_zeros(*rows.shape, matrix.shape[1]))
        return name in self._unread

    def step_unread(self, optimiser: Optimiser, name: str, matrix: Tensor, steps: int) -> None:
        """Take steps with gradient zero, in place, for the rows that are held once for all clients."""
        _, *moments = self._unread[name]
        zeros = torch.zeros_like(matrix)
        for step in range(steps):
            count = self._steps[name][0] + step
            _fused_adam(optimiser, optimiser.decay(name), [matrix], [zeros], [moments], count)

    def settle(self) -> None:
        """Hold all moments for every client."""
        for name, (rows, *moments) in self._unread.items():
            first, second = (common.repeat(self._clients, 1, 1) for common in moments)
            for whole, own in zip((first, second), self._moments[name], strict=True):
                whole[torch.arange(self._clients)[:, None], rows] = own
            self._moments[name] = first, second
        self._unread = {}

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {"moments": self._moments, "steps": self._steps, "unread": self._unread}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from the ``state`` of another object with as many clients."""
        self._moments, self._unread = state["moments"], state["unread"]
        self._steps = {name: count.cpu() for name, count in state["steps"].items()}

    def _begin(self, name: str, zeros: Tensor) -> None:
        self._moments[name] = zeros, zeros.clone()
        self._steps[name] = torch.zeros(self._clients)

    def step(
        self,
        optimiser: Optimiser,
        parameters: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
        rows: slice | Tensor,
    ) -> None:
        """Take one step of the clients in ``rows``, in place. Tensors have a row for each of these."""
        for decay in sorted({optimiser.decay(name) for name in parameters}):
            values = {name: value for name, value in parameters.items() if optimiser.decay(name) == decay}
            slopes = [gradients[name] for name in values]
            if optimiser.kind == "sgd":
                _fused_sgd(optimiser, decay, list(values.values()), slopes)
            else:
                self._adam(optimiser, decay, values, slopes, rows)

    def _adam(
        self,
        optimiser: Optimiser,
        decay: float,
        parameters: Mapping[str, Tensor],
        gradients: list[Tensor],
        rows: slice | Tensor,
    ) -> None:
        """Step clients with equal step counts together: the fused kernel has one count per tensor."""
        for name, value in parameters.items():
            if name not in self._steps:
                self._begin(name, value.new_zeros(self._clients, *value.shape[1:]))
        place = rows if isinstance(rows, slice) else rows.cpu()
        counts = torch.stack([self._steps[name][place] for name in parameters])
        if isinstance(rows, slice) and bool((counts == counts[0, 0]).all()):
            moments = [[moment[rows] for moment in self._moments[name]] for name in parameters]
            _fused_adam(optimiser, decay, list(parameters.values()), gradients, moments, counts[0, 0])
        else:
            numbers = torch.arange(self._clients)[place]
            for (name, value), gradient, steps_of_clients in zip(
                parameters.items(), gradients, counts, strict=True
            ):
                first, second = self._moments[name]
                for steps in steps_of_clients.unique():
                    positions = torch.nonzero(steps_of_clients == steps).squeeze(1)
                    clients, positions = numbers[positions].to(value.device), positions.to(value.device)
                    part, own = value[positions], (first[clients], second[clients])
                    _fused_adam(optimiser, decay, [part], [gradient[positions]], [own], steps)
                    value[positions], first[clients], second[clients] = part, *own
        for name in parameters:
            self._steps[name][place] += 1


def _fused_adam(
    optimiser: Optimiser,
    decay: float,
    parameters: list[Tensor],
    gradients: list[Tensor],
    moments: Sequence[Sequence[Tensor]],
    steps: Tensor,
) -> None:
    first, second = ([pair[which] for pair in moments] for which in (0, 1))
    counts = [steps.to(value.device, copy=True) for value in parameters]
    rates: dict[str, Any] = {"lr": optimiser.learning_rate, "weight_decay": decay, **ADAM}
    adam(parameters, gradients, first, second, [], counts, **rates)


def _fused_sgd(optimiser: Optimiser, decay: float, parameters: list[Tensor], gradients: list[Tensor]) -> None:
    buffers: list[Tensor | None] = [None] * len(parameters)
    rates: dict[str, Any] = {"lr": optimiser.learning_rate, "weight_decay": decay, **SGD}
    sgd(parameters, gradients, buffers, **rates)
