"""Rows of the first matrix that a client does not read are trained once for all clients: to the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from toy_federations import make_spec, random_federation

from bench.engine.checkpoint import Checkpoint
from bench.engine.method import Clients, Message, Stack, Update
from bench.engine.run import Run
from bench.federation.types import Federation
from bench.nn.base import ClientModel
from bench.spec import RunSpec

WORDS = 300


@pytest.fixture(scope="module")
def federation() -> Federation:
    """Five clients with few of 300 words."""
    toy = random_federation((24, 40, 9, 31, 20), seed=5, width=4)
    rng = np.random.default_rng(0)
    clients = []
    for client in toy.clients:
        words = sparse.random(len(client.ids), WORDS, 0.02, "csr", np.float32, rng)
        clients.append(replace(client, features=words))
    return replace(toy, clients=tuple(clients))


def spec_of(federation: Federation, method: str = "fedavg", **client: object) -> RunSpec:
    return make_spec(method, federation, client=client, rounds=4, local_epochs=3)


def played(run: Run, rounds: int | None = None) -> Run:
    """The run after its first rounds, by default after all."""
    run.warm_up()
    for index in range(rounds or run.spec.protocol.rounds):
        run.step(index)
    return run


def dense(run: Run) -> Run:
    """The same run with all rows trained for every client, and with autograd."""
    run.model.first_matrix = ""
    run.model.gradients = ClientModel.gradients.__get__(run.model)  # type: ignore[method-assign]
    return run


def assert_same_bits(run: Run, other: Run) -> None:
    """Two runs have the same models, optimisers and losses."""
    assert run.own.keys() == other.own.keys()
    assert all(torch.equal(value, other.own[name]) for name, value in run.own.items())
    assert np.array_equal(run.loss, other.loss)
    for copy, state in run.clients._optimisers.items():
        others = other.clients._optimisers[copy]
        state.settle()
        for name, moments in state.state()["moments"].items():
            assert all(map(torch.equal, others.state()["moments"][name], moments))


def shares(run: Run) -> bool:
    """Whether moments are held once for all clients."""
    return any(state.state()["unread"] for state in run.clients._optimisers.values())


@pytest.mark.parametrize("block_size", [2, 5])
@pytest.mark.parametrize("method", ["fedavg", "fedper", "fedbabu", "fedrep", "local"])
def test_bits_are_those_of_clients_that_train_every_row(
    federation: Federation, method: str, block_size: int
) -> None:
    spec = spec_of(federation, method)
    run, other = (Run(spec, federation, block_size=block_size) for _ in range(2))
    assert shares(played(run)) == (method in ("fedavg", "fedper", "fedbabu"))  # they start from one model
    assert_same_bits(run, played(dense(other)))


CHANGES: dict[str, dict[str, Any]] = {
    "some clients take part": {"protocol.participation": 0.6},
    "every epoch is evaluated": {"protocol.evaluate": "epoch"},
    "an attack": {"attack.ratio": 0.4, "attack.target": "model"},
    "optimisers begin anew": {"client.optimizer_state": "reset"},
    "no weight decay": {"client.weight_decay": 0.0},
    "no dropout": {"client.dropout": 0.0},
    "rows that fill no vector": {"client.hidden": 10},
    "gradient descent": {"client.optimizer": "sgd"},
}
"""What changes who trains, from what, and how."""


@pytest.mark.parametrize("change", CHANGES)
def test_bits_are_the_same_under_every_protocol(federation: Federation, change: str) -> None:
    spec = spec_of(federation).with_settings(CHANGES[change])
    run, other = (Run(spec, federation, block_size=3) for _ in range(2))
    assert_same_bits(played(run), played(dense(other)))


def test_a_run_goes_on_where_it_was_saved(federation: Federation, tmp_path: Path) -> None:
    spec = spec_of(federation)
    first, second, whole = (Run(spec, federation, block_size=3) for _ in range(3))
    checkpoint = Checkpoint(tmp_path / "run", identity="x")
    checkpoint.save(played(first, 1), 0, 0.0)
    assert checkpoint.resume(second) is not None
    for index in range(1, 4):
        second.step(index)
    assert shares(second)
    assert_same_bits(second, played(dense(whole)))


def other_models_in_round_1(run: Run) -> Run:
    """A run in whose second round every client starts from a model of its own."""
    update = run.method.update

    def changed(clients: Clients, received: Stack, message: Message) -> Update:
        if clients.round == 1:
            step = torch.arange(clients.count, dtype=torch.float32)
            received = {
                name: value + step.view(-1, *[1] * (value.dim() - 1)) for name, value in received.items()
            }
        return update(clients, received, message)

    run.method.update = changed  # type: ignore[method-assign]
    return run


def test_clients_that_have_gone_apart_are_trained_by_themselves(federation: Federation) -> None:
    run, other = (
        other_models_in_round_1(Run(spec_of(federation), federation, block_size=3)) for _ in range(2)
    )
    assert not shares(played(run))
    assert_same_bits(run, played(dense(other)))


def test_bits_are_those_of_autograd_with_dense_features(federation: Federation) -> None:
    clients = tuple(replace(client, features=client.dense() + 1) for client in federation.clients)
    dense_features = replace(federation, clients=clients)
    run, other = (Run(spec_of(dense_features), dense_features) for _ in range(2))
    assert_same_bits(played(run), played(dense(other)))
