"""FedAvg: the mean, and where everybody starts."""

from __future__ import annotations

import pytest
import torch
from toy_federations import after_one_round, make_spec

from bench.engine.run import Run
from bench.federation.types import TRAIN, Federation


@pytest.mark.parametrize("weights", ["uniform", "samples"])
def test_fedavg_is_the_weighted_mean(federation: Federation, weights: str) -> None:
    it = Run(make_spec("fedavg", federation, hyper={"weights": weights}), federation)
    after_one_round(it)
    sizes = [int((client.roles == TRAIN).sum()) for client in federation.clients]
    assert len(set(sizes)) > 1
    if weights == "uniform":
        sizes = [1] * len(sizes)
    for name, sent in it.method.broadcast().model.items():
        mean = torch.zeros_like(sent[0], dtype=torch.float64)
        for index, n in enumerate(sizes):
            mean += n / sum(sizes) * it.own[name][index].double()
        for index in range(len(federation)):
            assert torch.allclose(sent[index].double(), mean, atol=1e-6)


def test_fedavg_starts_everybody_from_one_model(federation: Federation) -> None:
    it = Run(make_spec("fedavg", federation), federation)
    sent = it.method.broadcast().model
    assert set(sent) == set(it.model.shapes)
    for value in sent.values():
        assert (value == value[:1]).all()
