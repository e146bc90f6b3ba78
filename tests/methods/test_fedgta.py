"""FedGTA: propagation, moments, confidence and weights against plain loops, and the cases at the ends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from toy_federations import both_ways, furthest, make_spec, play

from bench.engine.run import Run
from bench.federation.types import TRAIN, Client, Federation
from bench.methods.fedgta import FedGTA, averaging_weights, confidence, nodes

Array = NDArray[np.float64]


def softmax(values: Array) -> Array:
    exponentials = np.exp(values - values.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def signals(client: Client, q: Array, steps: int, temperature: float, order: int) -> tuple[Array, float]:
    """m (hybrid) and g of one client by the paper's formulas, node by node."""
    n, classes = q.shape
    neighbours = [{v, *client.edges[1][client.edges[0] == v].tolist()} for v in range(n)]  # type: ignore[index]
    start = q.copy()
    training = np.flatnonzero(client.roles == TRAIN)
    start[training] = np.eye(classes)[client.labels[training]]
    y = start.copy()
    for _ in range(steps):
        spread = np.zeros_like(y)
        for v in range(n):
            for u in neighbours[v]:
                spread[v] += y[u] / math.sqrt(len(neighbours[v]) * len(neighbours[u]))
        y = 0.5 * spread + 0.5 * start
        y[training] += start[training]
    r, e = softmax(y), softmax(y / temperature)
    r[training] = e[training] = start[training]
    g = 0.0
    for v in range(n):
        entropy = -sum(float(p) * math.log(p) for p in e[v] if p > 0)
        g += (len(neighbours[v]) - 1) * (classes / math.e - entropy)
    about_zero = [(r**p).mean(axis=0) for p in range(1, order + 1)]
    centred = [((r - r.mean(axis=0)) ** p).mean(axis=0) for p in range(1, order + 1)]
    return np.concatenate([*about_zero, *centred]), g


def set_up(federation: Federation, method: str = "fedgta", **settings: Any) -> Run:
    it = Run(make_spec(method, federation, **settings), federation)
    it.warm_up()
    return it


@pytest.mark.parametrize("block_size", [None, 2])
def test_signals_of_a_model_as_by_hand(federation: Federation, block_size: int | None) -> None:
    hyper = {"steps": 3, "temperature": 4.0, "order": 3}
    it = Run(make_spec("fedgta", federation, hyper=hyper), federation, block_size=block_size)
    sent = it.clients.reduce(it.own, it.method.signals)  # type: ignore[attr-defined]
    for block in it.clients.blocks:
        logits = it.method.logits(block.evaluation.of(it.own), block.evaluation)
        for row, number in enumerate(block.numbers):
            client = federation.clients[number]
            q = softmax(logits[row, : len(client.ids)].double().numpy())
            m, g = signals(client, q, 3, 4.0, 3)
            np.testing.assert_allclose(sent[number, :-1], m, rtol=1e-4, atol=1e-6)
            assert float(sent[number, -1]) == pytest.approx(g, rel=1e-4)


def test_first_moments_sum_to_one_and_origin_has_half_as_many(federation: Federation) -> None:
    hybrid = set_up(federation)
    origin = set_up(federation, hyper={"moments": "origin"})
    one, other = (
        it.clients.reduce(it.own, it.method.signals)[:, :-1]  # type: ignore[attr-defined]
        for it in (hybrid, origin)
    )
    torch.testing.assert_close(one[:, :3].sum(dim=1), torch.ones(len(federation)))
    assert one.shape[1] == 2 * other.shape[1] == 2 * 6 * 3
    torch.testing.assert_close(one[:, : 6 * 3], other)


def test_confidence_at_its_ends() -> None:
    """One-hot labels give deg C/e, two equal classes log 2 less; doubled degrees double it; no edge, none."""
    degrees = torch.tensor([[3.0, 1.0], [0.0, 0.0]])
    sure = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]] * 2)
    torch.testing.assert_close(confidence(sure, degrees), torch.tensor([4 * 2 / math.e, 0.0]))
    unsure = torch.full((2, 2, 2), 0.5)
    expected = torch.tensor([4 * (2 / math.e - math.log(2)), 0.0])
    torch.testing.assert_close(confidence(unsure, degrees), expected)
    torch.testing.assert_close(confidence(unsure, 2 * degrees), 2 * expected)


def test_degrees_and_padding(tiny: Federation) -> None:
    """A path of three nodes, and a triangle beside a node without edges."""
    it = set_up(tiny)
    inside, degrees = nodes(it.clients.blocks[0].evaluation)
    assert inside.tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert degrees.tolist() == [[1, 2, 1, 0], [2, 2, 2, 0]]


def test_weights_of_three_clients_by_hand() -> None:
    alike = torch.tensor([[1.0, 0.6, 0.2], [0.6, 1.0, 0.5], [0.2, 0.5, 1.0]])
    g = torch.tensor([1.0, 3.0, 2.0])
    expected = torch.tensor([[0.25, 0.75, 0], [0.25, 0.75, 0], [0, 0, 1.0]])
    torch.testing.assert_close(averaging_weights(alike, g, 0.5), expected)
    everybody = (g / g.sum()).expand(3, 3)
    torch.testing.assert_close(averaging_weights(alike, g, -1.0), everybody)
    assert torch.equal(averaging_weights(alike, g, 1.0), torch.eye(3))
    assert torch.equal(averaging_weights(alike, torch.zeros(3), 0.5), torch.eye(3))


def test_equal_clients_accept_each_other_alike() -> None:
    """Three copies of a client: a third each, and so FedAvg (without dropout, which is theirs alone)."""
    rng = np.random.default_rng(2)
    pairs = [(int(u), int(v)) for u, v in rng.integers(0, 12, (30, 2)) if u != v]
    roles = np.resize(np.array([TRAIN, TRAIN, 1, 2], np.int8), 12)
    features = rng.random((12, 6)).astype(np.float32)
    client = Client(np.arange(12), rng.integers(0, 3, 12), roles, features, both_ways(pairs))
    clones = Federation("toy", "random", "graph", 3, (client,) * 3, "clones")
    settings: dict[str, Any] = {"client": {"dropout": 0.0}, "initial": "common"}
    it = play(make_spec("fedgta", clones, **settings), clones)
    torch.testing.assert_close(it.method.records["collaboration"], torch.full((3, 3), 1 / 3))
    assert furthest(it.own, play(make_spec("fedavg", clones, **settings), clones).own) < 1e-6


def test_the_control_knows_no_prediction(federation: Federation) -> None:
    """Other models, the same moments; with predictions they differ."""
    for method, same in (("fedgta_labels", True), ("fedgta", False)):
        it = set_up(federation, method)
        assert isinstance(it.method, FedGTA)
        other = {name: torch.randn_like(value) for name, value in it.own.items()}
        one, two = (it.clients.reduce(models, it.method.signals) for models in (it.own, other))
        assert torch.equal(one, two) is same
