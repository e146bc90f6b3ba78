"""Flow: routing, policy and one client's round by hand, and what its variants keep, send and reset."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from plain_gcn import looped, normalised
from torch import Tensor
from torch.nn import functional
from toy_federations import (
    PLAIN,
    begun,
    copied,
    furthest,
    make_spec,
    permuted,
    play,
    random_federation,
)

from bench.engine.method import Message, Stack
from bench.engine.run import Run
from bench.federation.types import TRAIN, Federation
from bench.methods.flow import LOCAL_COPY, Flow, hard_gates, routed_gcn, soft_gates
from bench.nn.gcn import GraphInputs

VARIANTS = ("flow", "flow_stateful", "flow_released")
CALM = {"dropout": 0.0}


@pytest.fixture(scope="module", params=["sparse", "dense"])
def either(request: pytest.FixtureRequest) -> Federation:
    """Features in both layouts."""
    return random_federation((7, 12, 5), seed=2, width=20, isolated=1, dense=request.param == "dense")


def local(name: str) -> str:
    """Name of a parameter's local copy."""
    return LOCAL_COPY + name


def method_of(it: Run) -> Flow:
    assert isinstance(it.method, Flow)
    return it.method


def two_models(it: Run) -> dict[str, Tensor]:
    """A stack whose global and local copies differ, at random, biases included."""
    generator = torch.Generator().manual_seed(5)
    return {name: torch.randn(value.shape, generator=generator) / 4 for name, value in it.own.items()}


def decided(stack: Stack, column: int) -> dict[str, Tensor]:
    """The same stack with a policy that sends every node to one copy in every layer."""
    stack = copied(stack)
    for name, value in stack.items():
        if name.startswith("policy.") and ".exit." in name:
            value.zero_()
            if name.endswith("bias"):
                value[:, column] = 200.0  # exp(-200) is 0 in float32: the soft gates are hard, too
    return dict(stack)


@pytest.mark.parametrize("column", [0, 1])
def test_gates_fixed_to_one_copy_give_that_model(either: Federation, column: int) -> None:
    it = Run(make_spec("flow", either, client={"hidden": 8}), either)
    stack = decided(two_models(it), column)
    names = it.model.shapes
    chosen = {name: stack[local(name) if column else name] for name in names}
    other = {name: stack[name if column else local(name)] for name in names}
    (block,) = it.clients.blocks
    expected = block.evaluation.forward(chosen).logits
    assert torch.allclose(it.method.logits(stack, block.evaluation), expected, atol=1e-5)
    assert not torch.allclose(block.evaluation.forward(other).logits, expected, atol=1e-1)
    inputs = block.inputs
    assert isinstance(inputs, GraphInputs)
    personal = {name: stack[local(name)] for name in names}
    soft = routed_gcn(stack, personal, soft_gates(stack, inputs), inputs, None)
    assert torch.allclose(soft, expected, atol=1e-5)


def test_the_likelier_copy_is_taken_and_the_global_one_in_a_tie() -> None:
    gates = torch.tensor([[[[0.6, 0.4], [0.5, 0.5], [0.49, 0.51]]]])
    assert hard_gates(gates).tolist() == [[[[1, 0], [1, 0], [0, 1]]]]


def dense_round(
    federation: Federation,
    received: Stack,
    halves: tuple[np.ndarray, np.ndarray],
    penalty: float,
    epochs: int,
) -> dict[str, Tensor]:
    """One client's round as the algorithm is written, one step after the other, in dense algebra."""
    (client,) = federation.clients
    a, x = normalised(looped(client)), torch.from_numpy(client.dense())
    y = torch.from_numpy(client.labels)
    w = {name: value[0].clone().requires_grad_() for name, value in received.items()}
    plain = [name for name in w if not name.startswith(("policy.", "local."))]
    policy = [name for name in w if name.startswith("policy.")]

    def layer(prefix: str, name: str, z: Tensor) -> Tensor:
        z = z @ w[f"{prefix}{name}.weight"]
        return (z if name == "head" else a @ z) + w[f"{prefix}{name}.bias"]

    def path(prefix: str) -> Tensor:
        return layer(prefix, "head", layer(prefix, "conv2", layer(prefix, "conv1", x).relu()).relu())

    def mixture() -> tuple[Tensor, Tensor]:
        z, hidden, chances = x, x, []
        for name in ("conv1", "conv2", "head"):
            inner, leave = f"policy.{name}.hidden", f"policy.{name}.exit"
            hidden = (hidden @ w[f"{inner}.weight"] + w[f"{inner}.bias"]).relu()
            p = (hidden @ w[f"{leave}.weight"] + w[f"{leave}.bias"]).softmax(dim=1)
            chances.append(p[:, 1])
            z = p[:, :1] * layer("", name, z) + p[:, 1:] * layer("local.", name, z)
            z = z if name == "head" else z.relu()
        return z, torch.stack(chances, dim=1)

    def step(loss: Tensor, names: list[str]) -> None:
        for name, gradient in zip(names, torch.autograd.grad(loss, [w[name] for name in names]), strict=True):
            w[name] = (w[name] - 0.1 * gradient).detach().requires_grad_()

    first, second = halves
    for _ in range(epochs):
        step(functional.cross_entropy(path("local.")[first], y[first]), [local(name) for name in plain])
    for _ in range(epochs):
        logits, chances = mixture()
        surprise = -(chances[second] ** 2 + 1e-6).log()
        step(functional.cross_entropy(logits[second], y[second]) + penalty * surprise.mean(), policy)
        step(functional.cross_entropy(path("")[second], y[second]), plain)
    return {name: value.detach()[None] for name, value in w.items()}


