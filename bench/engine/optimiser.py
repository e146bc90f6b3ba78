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


def with_rows(common: Tensor, own: Tensor, rows: Tensor, target: Tensor) -> Tensor:
    """Fill ``target`` ``[c, all rows, width]``: ``common`` for every client, with its ``own`` at ``rows``."""
    clients, count, width = target.shape
    target.copy_(common)
    places = rows + count * torch.arange(clients)[:, None]
    target.view(clients * count, width).index_copy_(0, places.flatten(), own.view(-1, width))
    return target


class SharedMoments:
    """Moments ``[clients, all rows, width]``, held once for all clients in the rows that they do not use.

    Attributes:
        common: the moments of a row that a client does not use, ``[all rows, width]``.
        own: by the first client of a block, the moments of the rows in use, ``[c, rows, width]``.
        rows: by the same, which rows these are, ``[c, rows]``.
    """

    def __init__(self, common: Tensor, own: dict[int, Tensor], rows: Mapping[int, Tensor]) -> None:
        self.common, self.own, self.rows = common, own, rows

    @classmethod
    def zeros(cls, common: Tensor, rows: Mapping[int, Tensor]) -> SharedMoments:
        """Those before the first step, for a matrix ``common`` ``[all rows, width]``."""
        own = {start: common.new_zeros(*places.shape, common.shape[1]) for start, places in rows.items()}
        return cls(torch.zeros_like(common), own, rows)

    @classmethod
    def of(cls, moments: Tensor, rows: Mapping[int, Tensor]) -> SharedMoments | None:
        """Moments of all rows as shared ones; None if they differ between clients that do not use a row."""
        is_used = torch.zeros(moments.shape[:2], dtype=torch.bool)
        own = {}
        for start, places in rows.items():
            clients = torch.arange(start, start + len(places))[:, None]
            is_used[clients, places] = True
            own[start] = moments[clients, places]
        without = (~is_used).int().argmax(dim=0)
        shared = cls(moments[without, torch.arange(len(without))], own, rows)
        return shared if torch.equal(shared.dense(), moments) else None

    def __getitem__(self, clients: slice) -> Tensor:
        return self.own[clients.start]

    def dense(self) -> Tensor:
        """The moments of all rows of every client."""
        size = (sum(map(len, self.own.values())), *self.common.shape)
        moments = self.common.new_empty(size)
        for start, own in self.own.items():
            with_rows(self.common, own, self.rows[start], moments[start : start + len(own)])
        return moments


class OptimiserState:
    """The optimisers of all clients for one set of parameters ``[clients, ...]``.

    The numbers are those of one ``torch.optim`` object per client. Moments and step counts belong to a
    client and stay when its weights are replaced.
    """

    def __init__(self, clients: int) -> None:
        self._clients = clients
        self._moments: dict[str, tuple[Tensor, Tensor]] = {}
        self._shared: dict[str, tuple[SharedMoments, SharedMoments]] = {}
        self._steps: dict[str, Tensor] = {}  # on the CPU, where a step's count is looked up

    def _ensure(self, name: str, example: Tensor) -> None:
        """Make a parameter's moments before its first step. SGD and frozen parameters need none."""
        if name not in self._steps:
            size = (self._clients, *example.shape[1:])
            self._moments[name] = (example.new_zeros(size), example.new_zeros(size))
            self._steps[name] = torch.zeros(self._clients)

    def share(self, name: str, common: Tensor, rows: Mapping[int, Tensor]) -> bool:
        """Hold a parameter's moments once for all clients where they do not use a row.

        ``common`` ``[all rows, width]`` is the model that all clients start from. ``rows`` are those in use
        by the first client of a block, ``[c, rows]``. Returns False, and changes nothing, if the moments are
        not the same, or if clients have taken different numbers of steps.
        """
        steps = torch.cat([torch.zeros(0), *self._steps.values()])
        if not bool((steps == steps[:1]).all()) or (self._steps and name not in self._steps):
            return False
        if name in self._moments:
            first, second = (SharedMoments.of(moments, rows) for moments in self._moments[name])
            if first is None or second is None:
                return False
            self._shared[name] = (first, second)
            del self._moments[name]
        elif name not in self._shared:
            self._shared[name] = (SharedMoments.zeros(common, rows), SharedMoments.zeros(common, rows))
            self._steps[name] = torch.zeros(self._clients)
        return True

    def settle(self) -> None:
        """Hold all moments for every client."""
        self._moments, self._shared = self._dense(), {}

    def _dense(self) -> dict[str, tuple[Tensor, Tensor]]:
        shared = {name: (first.dense(), second.dense()) for name, (first, second) in self._shared.items()}
        return self._moments | shared

    def _moments_at(self, name: str, clients: slice) -> tuple[Tensor, Tensor]:
        first, second = self._shared[name] if name in self._shared else self._moments[name]
        return first[clients], second[clients]

    def step_common(self, optimiser: Optimiser, name: str, common: Tensor, steps: int) -> None:
        """Take steps with gradient zero, in place, of the rows that a client does not use."""
        first, second = self._shared[name]
        moments, zeros = [(first.common, second.common)], [torch.zeros_like(common)]
        for step in range(steps):
            count = self._steps[name][0] + step
            _fused_adam(optimiser, optimiser.decay(name), [common], zeros, moments, count)

    def state(self) -> dict[str, Any]:
        """Moments and step counts. They are those of all clients, and not copied where they can be given."""
        return {"moments": self._dense(), "steps": self._steps}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Take over the ``state`` of another object with as many clients."""
        self._moments, self._steps = dict(state["moments"]), dict(state["steps"])
        self._steps = {name: count.cpu() for name, count in self._steps.items()}

    def some(self, rows: Tensor) -> OptimiserState:
        """A copy of some clients' part."""
        self.settle()
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
            moments = [self._moments_at(name, rows) for name in parameters]
            values = list(parameters.values())
            _fused_adam(optimiser, decay, values, list(gradients.values()), moments, counts[0, 0])
        else:
            numbers = torch.arange(self._clients)[place]
            for (name, value), steps_of_clients in zip(parameters.items(), counts, strict=True):
                for steps in steps_of_clients.unique():
                    positions = torch.nonzero(steps_of_clients == steps).squeeze(1)
                    clients, positions = numbers[positions].to(value.device), positions.to(value.device)
                    part = value[positions]
                    first, second = self._moments[name]
                    moments = [(first[clients], second[clients])]
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
    moments: list[tuple[Tensor, Tensor]],
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
