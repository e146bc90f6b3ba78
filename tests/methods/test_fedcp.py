"""FedCP: its parts by hand, and two rounds against plain networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from plain_cnn import BATCH, HIDDEN, RATE, normalised, of_module, plain_copy, turned
from plain_cnn import federation as image_federation
from plain_cnn import spec as image_spec
from torch import Tensor, nn
from torch.nn import functional
from toy_federations import copied, furthest, uploads_of

from bench import streams
from bench.engine.batch import Batch
from bench.engine.method import Stack
from bench.engine.run import Run
from bench.federation.types import TRAIN, Client
from bench.methods.fedcp import POLICY, initial_policy, mmd, personal_mask

WIDTH = 6


def policies(clients: int = 2) -> dict[str, Tensor]:
    drawn = [initial_policy(WIDTH, torch.Generator().manual_seed(number)) for number in range(clients)]
    return {name: torch.stack([one[name] for one in drawn]) for name in POLICY}


def plain_policy(stack: Stack, client: int) -> nn.Sequential:
    weight, bias, scale, shift = (stack[name][client] for name in POLICY)
    network = nn.Sequential(nn.Linear(len(weight), len(bias)), nn.LayerNorm(len(bias)), nn.ReLU())
    values = (weight.T, bias, scale, shift)
    with torch.no_grad():
        for parameter, value in zip(network.parameters(), values, strict=True):
            parameter.copy_(value)
    return network


def test_extreme_noise_gives_finite_gradients() -> None:
    models = {name: value.requires_grad_() for name, value in policies(1).items()}
    for value in (0.0, 1 - 2**-24):
        noise = torch.full((1, 3, WIDTH), value)
        mask = personal_mask(models, torch.ones(1, 3, WIDTH), noise)
        assert torch.isfinite(mask).all()
        assert all(torch.isfinite(g).all() for g in torch.autograd.grad(mask.sum(), list(models.values())))


def test_mmd_equals_a_double_loop() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 5, 4)) * 3, rng.normal(size=(2, 5, 4))
    weights = np.array([[0.2] * 5, [0.5, 0.25, 0.25, 0, 0]])

    def k(a: np.ndarray, b: np.ndarray) -> float:
        return sum(np.exp(-0.5 * ((a - b) ** 2).sum() / width) for width in (10, 15, 20, 50))

    expected = [
        sum(
            weights[c, i]
            * weights[c, j]
            * (k(x[c, i], x[c, j]) + k(y[c, i], y[c, j]) - 2 * k(x[c, i], y[c, j]))
            for i in range(5)
            for j in range(5)
        )
        for c in range(2)
    ]
    value = mmd(torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(weights))
    np.testing.assert_allclose(value.numpy(), expected, rtol=1e-10)
    assert min(expected) > 0.01
    same = mmd(torch.from_numpy(x), torch.from_numpy(x), torch.from_numpy(weights))
    np.testing.assert_allclose(same.numpy(), 0, atol=1e-12)


def plain_mmd(x: Tensor, y: Tensor) -> Tensor:
    both = torch.cat([x, y])
    squares = (both[:, None] - both[None]).square().sum(dim=2)
    kernel = sum((torch.exp(-0.5 * squares / width) for width in (10, 15, 20, 50)), torch.zeros(()))
    n = len(x)
    return (kernel[:n, :n] + kernel[n:, n:] - 2 * kernel[:n, n:]).mean()


class PlainClient:
    """One client of FedCP in plain modules; the networks' last layers are the two heads."""

    def __init__(self, models: Stack, names: list[str], number: int, client: Client) -> None:
        own = {name: models[name] for name in names}
        self.number, self.client = number, client
        self.personal, self.common = plain_copy(own, number), plain_copy(own, number)
        self.policy = plain_policy(models, number)
        self.context = models["context"][number]

    def receive(self, sent: Stack, round: int) -> None:
        with torch.no_grad():
            if round:
                self.context = functional.normalize(self.personal[-1].weight.sum(dim=0), dim=0)
            for name, value in sent.items():
                if name in POLICY:
                    continue
                of_module(self.common, name).copy_(turned(name, value[self.number]))
                if not name.startswith("fc."):
                    of_module(self.personal, name).copy_(turned(name, value[self.number]))
            self.policy = plain_policy(sent, self.number)

    def train(self, round: int, epochs: int, strength: float) -> None:
        noise = streams.generator(5, "fedcp masks", self.number, round)
        weights = [*self.personal.parameters(), *self.policy.parameters()]
        training = np.flatnonzero(self.client.roles == TRAIN)
        self.personal.train()
        self.common.train()
        for epoch in range(epochs):
            order = streams.generator(5, "order", self.number, round, 0, epoch).permutation(training)
            for first in range(0, max(len(order) - BATCH, 0) + 1, BATCH):
                batch = order[first : first + BATCH]
                images = normalised(self.client.features[batch])
                r = self.personal[:-1](images)
                target = self.common[:-1](images).detach()
                draws = torch.from_numpy(noise.random((len(batch), HIDDEN), "float32"))
                personal, common = self.policy(r * self.context).chunk(2, dim=1)
                logistic = torch.log(draws) - torch.log1p(-draws)
                masks = torch.softmax(torch.stack([personal + logistic, common]), dim=0)
                logits = self.personal[-1](r * masks[0]) + functional.linear(
                    r * masks[1], self.common[-1].weight.detach(), self.common[-1].bias.detach()
                )
                loss = functional.cross_entropy(logits, torch.from_numpy(self.client.labels[batch]))
                gradients = torch.autograd.grad(loss + strength * plain_mmd(r, target), weights)
                with torch.no_grad():
                    for value, gradient in zip(weights, gradients, strict=True):
                        value -= RATE * gradient


