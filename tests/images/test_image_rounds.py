from __future__ import annotations

import numpy as np
import pytest
import torch
from plain_cnn import (
    BATCH,
    CLASSES,
    RATE,
    SETTINGS,
    federation,
    normalised,
    of_module,
    plain_copy,
    spec,
    turned,
)
from torch import Tensor, nn
from torch.nn import functional

from bench import streams
from bench.contract.toys import furthest, play
from bench.engine.clients import Clients
from bench.engine.execute import run
from bench.engine.reference import SequentialClients
from bench.engine.run import Run, default_block_size
from bench.federation.types import SPLITS, TRAIN, Client
from bench.nn.cnn import CNN

SIZES = (4, 12, 40, 41, 70)
"""Images of each client: 3, 9, 28, 29 and 49 for training, so 1, 1, 3, 3 and 6 batches of 8."""


def plain_epochs(
    network: nn.Sequential, client: Client, number: int, seed: int, round: int, epochs: int
) -> None:
    """Local training of one client: shuffle, cut into whole batches, SGD."""
    optimiser = torch.optim.SGD(network.parameters(), lr=RATE)
    training = np.flatnonzero(client.roles == TRAIN)
    network.train()
    for epoch in range(epochs):
        order = streams.generator(seed, "order", number, round, 0, epoch).permutation(training)
        for first in range(0, max(len(order) - BATCH, 0) + 1, BATCH):
            batch = order[first : first + BATCH]
            optimiser.zero_grad()
            logits = network(normalised(client.features[batch]))
            functional.cross_entropy(logits, torch.from_numpy(client.labels[batch])).backward()
            optimiser.step()


def start(model: CNN, clients: int) -> dict[str, Tensor]:
    drawn = [model.initial(np.random.default_rng(number)) for number in range(clients)]
    return {name: torch.from_numpy(np.stack([one[name] for one in drawn])) for name in model.shapes}


@pytest.mark.parametrize("block_size", [1, 3, 5])
def test_local_training_equals_a_plain_loop_over_clients(block_size: int) -> None:
    """Two rounds of three epochs: parameters and running statistics."""
    clients = federation(*SIZES).clients
    assert [client.count(TRAIN) for client in clients] == [3, 9, 28, 29, 49]
    request = spec("local", len(clients))
    model = CNN(clients, CLASSES, SETTINGS)
    engine = Clients(request, model, clients, CLASSES, torch.device("cpu"), block_size)
    stack = start(model, len(clients))
    plain = [plain_copy(stack, number) for number in range(len(clients))]
    initial = {name: value.clone() for name, value in stack.items()}
    trained = stack
    for round in range(2):
        engine.begin_round(round)
        trained = dict(engine.fit(trained))
        for number, (network, client) in enumerate(zip(plain, clients, strict=True)):
            plain_epochs(network, client, number, request.seed, round, 3)
            for name, value in trained.items():
                expected = turned(name, of_module(network, name))
                torch.testing.assert_close(value[number], expected, rtol=1e-5, atol=1e-5)
    assert all(torch.equal(stack[name], initial[name]) for name in stack)


def test_fedavg_keeps_running_statistics_at_their_clients() -> None:
    """The averaged weights with everyone's own statistics are what the second round receives."""
    toy = federation(*SIZES)
    it = Run(spec("fedavg", len(toy), rounds=2, epochs=1), toy)
    it.warm_up()
    it.step(0)
    after = {name: value.clone() for name, value in it.own.items()}
    sent = it.method.broadcast(1).model
    assert set(after) - set(sent) == it.model.buffers
    for name in it.model.buffers:
        rows = after[name].unique(dim=0)
        assert len(rows) == len(toy)
    values = sum(int(np.prod(after[name].shape)) for name in sent)
    assert it.traffic.bytes_down == 4 * values
    assert it.traffic.bytes_up == 4 * values
    it.step(1)
    received = {
        name: value if name in it.model.buffers else value.mean(dim=0).expand(value.shape)
        for name, value in after.items()
    }
    for number, client in enumerate(toy.clients):
        with torch.no_grad():
            predicted = plain_copy(received, number).eval()(normalised(client.features)).argmax(dim=1).numpy()
        for role in range(len(SPLITS)):
            right = ((predicted == client.labels) & (client.roles == role)).sum()
            assert it.counts["received"][1][role, number] == right


@pytest.mark.parametrize("model", ["cnn", pytest.param("resnet18", marks=pytest.mark.slow)])
def test_rounds_equal_those_of_the_reference_for_speed(model: str) -> None:
    """One epoch of few steps: a difference of one digit grows from step to step."""
    toy = federation(12, 40)
    request = spec("fedavg", len(toy), rounds=2, epochs=1).with_settings({"client.model": model})
    stacked, plain = (play(request, toy, clients_type=kind) for kind in (Clients, SequentialClients))
    assert furthest(stacked.own, plain.own) < 1e-5
    np.testing.assert_allclose(stacked.loss, plain.loss, rtol=1e-4)
    for key, counts in stacked.correct().items():
        assert np.array_equal(counts, plain.correct()[key])


@pytest.mark.parametrize("method", ["local", "fedavg"])
def test_block_size_changes_no_number(method: str) -> None:
    toy = federation(*SIZES)
    runs = []
    for block_size in (1, 2, 5):
        it = Run(spec(method, len(toy), epochs=2), toy, block_size=block_size)
        it.warm_up()
        for round in range(2):
            it.step(round)
        runs.append(it)
    for other in runs[1:]:
        for name, value in runs[0].own.items():
            assert torch.equal(value, other.own[name])
        for stage, counts in runs[0].counts.items():
            assert np.array_equal(counts, other.counts[stage])


@pytest.mark.parametrize(("method", "stage"), [("local", "trained"), ("fedavg", "received")])
def test_tinted_images_are_learnt(method: str, stage: str) -> None:
    """A quarter is chance; running statistics must have become useful, too."""
    toy = federation(60, 80, 100)
    result = run(spec(method, len(toy), rounds=3, epochs=5, rate=0.05), toy)
    assert result.state == "done"
    held = {split: int(count.sum()) for split, count in result.samples.items()}
    assert held == {"train": 168, "val": 24, "test": 48}
    accuracy = (result.correct[stage, "test"] / result.samples["test"]).mean(axis=1)
    assert accuracy.max() > 0.9  # with steps this large on so few images accuracy comes and goes
    assert (result.correct["received", "test"][0] / result.samples["test"]).mean() < 0.6


def test_a_processor_trains_one_client_after_the_other_and_an_accelerator_all_at_once() -> None:
    toy = federation(*SIZES)
    assert Run(spec("local", len(toy)), toy).block_size == 1
    model = CNN(toy.clients, CLASSES, SETTINGS)
    assert default_block_size(model, toy.clients, torch.device("cuda")) == len(toy)
