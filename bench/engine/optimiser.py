"""Adam and SGD on stacked parameters. Their state belongs to the clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from bench.spec import ClientSettings


@dataclass(frozen=True)
class Optimiser:
    """How a step is taken. ``decay_of`` gives some parameters a weight decay of their own."""

    kind: Literal["adam", "sgd"]
    learning_rate: float
    weight_decay: float = 0.0
    decay_of: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: ClientSettings) -> Optimiser:
        """The optimiser of the client settings."""
        return cls(settings.optimizer, settings.learning_rate, settings.weight_decay)

    def decay(self, name: str) -> float:
        """The weight decay of a parameter."""
        return self.decay_of.get(name, self.weight_decay)


class OptimiserState:
    """The optimisers of all clients for one set of parameters ``[clients, ...]``.

    The numbers are those of one ``torch.optim`` object per client. Moments and step counts belong to a
    client and stay when its weights are replaced.
    """

    def __init__(self, clients: int) -> None:
        self._clients = clients
        self._moments: dict[str, tuple[Tensor, Tensor]] = {}
        self._steps: dict[str, Tensor] = {}  # on the CPU, where a step's count is looked up

    def _ensure(self, name: str, example: Tensor) -> None:
        """Make a parameter's moments before its first step. SGD and frozen parameters need none."""
        if name not in self._moments:
            size = (self._clients, *example.shape[1:])
            self._moments[name] = (example.new_zeros(size), example.new_zeros(size))
            self._steps[name] = torch.zeros(self._clients)

    def state(self) -> dict[str, Any]:
        """Moments and step counts, not copied."""
        return {"moments": self._moments, "steps": self._steps}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Take over the ``state`` of another object with as many clients."""
        self._moments, self._steps = dict(state["moments"]), dict(state["steps"])
        self._steps = {name: count.cpu() for name, count in self._steps.items()}

    def some(self, rows: Tensor) -> OptimiserState:
        """A copy of some clients' part."""
        part = OptimiserState(len(rows))
        part._moments = {name: (first[rows], second[rows]) for name, (first, second) in self._moments.items()}
        part._steps = {name: count[rows.cpu()] for name, count in self._steps.items()}
        return part

    def replace(self, rows: Tensor, part: OptimiserState) -> None:
        """Put some clients' part back."""
        for name, part_moments in part._moments.items():
            self._ensure(name, part_moments[0])
            for moment, values in zip(self._moments[name], part_moments, strict=True):
                moment[rows] = values
            self._steps[name][rows.cpu()] = part._steps[name]

    def step(
        self,
        optimiser: Optimiser,
        parameters: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
        rows: slice | Tensor,
    ) -> None:
        """Take one step of the clients in ``rows``, in place. All tensors are ``[clients of the rows,
        ...]``.
        """
        for decay in sorted({optimiser.decay(name) for name in parameters}):
            values = {name: value for name, value in parameters.items() if optimiser.decay(name) == decay}
            slopes = {name: gradients[name] for name in values}
            if optimiser.kind == "sgd":
                _fused_sgd(optimiser, decay, list(values.values()), list(slopes.values()))
            else:
                self._adam(optimiser, decay, values, slopes, rows)

    def _adam(
        self,
        optimiser: Optimiser,
        decay: float,
        parameters: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
        rows: slice | Tensor,
    ) -> None:
        """Step clients with equal step counts together: the fused kernel has one count a tensor."""
        for name, value in parameters.items():
            self._ensure(name, value)
        place = rows if isinstance(rows, slice) else rows.cpu()
        counts = torch.stack([self._steps[name][place] for name in parameters])
        if isinstance(rows, slice) and bool((counts == counts[0, 0]).all()):
            moments = [tuple(moment[rows] for moment in self._moments[name]) for name in parameters]
            values = list(parameters.values())
            _fused_adam(optimiser, decay, values, list(gradients.values()), moments, counts[0, 0])
        else:
            numbers = torch.arange(self._clients)[place]
            for (name, value), steps_of_clients in zip(parameters.items(), counts, strict=True):
                for steps in steps_of_clients.unique():
                    positions = torch.nonzero(steps_of_clients == steps).squeeze(1)
                    clients, positions = numbers[positions].to(value.device), positions.to(value.device)
                    part = value[positions]
                    moments = [tuple(moment[clients] for moment in self._moments[name])]
                    _fused_adam(optimiser, decay, [part], [gradients[name][positions]], moments, steps)
                    value[positions] = part
                    for kept_moment, moment in zip(self._moments[name], moments[0], strict=True):
                        kept_moment[clients] = moment
        for name in parameters:
            self._steps[name][place] += 1


def _fused_adam(
    optimiser: Optimiser,
    decay: float,
    parameters: list[Tensor],
    gradients: list[Tensor],
    moments: list[tuple[Tensor, ...]],
    steps: Tensor,
) -> None:
    adam(
        parameters,
        gradients,
        [first for first, _ in moments],
        [second for _, second in moments],
        [],
        [steps.to(value.device, copy=True) for value in parameters],
        fused=True,
        amsgrad=False,
        beta1=0.9,
        beta2=0.999,
        lr=optimiser.learning_rate,
        weight_decay=decay,
        eps=1e-8,
        maximize=False,
    )


def _fused_sgd(optimiser: Optimiser, decay: float, parameters: list[Tensor], gradients: list[Tensor]) -> None:
    sgd(
        parameters,
        gradients,
        [None] * len(parameters),
        fused=True,
        weight_decay=decay,
        momentum=0.0,
        lr=optimiser.learning_rate,
        dampening=0.0,
        nesterov=False,
        maximize=False,
    )
