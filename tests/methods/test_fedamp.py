"""FedAMP and HeurFedAMP: attention by hand, the local objective by autograd, and what is sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from toy_federations import PLAIN, copied, flat, make_spec

from bench.engine.run import Run
from bench.federation.types import Federation

N = 5


def by_distance(models: NDArray[np.float64], alpha: float, sigma: float) -> NDArray[np.float64]:
    xi = np.zeros((N, N))
    for i in range(N):
        for j in range(N):
            if i != j:
                xi[i, j] = alpha / sigma * np.exp(-np.square(models[i] - models[j]).sum() / sigma)
        xi[i, i] = 1 - xi[i].sum()
    return xi


def by_cosine(models: NDArray[np.float64], omega: float, sigma: float) -> NDArray[np.float64]:
    xi = np.zeros((N, N))
    unit = models / np.linalg.norm(models, axis=1, keepdims=True)
    for i in range(N):
        others = [j for j in range(N) if j != i]
        scores = np.exp(sigma * (unit[others] @ unit[i]))
        xi[i, others] = (1 - omega) * scores / scores.sum()
        xi[i, i] = omega
    return xi


@pytest.mark.parametrize("method", ["fedamp", "h_fedamp"])
def test_attention_and_mixtures_in_every_round(federation: Federation, method: str) -> None:
    settings: dict[str, Any] = (
        {"alpha": 0.2, "sigma": 2.0} if method == "fedamp" else {"self_weight": 0.3, "sigma": 5.0}
    )
    it = Run(make_spec(method, federation, client=PLAIN | {"learning_rate": 1.0}, hyper=settings), federation)
    names = list(it.model.shapes)
    it.warm_up()
    expected = np.eye(N)
    for round in range(3):
        it.method.round = round
        sent = it.method.broadcast()
        assert not sent.model, "clients go on from their own models"
        assert set(sent.extras) == (set(names) if round else set())
        if round:
            models = flat(copied(it.own), names)
            expected = by_distance(models, 0.2, 2.0) if method == "fedamp" else by_cosine(models, 0.3, 5.0)
            assert expected.std() > 0.05
            np.testing.assert_allclose(flat(copied(sent.extras), names), expected @ models, atol=1e-5)
        it.step(round)
        kept = {name: torch.from_numpy(value) for name, value in it.artefacts().items()}
        np.testing.assert_allclose(kept["collaboration"].numpy(), expected, atol=1e-5)
    assert kept["collaboration_by_round"].shape == (3, N, N)
    assert torch.allclose(kept["collaboration_by_round"].sum(dim=2), torch.ones(3, N), atol=1e-6)
    off = ~torch.eye(N, dtype=torch.bool)
    assert kept["collaboration_by_round"][2][off].std() > 1e-3, "like models weigh more"
