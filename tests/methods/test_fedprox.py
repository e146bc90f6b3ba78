"""FedProx: what its term does, and the objective that is written."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from toy_federations import after_one_round, copied, furthest, make_spec

from bench.engine.run import Run
from bench.federation.types import TRAIN, Federation


def moved(federation: Federation, mu: float) -> float:
    """How far a round of plain gradient descent takes the clients from what they received."""
    settings = {"optimizer": "sgd", "learning_rate": 0.05, "weight_decay": 0.0, "dropout": 0.0}
    spec = make_spec("fedprox", federation, local_epochs=20, hyper={"mu": mu}, client=settings)
    it = Run(spec, federation)
    received = copied(it.method.broadcast().model)
    after_one_round(it)
    return math.sqrt(sum(float((it.own[name] - received[name]).square().sum()) for name in received))


def test_a_large_mu_keeps_clients_near_the_received_model(federation: Federation) -> None:
    distances = [moved(federation, mu) for mu in (0.0, 1.0, 10.0)]
    assert distances[0] > distances[1] > distances[2]
    # at the fixed point mu (w - W) = -gradient, and 20 steps of factor (1 - 0.05 * 10) are there
    assert distances[2] < 0.2 * distances[0]


def test_fedprox_is_gradient_descent_on_the_written_objective(federation: Federation) -> None:
    """F_i(w) + mu/2 ||w - W||^2, one client, three steps, gradient by autograd on the whole sum."""
    mu, rate = 0.7, 0.1
    settings = {"optimizer": "sgd", "learning_rate": rate, "weight_decay": 0.0, "dropout": 0.0}
    one = replace(federation, clients=federation.clients[:1])
    spec = make_spec("fedprox", one, local_epochs=3, hyper={"mu": mu}, client=settings)
    it = Run(spec, one)
    received = copied(it.method.broadcast().model)
    block = it.clients.blocks[0]
    w = {name: value.clone().requires_grad_() for name, value in received.items()}
    for _ in range(3):
        logits = it.model.forward(w, block.inputs, lambda x, site: x).logits
        train = np.flatnonzero(one.clients[0].roles == TRAIN)
        labels = torch.from_numpy(one.clients[0].labels[train])
        loss = torch.nn.functional.cross_entropy(logits[0, train], labels)
        loss = loss + mu / 2 * sum((w[name] - received[name]).square().sum() for name in w)
        gradients = torch.autograd.grad(loss, list(w.values()))
        with torch.no_grad():
            for value, gradient in zip(w.values(), gradients, strict=True):
                value -= rate * gradient
        block.inputs.begin_step()
    after_one_round(it)
    assert furthest(it.own, {name: value.detach() for name, value in w.items()}) < 1e-5