def test_a_clients_round_is_the_written_alternation(federation: Federation) -> None:
    one = permuted(federation, [1])
    hyper = {"penalty": 0.5, "policy_width": 8}
    spec = make_spec("flow_stateful", one, local_epochs=4, hyper=hyper, client=PLAIN)
    it = Run(spec, one)
    # distinct copies and decided gates, so that every gradient matters
    received = {name: 2 * value for name, value in two_models(it).items()}
    first, second = method_of(it).halves(it.clients)
    expected = dense_round(one, received, (first[0], second[0]), 0.5, epochs=4)
    trained = it.method.update(it.clients, received, Message()).keep
    assert furthest(trained, expected) < 1e-4
    for part in ("policy.", "local.", "conv1"):
        moved = {name: value for name, value in trained.items() if name.startswith(part)}
        assert furthest(moved, {name: received[name] for name in moved}) > 1e-2


def test_halves_are_disjoint_cover_and_last(federation: Federation) -> None:
    it = Run(make_spec("flow", federation), federation)
    first, second = method_of(it).halves(it.clients)
    for a, b, client in zip(first, second, federation.clients, strict=True):
        assert sorted([*a, *b]) == np.flatnonzero(client.roles == TRAIN).tolist()
        assert len(b) - len(a) in (0, 1)
    again = method_of(it).halves(it.clients)[0]
    other = Run(make_spec("flow", federation, seed=1), federation)
    unlike = method_of(other).halves(other.clients)[0]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert any(set(a) != set(b) for a, b in zip(first, unlike, strict=True))
    # neither the first nodes nor every second one
    big = int(np.argmax([len(a) for a in first]))
    assert min(second[big]) < max(first[big])
    assert min(first[big]) < max(second[big])


def test_both_phases_may_use_all_nodes(federation: Federation) -> None:
    """Then a round's local copy is FedAvg's client, and so is the global one."""
    it = begun("flow", federation, 1, hyper={"data": "all"}, client=CALM)
    plain = begun("fedavg", federation, 1, client=CALM)
    for name, value in plain.own.items():
        assert torch.allclose(it.own[name], value, atol=1e-6)
        assert torch.allclose(it.own[local(name)], value, atol=1e-6)


@pytest.mark.parametrize("method", VARIANTS)
def test_where_the_local_copy_starts_a_round(federation: Federation, method: str) -> None:
    it = Run(make_spec(method, federation), federation)
    names = list(it.model.shapes)
    first = it.method.load(it.clients, it.own, it.method.broadcast())
    assert all(torch.equal(first[local(name)], first[name]) for name in names)
    it.warm_up()
    it.step(0)
    trained = copied(it.own)
    received = it.method.load(it.clients, it.own, it.method.broadcast())
    for name in names:
        own, mean = trained[local(name)], trained[local(name)].double().mean(dim=0)
        assert float((own - mean).abs().max()) > 1e-3
        start = received[local(name)]
        if method == "flow":
            assert torch.equal(start, received[name])
        elif method == "flow_stateful":
            assert torch.equal(start, own)
        else:
            assert torch.allclose(start.double(), mean.expand_as(start), atol=1e-6)
    for name in it.method.shared():
        mean = trained[name].double().mean(dim=0)
        assert torch.allclose(received[name].double(), mean.expand_as(received[name]), atol=1e-6)


def test_one_training_node_is_enough_to_run(federation: Federation) -> None:
    """Half A is empty then: the local copy has nothing to learn from."""
    client = federation.clients[0]
    chosen = np.flatnonzero(client.roles == TRAIN)
    roles = client.roles.copy()
    roles[chosen[1:]] = 3
    few = replace(federation, clients=(replace(client, roles=roles), *federation.clients[1:]))
    it = play(make_spec("flow", few, client=PLAIN), few)
    received = it.method.load(it.clients, it.own, it.method.broadcast())
    trained = it.method.update(it.clients, received, Message()).keep
    assert all(torch.equal(trained[local(name)][0], received[name][0]) for name in it.model.shapes)
    assert not torch.equal(trained["conv1.weight"][0], received["conv1.weight"][0])
