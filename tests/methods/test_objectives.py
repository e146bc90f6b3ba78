"""The local objectives of methods with a penalty, by plain descent in dense algebra."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
import torch
from plain_gcn import descended
from torch import Tensor
from toy_federations import PLAIN, copied, furthest, make_spec

from bench.engine.run import Run
from bench.federation.types import Federation
from bench.methods._masks import MASK

Parameters = Mapping[str, Tensor]


def no_penalty(round: int, w: Parameters, received: Parameters, extras: Parameters) -> Any:
    return 0.0


def proximal(round: int, w: Parameters, received: Parameters, extras: Parameters) -> Any:
    """mu / 2 ||w - W||^2 with mu = 0.7."""
    return 0.7 / 2 * sum((w[name] - received[name]).square().sum() for name in w)


def near_the_mixture(round: int, w: Parameters, received: Parameters, extras: Parameters) -> Any:
    """lambda / (2 alpha) ||w - u||^2 with lambda = 1.5 and alpha = 0.5, where a mixture was sent."""
    assert bool(extras) == (round > 0)
    return 1.5 / (2 * 0.5) * sum((w[name] - mixture).square().sum() for name, mixture in extras.items())


def alignment(sign: int, round: int, w: Parameters, received: Parameters, extras: Parameters) -> Any:
    """-+ lambda <c, w> / ||w|| with lambda = 3 and all parameters in one vector, where c was sent."""
    assert bool(extras) == (round > 0)
    if not extras:
        return 0.0
    flat = torch.cat([value.flatten() for value in w.values()])
    c = torch.cat([extras[name].flatten() for name in w])
    return sign * 3.0 * (c @ flat) / flat.norm()


def masks_and_distance(round: int, w: Parameters, received: Parameters, extras: Parameters) -> Any:
    """l mean |mu| + r sum over tensors ||W - W_received||, the second part from the second round on."""
    masks = torch.cat([value.flatten() for name, value in w.items() if name.startswith(MASK)])
    total = 50.0 * masks.abs().mean()
    for name in w:
        square = (w[name] - received[name]).square().sum()
        if round and not name.startswith(MASK) and square > 0:  # the norm's gradient is taken as 0 at 0
            total = total + 0.3 * square.sqrt()
    return total


CASES: list[tuple[str, dict[str, float], Callable[..., Any]]] = [
    ("fedprox", {"mu": 0.7}, proximal),
    ("fedamp", {"strength": 1.5, "alpha": 0.5}, near_the_mixture),
    ("h_fedamp", {"strength": 1.5, "alpha": 0.5}, near_the_mixture),
    ("pfedgraph", {"attraction": 3.0}, partial(alignment, -1)),
    ("pfedgraph_released", {"attraction": 3.0}, partial(alignment, 1)),
    ("fedpub", {"mask_decay": 0.0}, no_penalty),
    ("fedpub_gradient", {"sparsity": 50.0, "proximity": 0.3, "mask_decay": 0.0}, masks_and_distance),
]


@pytest.mark.parametrize(("method", "hyper", "penalty"), CASES, ids=[case[0] for case in CASES])
def test_two_rounds_are_plain_descent_on_the_written_objective(
    method: str, hyper: dict[str, float], penalty: Callable[..., Any], federation: Federation
) -> None:
    """Cross-entropy and the penalty, by autograd, for the clients of every block."""
    spec = make_spec(method, federation, local_epochs=3, client=PLAIN, hyper=hyper)
    it = Run(spec, federation, block_size=2)
    it.warm_up()
    for round in range(2):
        it.method.round = round
        message = it.method.broadcast()
        start, extras = {**copied(it.own), **copied(message.model)}, copied(message.extras)
        it.step(round)
        expected = descended(spec, federation, start, partial(penalty, round), extras)
        assert furthest(copied(it.own), expected) < 1e-5
