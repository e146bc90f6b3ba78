"""FedALA: adaptation against a plain loop, its degenerate cases, and when it stops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from plain_cnn import BATCH, normalised, of_module, plain_copy, turned
from plain_cnn import federation as image_federation
from plain_cnn import spec as image_spec
from torch import Tensor
from torch.nn import functional
from toy_federations import copied, furthest, make_spec, play, same_counts

from bench import streams
from bench.engine.clients import Clients
from bench.engine.local_training import Items
from bench.engine.method import Batch, Stack
from bench.engine.run import Run
from bench.federation.types import TRAIN, Client, Federation
from bench.spec import RunSpec

HEAD = ("fc.weight", "fc.bias")
CALM = {"dropout": 0.0}


@pytest.fixture(scope="module")
def images() -> Federation:
    return image_federation(12, 40, 41)


def on_images(**hyper: Any) -> RunSpec:
    spec = image_spec("fedala", 3, rounds=3, epochs=2)
    return spec.model_copy(update={"hyper": {"weights": "samples", "layers": 1, **hyper}})


def test_weights_of_one_give_fedavg(federation: Federation) -> None:
    ala, plain = (
        play(make_spec(method, federation, client=CALM, hyper={"weights": "samples", **hyper}), federation)
        for method, hyper in (("fedala", {"eta": 0.0}), ("fedavg", {}))
    )
    assert furthest({name: ala.own[name] for name in plain.own}, plain.own) == 0
    assert same_counts(plain, ala)


def passes_by_hand(
    client: Client, theta: Stack, theta_g: Stack, w: dict[str, Tensor], number: int, passes: int, eta: float
) -> None:
    """Round 1: passes over 80 % of the training items, in order; ``w`` is changed in place."""
    training = np.flatnonzero(client.roles == TRAIN)
    count = int(0.8 * len(training))
    first = streams.generator(5, "fedala slice", number, 1).integers(0, len(training) - count + 1)
    chosen = training[first : first + count]
    network = plain_copy({name: value[None] for name, value in theta.items()}, 0).train()
    for _ in range(passes):
        cuts = [cut for cut in range(0, count, BATCH) if cut == 0 or count - cut > 1]
        for cut in cuts:
            batch = chosen[cut : cut + BATCH]
            leaves = {name: value.clone().requires_grad_() for name, value in w.items()}
            hat = {name: theta[name] + (theta_g[name] - theta[name]) * leaves[name] for name in HEAD}
            logits = network[:-1](normalised(client.features[batch])) @ hat["fc.weight"] + hat["fc.bias"]
            functional.cross_entropy(logits, torch.from_numpy(client.labels[batch])).backward()
            for name, leaf in leaves.items():
                assert leaf.grad is not None
                w[name] = (w[name] - eta * leaf.grad).clamp(0, 1)


def test_adaptation_equals_a_plain_loop(images: Federation) -> None:
    """Three passes in round 1: lower layers from the average, the head element by element."""
    eta = 50.0  # differences of a round are small: larger steps show
    it = Run(on_images(eta=eta, max_passes=3), images)
    it.warm_up()
    it.step(0)
    before = copied(it.own)
    it.method.round = 1
    message = it.method.broadcast()
    it.clients.begin_round(1)
    adapted = copied(it.method.load(it.clients, it.own, message))
    for number, client in enumerate(images.clients):
        w = {name: torch.ones_like(before[name][number]) for name in HEAD}
        sent = {name: value[number] for name, value in message.model.items()}
        theta = {name: before[name][number] for name in it.model.shapes}
        theta = {**theta, **{name: value for name, value in sent.items() if name not in HEAD}}
        passes_by_hand(client, theta, sent, w, number, 3, eta)
        assert min(float(w[name].min()) for name in HEAD) < 0.98
        for name in HEAD:
            torch.testing.assert_close(adapted[f"weights.{name}"][number], w[name], rtol=1e-4, atol=1e-4)
            hat = theta[name] + (sent[name] - theta[name]) * w[name]
            torch.testing.assert_close(adapted[name][number], hat, rtol=1e-5, atol=1e-5)
        for name in set(theta) - set(HEAD):  # running statistics among them: those of the passes are gone
            assert torch.equal(adapted[name][number], theta[name])
    network = plain_copy({name: adapted[name] for name in it.model.shapes}, 2).eval()
    assert torch.equal(of_module(network, "fc.weight"), turned("fc.weight", adapted["fc.weight"][2]))

    it.step(1)  # the same round by the engine: what is evaluated as received is the adapted model
    counts = it.evaluator.all(it.method, it.clients, adapted).correct
    for role, split in enumerate(("train", "val", "test")):
        assert np.array_equal(it.correct()["received", split][1], counts[:, role])
    for name in HEAD:
        assert torch.equal(it.own[f"weights.{name}"], adapted[f"weights.{name}"]), "W lasts"


class Counted(Clients):
    """Clients that remember who learnt in each pass over their slices, and the losses."""

    def batches(self, items: Items) -> Iterator[Batch]:
        losses = np.zeros(self.count, np.float32)
        for batch in super().batches(items):
            yield batch
            assert batch.logged is not None
            losses[batch.rows] = batch.logged.numpy()
        learners = [len(part) > 0 for part in items]
        self.passed = [*getattr(self, "passed", []), (learners, losses)]


def passes(spec: RunSpec, federation: Federation) -> list[tuple[list[bool], NDArray[np.float32]]]:
    it = play(spec, federation, clients_type=Counted)
    assert isinstance(it.clients, Counted)
    return it.clients.passed


def learners(spec: RunSpec, federation: Federation) -> list[int]:
    return [sum(learning) for learning, _ in passes(spec, federation)]


def test_passes_go_on_until_the_losses_settle(federation: Federation) -> None:
    """With W that stays, full batches and no dropout all losses are equal: eleven passes show it."""
    spec = make_spec("fedala", federation, client=CALM, rounds=4, hyper={"eta": 0.0})
    assert learners(spec, federation) == [5] * 11 + [5, 5]  # one pass in each of rounds 2 and 3


def test_clients_that_have_settled_wait_for_the_others(federation: Federation) -> None:
    """In full batches a pass's last loss is its mean one; the last ten of more decide, client by client."""
    client = {"dropout": 0.0, "learning_rate": 0.2}
    spec = make_spec("fedala", federation, client=client, rounds=2, hyper={"eta": 0.3})
    passed = passes(spec, federation)
    assert 11 < len(passed) < 50
    for row in range(len(federation)):
        count = sum(learning[row] for learning, _ in passed)
        losses = [float(values[row]) for learning, values in passed if learning[row]]
        settled = [index for index in range(11, count + 1) if np.std(losses[index - 10 : index]) < 0.1]
        assert settled == [count]
    assert len({sum(learning) for learning, _ in passed}) > 1


def test_the_bound_holds(images: Federation) -> None:
    assert learners(on_images(max_passes=4), images) == [3] * 4 + [3]
