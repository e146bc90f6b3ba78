"""The stacked engine against one client after the other, and against a loop written out here."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from plain_gcn import dense_gcn
from toy_federations import copied, furthest, make_spec, play, random_federation

from bench.engine.run import Run
from bench.errors import NotApplicableError
from bench.federation.types import TRAIN, Federation
from bench.timing.reference import SequentialClients


@pytest.fixture(scope="module", params=["sparse", "dense"])
def some_federation(request: pytest.FixtureRequest) -> Federation:
    return random_federation(dense=request.param == "dense", seed=3)


@pytest.mark.parametrize("method", ["fedavg", "local", "fedper"])
def test_blocks_equal_one_client_after_the_other(some_federation: Federation, method: str) -> None:
    spec = make_spec(method, some_federation, rounds=4, local_epochs=3, client={"dropout": 0.5})
    sequential = play(spec, some_federation, clients_type=SequentialClients)
    for block_size in (1, 2, 3, 5):
        stacked = play(spec, some_federation, block_size=block_size)
        assert furthest(stacked.own, sequential.own) < 1e-5
        for key, counts in stacked.correct().items():
            assert np.array_equal(counts, sequential.correct()[key]), key


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_local_training_equals_a_plain_autograd_loop(some_federation: Federation, optimizer: str) -> None:
    settings = {"dropout": 0.0, "optimizer": optimizer, "learning_rate": 0.02, "weight_decay": 5e-3}
    spec = make_spec("local", some_federation, rounds=3, local_epochs=4, client=settings)
    run = Run(spec, some_federation, block_size=2)
    start = copied(run.own)
    run.warm_up()
    losses = []
    for index, client in enumerate(some_federation.clients):
        w = {name: value[index].clone().requires_grad_() for name, value in start.items()}
        kind = torch.optim.Adam if optimizer == "adam" else torch.optim.SGD
        stepper = kind(list(w.values()), lr=0.02, weight_decay=5e-3)
        forward = dense_gcn(client)
        train = torch.from_numpy(np.flatnonzero(client.roles == TRAIN))
        labels = torch.from_numpy(client.labels)
        own_losses = []
        for _ in range(12):
            stepper.zero_grad()
            loss = torch.nn.functional.cross_entropy(forward(w)[0][train], labels[train])
            loss.backward()
            stepper.step()
            own_losses.append(loss.item())
        losses.append(own_losses)
        start = {
            name: torch.cat([v[:index], w[name].detach()[None], v[index + 1 :]]) for name, v in start.items()
        }
    for round in range(3):
        run.step(round)
    assert furthest(run.own, start) < 1e-5
    by_round = np.array(losses).mean(axis=0).reshape(3, 4).mean(axis=1)
    np.testing.assert_allclose(run.loss, by_round, rtol=1e-5)
    for index, client in enumerate(some_federation.clients):
        w = {name: value[index] for name, value in start.items()}
        hit = dense_gcn(client)(w)[0].argmax(dim=1).numpy()
        for role, split in enumerate(("train", "val", "test")):
            expected = ((hit == client.labels) & (client.roles == role)).sum()
            assert run.correct()[("trained", split)][-1, index] == expected


def test_extra_losses_are_not_for_the_reference(some_federation: Federation) -> None:
    spec = make_spec("fedprox", some_federation)
    with pytest.raises(NotApplicableError, match="cross-entropy only"):
        play(spec, some_federation, clients_type=SequentialClients)
