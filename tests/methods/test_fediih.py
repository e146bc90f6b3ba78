"""FedIIH: routing and divergences against loops, mixing by factor by hand, and the cases at the ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm
from toy_federations import furthest, make_spec, play

from bench.engine.method import Message
from bench.engine.run import Run
from bench.federation.types import Federation
from bench.methods._disentangled import divergences, neighbours_of, normalised, route
from bench.methods.fediih import USED, mixed_by_factor


def unit(x: torch.Tensor) -> torch.Tensor:
    return x / x.norm() if float(x.norm()) > 0 else x


@pytest.mark.parametrize("factors", [1, 3])
def test_routing_node_by_node(factors: int, tiny: Federation) -> None:
    """By the formulas, with a factor at zero, over the edges of two clients of one block."""
    it = Run(make_spec("fediih", tiny, hyper={"factors": 2}), tiny)
    edges = neighbours_of(it.clients.blocks[0].evaluation)
    own = {(int(s), int(t)) for s, t in zip(edges.sources, edges.targets, strict=True)}
    items = it.clients.blocks[0].items
    assert own == {
        (items * row + int(u), items * row + int(v))
        for row, client in enumerate(tiny.clients)
        for u, v in client.edges.T  # type: ignore[union-attr]
    }
    x = torch.randn(2 * items, factors, 4, generator=torch.Generator().manual_seed(0))
    x[1, 0] = 0
    routed = route(x.transpose(0, 1), edges, 3).transpose(0, 1)
    start = torch.stack([torch.stack([unit(part) for part in node]) for node in x])
    u = start
    for _ in range(3):
        new = start.clone()
        for s, t in own:
            scores = torch.tensor([float(start[s, k] @ u[t, k]) for k in range(factors)])
            for k, p in enumerate(scores.softmax(dim=0)):
                new[t, k] += p * start[s, k]
        u = torch.stack([torch.stack([unit(part) for part in node]) for node in new])
    torch.testing.assert_close(routed, u, rtol=1e-4, atol=1e-5)
    lengths = routed.norm(dim=2)
    assert (((lengths - 1).abs() < 1e-5) | (lengths == 0)).all()
    x = torch.randn(factors, 2 * items, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: route(x, edges, 2), x)


def test_factors_at_zero_have_no_gradient() -> None:
    x = torch.zeros(2, 1, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(normalised(x).sum(), x)
    assert torch.equal(slope, torch.zeros_like(slope))


def test_divergences_by_integration() -> None:
    mean, log_variance = torch.tensor([[0.0], [1.5], [0.0]]), torch.tensor([[0.0], [0.6], [0.0]])
    result = divergences(mean, log_variance)

    def kl(m: float, s: float, middle: float, spread: float) -> float:
        def density(z: float) -> float:
            return float(norm.pdf(z, m, s) * (norm.logpdf(z, m, s) - norm.logpdf(z, middle, spread)))

        return float(quad(density, -15, 15)[0])

    s = [1.0, math.exp(0.3)]
    middle, spread = 0.75, math.sqrt((s[0] ** 2 + s[1] ** 2) / 2)
    expected = (kl(0, s[0], middle, spread) + kl(1.5, s[1], middle, spread)) / 2
    assert float(result[0, 1]) == pytest.approx(expected, rel=1e-6)
    assert torch.equal(result, result.T)
    assert torch.equal(result.diagonal(), torch.zeros(3).double())
    assert float(result[0, 2]) == 0


def test_mixing_by_factor_by_hand() -> None:
    """Two clients, two factors of width 2: the first factor is swapped, the second kept."""
    rng = torch.Generator().manual_seed(2)
    shapes = {"conv1.weight": (3, 4), "conv1.bias": (4,), "head.weight": (4, 2), "head.bias": (2,)}
    models = {name: torch.randn(2, *shape, generator=rng) for name, shape in shapes.items()}
    weights = torch.stack([torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.eye(2)])
    mixed = mixed_by_factor(models, weights)
    assert torch.equal(mixed["conv1.weight"][0, :, :2], models["conv1.weight"][1, :, :2])
    assert torch.equal(mixed["conv1.weight"][0, :, 2:], models["conv1.weight"][0, :, 2:])
    assert torch.equal(
        mixed["conv1.bias"][1], torch.cat([models["conv1.bias"][0, :2], models["conv1.bias"][1, 2:]])
    )
    assert torch.equal(mixed["head.weight"][1, :2], models["head.weight"][0, :2])
    assert torch.equal(mixed["head.weight"][1, 2:], models["head.weight"][1, 2:])
    torch.testing.assert_close(mixed["head.bias"][0], models["head.bias"].mean(dim=0))
    assert (
        furthest(
            mixed_by_factor(models, torch.stack([torch.eye(2)] * 2)),
            {**models, "head.bias": models["head.bias"].mean(dim=0).expand(2, 2)},
        )
        == 0
    )


def test_alike_clients_are_averaged(federation: Federation) -> None:
    it = Run(make_spec("fediih", federation), federation)
    same = torch.ones(4, 2, 8)
    upload = Message(extras={"mean": same, "log_variance": same})
    weights = it.method.weights(it.clients.rows, {}, upload)  # type: ignore[attr-defined]
    torch.testing.assert_close(weights.float(), torch.full((2, 4, 4), 0.25))
    average = play(make_spec("fediih_average", federation), federation)
    count = len(federation)
    torch.testing.assert_close(
        average.method.records["collaboration"], torch.full((2, count, count), 1 / count)
    )


def test_weights_follow_the_divergences_of_what_was_sent(federation: Federation) -> None:
    it = play(make_spec("fediih", federation, hyper={"tau": 3.0}), federation)
    inferred = it.clients.reduce(it.own, it.method.inferred)  # type: ignore[attr-defined]
    for k, weights in enumerate(it.artefacts()["collaboration"]):
        j = divergences(inferred[:, k], inferred[:, k]).numpy()
        expected = np.exp(3 * (1 - j / math.log(2)))
        np.testing.assert_allclose(weights, expected / expected.sum(axis=1, keepdims=True), rtol=1e-4)
        assert weights.std() > 0


def test_nothing_trains_a_second_convolution(federation: Federation) -> None:
    spec = make_spec("fediih", federation)
    start = Run(spec, federation).own
    it = play(spec, federation)
    unused = {name: value for name, value in it.own.items() if name not in USED}
    assert furthest(unused, {name: start[name] for name in unused}) == 0
