"""pFedLA: its weights and its step by autograd through whole models, degenerate cases."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from toy_federations import copied, make_spec

from bench.engine.run import Run
from bench.federation.types import Federation
from bench.methods.pfedla import PFedLA

CLIENT = {"dropout": 0.0, "learning_rate": 0.02}
SMALL = {"embedding": 6, "hidden": 7}
N = 5


def pfedla(federation: Federation, **hyper: Any) -> tuple[Run, PFedLA]:
    it = Run(make_spec("pfedla", federation, client=CLIENT, hyper={**SMALL, **hyper}), federation)
    assert isinstance(it.method, PFedLA)
    return it, it.method


def outputs(networks: dict[str, Tensor], client: int, layer: int) -> Tensor:
    """One client's head of one layer, written with torch's linear layers."""
    x = networks["embedding"][client]
    for number in range(3):
        weight, bias = networks[f"weight{number}"][client], networks[f"bias{number}"][client, 0]
        x = torch.relu(functional.linear(x, weight.T, bias))
    return functional.linear(x, networks["heads"][client, layer].T, networks["head_bias"][client, layer, 0])


def shares(values: Tensor, normalisation: str) -> Tensor:
    if normalisation == "softmax":
        return values.softmax(dim=0)
    return torch.relu(values) / torch.relu(values).sum()


@pytest.mark.parametrize("normalisation", ["relu", "softmax"])
def test_a_round_is_gradient_ascent_through_the_mixtures(federation: Federation, normalisation: str) -> None:
    """All parameters of all hypernetworks, by autograd of <Delta_i, bar_i> over whole models in float64."""
    eta = 0.3
    it, method = pfedla(federation, normalisation=normalisation, learning_rate=eta)
    it.warm_up()
    for round in range(2):
        models = {name: value.double() for name, value in copied(method.models).items()}
        networks = {name: value.clone().requires_grad_() for name, value in method.networks.items()}
        method.round = round
        sent = copied(method.broadcast().model)
        it.step(round)
        total = torch.zeros((), dtype=torch.float64)
        for layer, (title, names) in enumerate(method.task.layers.items()):
            for i in range(N):
                alpha = shares(outputs(networks, i, layer), normalisation)
                kept = method.records["collaboration"][layer, i]
                assert torch.allclose(alpha.float(), kept, atol=1e-6), title
                for name in names:
                    bar = (alpha @ models[name].flatten(1)).view_as(models[name][i])
                    assert torch.allclose(bar.float(), sent[name][i], atol=1e-5)
                    total = total + (bar * (it.own[name][i] - sent[name][i]).double()).sum()
        gradients = torch.autograd.grad(total, list(networks.values()))
        moved = 0.0
        for (name, before), gradient in zip(networks.items(), gradients, strict=True):
            assert torch.allclose(method.networks[name], before - eta * gradient, atol=1e-5)
            moved = max(moved, float((eta * gradient).abs().max()))
        assert (moved > 1e-2) == (round > 0), "in the first round all models are one"


def test_a_client_whose_outputs_are_all_cut_keeps_its_layer(federation: Federation) -> None:
    it, method = pfedla(federation, learning_rate=0.1)
    method.networks["heads"][2, 1] *= -1
    it.warm_up()
    for round in range(2):
        it.step(round)
        alpha = method.records["collaboration"]
        assert torch.equal(alpha[1, 2], torch.eye(N)[2])
        assert alpha[0, 2].max() < 0.9
    assert all(torch.isfinite(value).all() for value in method.networks.values())


def test_the_absent_keep_their_hypernetworks(federation: Federation) -> None:
    spec = make_spec("pfedla", federation, participation=0.4, rounds=4, hyper={**SMALL, "learning_rate": 0.5})
    it = Run(spec, federation)
    method = it.method
    assert isinstance(method, PFedLA)
    it.warm_up()
    changed = False
    for round in range(4):
        before, models = copied(method.networks), copied(method.models)
        it.step(round)
        present = it.participants(round).tolist()
        absent = [i for i in range(N) if i not in present]
        for name, value in before.items():
            assert torch.equal(method.networks[name][absent], value[absent])
            changed |= not torch.equal(method.networks[name][present], value[present])
        for name, value in models.items():
            assert torch.equal(method.models[name][absent], value[absent])
    assert changed
