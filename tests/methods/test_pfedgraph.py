"""pFedGraph: the round by hand, degenerate cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from toy_federations import copied, flat, make_spec, permuted

from bench.engine.method import Message
from bench.engine.run import Run
from bench.engine.stacks import project_onto_simplex
from bench.federation.types import TRAIN, Federation


def sizes_of(federation: Federation) -> list[int]:
    return [client.count(TRAIN) for client in federation.clients]


@pytest.mark.parametrize(("aside", "cosine"), [(0.4, 1.0), (0.6, 1 / math.sqrt(1.36))])
def test_a_cosine_above_nine_tenths_counts_as_one(
    federation: Federation, aside: float, cosine: float
) -> None:
    """Displacements (1, 0, 0), (1, aside, 0), (0, 0, 1) of the head's bias: cosine 0.93 or 0.86."""
    few = permuted(federation, [1, 2, 4])
    it = Run(make_spec("pfedgraph", few), few)
    received = copied(it.method.broadcast().model)
    trained = copied(received)
    trained["head.bias"] += torch.tensor([[1.0, 0.0, 0.0], [1.0, aside, 0.0], [0.0, 0.0, 1.0]])
    it.method.aggregate(torch.arange(3), received, Message(trained))
    p = torch.tensor(sizes_of(few), dtype=torch.float64) / sum(sizes_of(few))
    cos = torch.tensor([[1, cosine, 0], [cosine, 1, 0], [0, 0, 1]], dtype=torch.float64)
    expected = project_onto_simplex(p + cos / 1.6).float()
    assert torch.allclose(it.method.records["collaboration"], expected, atol=1e-5)


def test_two_rounds_follow_the_algorithm(federation: Federation) -> None:
    """The graph, the mixtures and c_i after every round, from the clients' models in NumPy."""
    it = Run(make_spec("pfedgraph", federation, client={"learning_rate": 0.02}), federation)
    names = list(it.model.shapes)
    start = it.method.broadcast()
    assert set(start.model) == set(names)
    assert not start.extras  # no directions yet
    initial = flat(start.model)[0]
    p = np.array(sizes_of(federation)) / sum(sizes_of(federation))
    it.warm_up()
    for round in range(2):
        it.step(round)
        trained = flat(it.own, names)
        moved = trained - initial  # from the common initial model, in the second round, too
        length = np.linalg.norm(moved, axis=1)
        cos = moved @ moved.T / np.outer(length, length)
        cos[cos > 0.9] = 1
        z = p + cos / 1.6
        graph = np.zeros_like(z)
        for row, value in enumerate(z):
            low, high = value.min() - 1, value.max()
            for _ in range(100):  # bisection for the threshold
                t = (low + high) / 2
                low, high = (t, high) if np.maximum(value - t, 0).sum() > 1 else (low, t)
            graph[row] = np.maximum(value - t, 0)
        assert graph.std() > 0.05
        np.testing.assert_allclose(it.artefacts()["collaboration"], graph, atol=1e-4)
        sent = it.method.broadcast()
        models = flat(sent.model, names)
        np.testing.assert_allclose(models, graph @ trained, atol=1e-4)
        directions = flat(sent.extras, names)
        unit = trained / np.linalg.norm(trained, axis=1, keepdims=True)
        np.testing.assert_allclose(directions, graph @ unit, atol=1e-4)
        received = it.method.load(it.clients, it.own, sent)
        assert set(received) == set(names)
