"""Adam and SGD over stacked parameters, with state that is kept over rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from bench.spec import ClientSettings


class OptimiserState:
    """The optimiser of every client for one set of parameters ``[clients, ...]``.

    Numerically the same as one ``torch.optim`` object per client: moments and step counts belong
    to a client and survive the replacement of its weights.
    """

    def __init__(self, settings: ClientSettings, parameters: Mapping[str, Tensor]) -> None:
        self._settings = settings
        self._moments: dict[str, tuple[Tensor, Tensor]] = {}
        self._steps: dict[str, Tensor] = {}
        if settings.optimizer == "adam":
            for name, value in parameters.items():
                self._moments[name] = (torch.zeros_like(value), torch.zeros_like(value))
                self._steps[name] = torch.zeros(len(value))

    def state(self) -> dict[str, Any]:
        """Moments and step counts as they are now, not copied."""
        return {"moments": self._moments, "steps": self._steps}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state`` gave for another object of the same parameters."""
        for name, (first, second) in state["moments"].items():
            self._moments[name][0].copy_(first)
            self._moments[name][1].copy_(second)
            self._steps[name].copy_(state["steps"][name])

    def step(
        self,
        names: Sequence[str],
        parameters: Sequence[Tensor],
        gradients: Sequence[Tensor],
        clients: slice,
        decay: Mapping[str, float],
    ) -> None:
        """One step for these clients, in place; tensors are ``[clients of the slice, ...]``.

        ``decay`` gives some parameters a weight decay of their own. The clients of one call must
        have taken equally many steps.
        """
        usual = self._settings.weight_decay
        rates = [decay.get(name, usual) for name in names]
        for rate in sorted(set(rates)):
            chosen = [index for index, own in enumerate(rates) if own == rate]
            self._step(
                [names[index] for index in chosen],
                [parameters[index] for index in chosen],
                [gradients[index] for index in chosen],
                clients,
                rate,
            )

    def _step(
        self,
        names: Sequence[str],
        parameters: Sequence[Tensor],
        gradients: Sequence[Tensor],
        clients: slice,
        weight_decay: float,
    ) -> None:
        s = self._settings
        with torch.no_grad():
            if s.optimizer == "sgd":
                sgd(
                    list(parameters),
                    list(gradients),
                    [None] * len(names),
                    fused=True,
                    weight_decay=weight_decay,
                    momentum=0.0,
                    lr=s.learning_rate,
                    dampening=0.0,
                    nesterov=False,
                    maximize=False,
                )
                return
            counters = []
            for name, value in zip(names, parameters, strict=True):
                taken = self._steps[name][clients]
                counters.append(taken[0].to(value.device, copy=True))
                taken += 1
            adam(
                list(parameters),
                list(gradients),
                [self._moments[name][0][clients] for name in names],
                [self._moments[name][1][clients] for name in names],
                [],
                counters,
                fused=True,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=s.learning_rate,
                weight_decay=weight_decay,
                eps=1e-8,
                maximize=False,
            )
