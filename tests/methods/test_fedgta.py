"""FedGTA: propagation, moments, confidence and weights against plain loops, and the cases at the ends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from toy_federations import begun, furthest, make_spec, permuted, play

from bench.engine.run import Run
from bench.federation.types import TRAIN, Client, Federation
from bench.methods.fedgta import FedGTA, averaging_weights

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


@pytest.mark.parametrize(("moments", "count"), [("hybrid", 18), ("origin", 9)])
def test_signals_of_a_model_as_by_hand(federation: Federation, moments: str, count: int) -> None:
    """Of three classes and orders; those about the origin come first."""
    hyper = {"steps": 3, "temperature": 4.0, "order": 3, "moments": moments}
    it = Run(make_spec("fedgta", federation, hyper=hyper), federation, block_size=2)
    sent = it.clients.reduce(it.own, it.method.signals)  # type: ignore[attr-defined]
    for block in it.clients.blocks:
        logits = it.method.logits(block.evaluation.of(it.own), block.evaluation)
        for row, number in enumerate(block.numbers):
            client = federation.clients[number]
            q = softmax(logits[row, : len(client.ids)].double().numpy())
            m, g = signals(client, q, 3, 4.0, 3)
            np.testing.assert_allclose(sent["moments"][number], m[:count], rtol=1e-4, atol=1e-6)
            assert float(sent["confidence"][number]) == pytest.approx(g, rel=1e-4)


def test_weights_of_three_clients_by_hand() -> None:
    alike = torch.tensor([[1.0, 0.6, 0.2], [0.6, 1.0, 0.5], [0.2, 0.5, 1.0]])
    g = torch.tensor([1.0, 3.0, 2.0])
    expected = torch.tensor([[0.25, 0.75, 0], [0.25, 0.75, 0], [0, 0, 1.0]])
    torch.testing.assert_close(averaging_weights(alike, g, 0.5), expected)
    everybody = (g / g.sum()).expand(3, 3)
    torch.testing.assert_close(averaging_weights(alike, g, -1.0), everybody)
    assert torch.equal(averaging_weights(alike, g, 1.0), torch.eye(3))
    assert torch.equal(averaging_weights(alike, torch.zeros(3), 0.5), torch.eye(3))


def test_equal_clients_accept_each_other_alike(federation: Federation) -> None:
    """Three copies of a client: a third each, and so FedAvg (without dropout, which is theirs alone)."""
    clones = permuted(federation, [1, 1, 1])
    settings: dict[str, Any] = {"client": {"dropout": 0.0}, "initial": "common"}
    it = play(make_spec("fedgta", clones, **settings), clones)
    torch.testing.assert_close(it.method.records["collaboration"], torch.full((3, 3), 1 / 3))
    assert furthest(it.own, play(make_spec("fedavg", clones, **settings), clones).own) < 1e-6


def test_the_control_knows_no_prediction(federation: Federation) -> None:
    """Other models, the same moments; with predictions they differ."""
    for method, same in (("fedgta_labels", True), ("fedgta", False)):
        it = begun(method, federation)
        assert isinstance(it.method, FedGTA)
        other = {name: torch.randn_like(value) for name, value in it.own.items()}
        one, two = (it.clients.reduce(models, it.method.signals) for models in (it.own, other))
        assert (furthest(one, two) == 0) is same