@pytest.mark.parametrize("strength", [0.0, 5.0])
def test_two_rounds_equal_plain_networks(strength: float) -> None:
    images = image_federation(12, 40, 41)
    spec = image_spec("fedcp", 3, rounds=2, epochs=2).model_copy(update={"hyper": {"strength": strength}})
    it = Run(spec, images, block_size=2)
    uploads = uploads_of(it)
    names = list(it.model.shapes)
    start = copied(it.own)
    assert (start["context"].norm(dim=1) - 1).abs().max() < 1e-6
    assert start["context"].min() >= 0
    assert furthest({"v": start["context"][:1]}, {"v": start["context"][1:2]}) > 1e-2
    plain = [PlainClient(start, names, number, client) for number, client in enumerate(images.clients)]
    sizes = torch.tensor([float((client.roles == TRAIN).sum()) for client in images.clients])
    it.warm_up()
    for round in range(2):
        sent = copied(it.method.broadcast().model)
        for one in plain:
            one.receive(sent, round)
            one.train(round, 2, strength)
        it.step(round)
        for one in plain:
            row = one.number
            for name in names:
                expected = turned(name, of_module(one.personal, name))
                torch.testing.assert_close(it.own[name][row], expected, rtol=1e-3, atol=2e-5)
            for name in it.model.buffers:
                expected = of_module(one.common, name)
                torch.testing.assert_close(it.own[f"global.{name}"][row], expected, rtol=1e-3, atol=2e-5)
            torch.testing.assert_close(
                it.own["policy.weight"][row].T, one.policy[0].weight, rtol=1e-3, atol=2e-5
            )
            torch.testing.assert_close(it.own["context"][row], one.context, rtol=1e-3, atol=2e-5)
            half = (one.personal[-1].weight + one.common[-1].weight) / 2
            torch.testing.assert_close(uploads[round].model["fc.weight"][row].T, half, rtol=1e-3, atol=2e-5)
        for name, value in it.method.broadcast().model.items():
            mean = torch.einsum("i,i...->...", sizes / sizes.sum(), uploads[round].model[name])
            torch.testing.assert_close(value, mean.expand_as(value), rtol=1e-4, atol=1e-6)
    assert furthest({"": it.own["global.bn1.running_mean"]}, {"": it.own["bn1.running_mean"]}) > 1e-5
    with torch.no_grad():
        for batch in (block.evaluation for block in it.clients.blocks):
            check_evaluation(it, plain, batch)


def check_evaluation(it: Run, plain: list[PlainClient], batch: Batch) -> None:
    """Predictions mix both heads; masks are those of the last round, whenever they are asked for."""
    logits = it.method.logits(batch.of(it.own), batch)
    assert torch.equal(logits, it.method.logits(batch.of(it.own), batch))
    for place, number in enumerate(batch.block.numbers):
        one = plain[number]
        one.personal.eval()
        r = one.personal[:-1](normalised(one.client.features))
        draws = torch.rand(len(r), HIDDEN, generator=it.method.task.generator("masks", number, 1))
        personal, common = one.policy(r * one.context).chunk(2, dim=1)
        mask = torch.sigmoid(personal - common + torch.logit(draws))
        expected = one.personal[-1](r * mask) + one.common[-1](r * (1 - mask))
        torch.testing.assert_close(logits[place, : len(r)], expected, rtol=1e-3, atol=1e-4)
