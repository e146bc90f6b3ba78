"""Gradients that methods add in closed form, against autograd of the penalty that they are of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from toy_federations import make_spec

from bench.engine.batch import Adjustment
from bench.engine.message import Message
from bench.engine.method import Stack
from bench.engine.run import Run
from bench.federation.types import Federation
from bench.methods._masks import MASK

Penalty = Callable[[Stack, Stack, Stack], Tensor]
"""A client's penalty from its models, its received models and the extras that it was sent."""


class _Asked(Exception):
    """Ends a method's update where it asks for training."""


def adjustment(it: Run, received: Stack, message: Message) -> Adjustment:
    """What a method adds to the gradients."""
    asked: list[Adjustment] = []

    def fit(stack: Stack, *, adjust: Adjustment, **options: Any) -> Stack:
        asked.append(adjust)
        raise _Asked

    it.clients.fit = fit  # type: ignore[method-assign]
    with pytest.raises(_Asked):
        it.method.update(it.clients, received, message)
    return asked[0]


def random_like(stack: Stack, seed: int) -> dict[str, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(value.shape, generator=rng, dtype=torch.float64) for name, value in stack.items()
    }


def distance(one: Stack, other: Stack, names: Any) -> list[Tensor]:
    return [(one[name] - other[name]).square().sum() for name in names]


def proximal(it: Run) -> Penalty:
    mu = it.method.hyper.mu  # type: ignore[attr-defined]
    return lambda w, received, extras: mu / 2 * torch.stack(distance(w, received, it.model.shapes)).sum()


def alignment(it: Run) -> Penalty:
    """-+ lambda <c, w> / ||w||, w being all parameters in one vector."""
    strength = it.method.hyper.attraction * it.method.sign  # type: ignore[attr-defined]

    def penalty(w: Stack, received: Stack, extras: Stack) -> Tensor:
        flat = torch.cat([w[name].flatten() for name in it.model.shapes])
        c = torch.cat([extras[name].flatten() for name in it.model.shapes])
        return strength * (c @ flat) / flat.norm()

    return penalty


def masks_and_distance(it: Run) -> Penalty:
    """l mean |mu| + r sum over tensors ||W - W_received||."""
    hyper: Any = it.method.hyper

    def penalty(w: Stack, received: Stack, extras: Stack) -> Tensor:
        masks = torch.cat([value.flatten() for name, value in w.items() if name.startswith(MASK)])
        far = torch.stack(distance(w, received, it.model.shapes)).sqrt().sum()
        return hyper.sparsity * masks.abs().mean() + hyper.proximity * far

    return penalty


CASES: list[tuple[str, dict[str, float], Callable[[Run], Penalty]]] = [
    ("fedprox", {"mu": 0.7}, proximal),
    ("pfedgraph", {"attraction": 3.0}, alignment),
    ("pfedgraph_released", {"attraction": 3.0}, alignment),
    ("fedpub_gradient", {"sparsity": 5.0, "proximity": 0.3}, masks_and_distance),
]


@pytest.mark.parametrize(("method", "hyper", "written"), CASES, ids=[case[0] for case in CASES])
def test_a_closed_form_is_the_penalty_s_gradient(
    method: str, hyper: dict[str, float], written: Callable[[Run], Penalty], federation: Federation
) -> None:
    """In float64, at random models, for the clients of every block; what was there before is kept."""
    it = Run(make_spec(method, federation, hyper=hyper), federation, block_size=2)
    it.clients.begin_round(1)
    received, models, before = (random_like(it.own, seed) for seed in range(3))
    shared = {name: received[name] for name in it.method.shared()}
    extras = random_like(shared, 4) if method.startswith("pfedgraph") else {}
    penalty = written(it)
    adjust = adjustment(it, received, Message(shared, extras))
    for block in it.clients.blocks:
        batch = block.evaluation
        gradients = {name: value.clone() for name, value in batch.of(before).items()}
        adjust(gradients, batch.of(models), batch)
        for row in range(block.rows.start, block.rows.stop):
            w = {name: value[row].clone().requires_grad_() for name, value in models.items()}
            own = [{name: value[row] for name, value in stack.items()} for stack in (received, extras)]
            expected = torch.autograd.grad(penalty(w, *own), list(w.values()), allow_unused=True)
            for name, gradient in zip(w, expected, strict=True):
                added = gradients[name][row - block.rows.start] - before[name][row]
                wanted = torch.zeros_like(added) if gradient is None else gradient
                assert torch.allclose(added, wanted, rtol=1e-9, atol=1e-11), name


@pytest.mark.parametrize("method", ["fedprox", "fedpub_gradient"])
def test_distances_pull_nowhere_where_a_round_starts(method: str, federation: Federation) -> None:
    """The un-squared norm has no gradient at zero; none is added there."""
    it = Run(make_spec(method, federation), federation)
    it.clients.begin_round(1)
    received = random_like(it.own, 0)
    adjust = adjustment(it, received, Message({name: received[name] for name in it.method.shared()}))
    gradients = {name: torch.zeros_like(value) for name, value in received.items()}
    adjust(gradients, received, it.clients.blocks[0].evaluation)
    assert all(not gradients[name].any() for name in it.method.shared())
