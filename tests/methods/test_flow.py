"""Flow: routing, policy and one client's round by hand, and what its variants keep, send and reset."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from plain_gcn import looped, normalised
from scipy import sparse
from torch import Tensor
from torch.nn import functional
from toy_federations import (
    PLAIN,
    begun,
    both_ways,
    copied,
    furthest,
    make_spec,
    permuted,
    play,
    random_federation,
)

from bench.engine.method import Message, Stack
from bench.engine.run import Run
from bench.federation.types import TRAIN, Client, Federation
from bench.methods.flow import LOCAL_COPY, Flow, hard_gates, local_penalty, routed_gcn, soft_gates
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


def test_equal_copies_make_routing_irrelevant(either: Federation) -> None:
    """What a client of stateless Flow receives is FedAvg's model, however psi decides."""
    it = Run(make_spec("flow", either, client={"hidden": 8}), either)
    received = it.method.load(it.clients, it.own, it.method.broadcast())
    (block,) = it.clients.blocks
    plain = block.evaluation.forward({name: received[name] for name in it.model.shapes}).logits
    assert torch.allclose(it.method.logits(received, block.evaluation), plain, atol=1e-5)


def pair() -> GraphInputs:
    """Two linked nodes with features 1 and 3: every entry of the normalised adjacency is 1/2."""
    client = Client(
        ids=np.array([0, 1]),
        labels=np.array([0, 1]),
        roles=np.array([TRAIN, TRAIN], np.int8),
        features=sparse.csr_matrix(np.array([[1], [3]], np.float32)),
        edges=both_ways([(0, 1)]),
    )
    return GraphInputs([client], True, torch.device("cpu"))


def stacked(**values: list[float] | list[list[float]]) -> dict[str, Tensor]:
    """One client's parameters; ``conv1_weight`` stands for ``conv1.weight``."""
    return {name.replace("_", "."): torch.tensor([value]) for name, value in values.items()}


def test_two_nodes_by_hand() -> None:
    shared = stacked(
        conv1_weight=[[2.0]],
        conv1_bias=[1.0],
        conv2_weight=[[1.0]],
        conv2_bias=[-2.0],
        head_weight=[[1.0, -1.0]],
        head_bias=[0.0, 1.0],
    )
    personal = stacked(
        conv1_weight=[[-1.0]],
        conv1_bias=[6.0],
        conv2_weight=[[-2.0]],
        conv2_bias=[9.0],
        head_weight=[[2.0, 0.0]],
        head_bias=[0.0, 0.0],
    )
    gates = torch.tensor([[[[1.0, 0.0], [0.0, 1.0], [0.4, 0.6]], [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]]])
    # conv1 sees (1 + 3) / 2 = 2: 5 globally, 4 locally; the nodes hold 5 and 0.25 * 5 + 0.75 * 4 = 4.25
    # conv2 sees 4.625: 2.625 globally, -0.25 locally; node 0 holds relu(-0.25), node 1 relu(2.375 / 2)
    # head: node 0 sees 0: 0.4 (0, 1) + 0.6 (0, 0); node 1 sees 1.1875: (1.1875, 1 - 1.1875)
    expected = torch.tensor([[[0.0, 0.4], [1.1875, -0.1875]]])
    assert torch.allclose(routed_gcn(shared, personal, gates, pair(), None), expected, atol=1e-6)


def test_the_likelier_copy_is_taken_and_the_global_one_in_a_tie() -> None:
    gates = torch.tensor([[[[0.6, 0.4], [0.5, 0.5], [0.49, 0.51]]]])
    assert hard_gates(gates).tolist() == [[[[1, 0], [1, 0], [0, 1]]]]


def test_every_exit_reads_its_own_hidden_layer() -> None:
    """Scalars by hand: node features 1 and 3."""
    values = {
        "conv1.hidden": ([[2.0]], [-1.0]),  # 1, 5
        "conv1.exit": ([[1.0, 0.0]], [0.0, 1.0]),  # logits (1, 1), (5, 1)
        "conv2.hidden": ([[-1.0]], [3.0]),  # 2, relu(-2) = 0
        "conv2.exit": ([[0.0, 0.5]], [0.0, 0.0]),  # (0, 1), (0, 0)
        "head.hidden": ([[3.0]], [1.0]),  # 7, 1
        "head.exit": ([[-1.0, 0.0]], [0.0, 0.0]),  # (-7, 0), (-1, 0)
    }
    policy = {}
    for name, (weight, bias) in values.items():
        policy[f"policy.{name}.weight"], policy[f"policy.{name}.bias"] = (
            torch.tensor([weight]),
            torch.tensor([bias]),
        )
    excess = np.array([[0, 1, 7], [-4, 0, 1]])  # local logit minus global logit, by node and layer
    gates = soft_gates(policy, pair())[0].numpy()
    np.testing.assert_allclose(gates[..., 1], 1 / (1 + np.exp(-excess)), rtol=1e-5)
    np.testing.assert_allclose(gates.sum(axis=2), 1, rtol=1e-5)


def test_the_penalty_by_hand() -> None:
    """Three nodes of which two count, half each; it falls as p_local grows."""
    p = torch.tensor([[[0.5, 1.0, 0.1], [0.2, 0.2, 0.0], [0.9, 0.9, 0.9]]])
    gates = torch.stack([1 - p, p], dim=-1)
    weights = torch.tensor([[0.5, 0.5, 0.0]])
    first = math.log(1 / 0.250001) + math.log(1 / 1.000001) + math.log(1 / 0.010001)
    second = 2 * math.log(1 / 0.040001) + math.log(1e6)
    assert float(local_penalty(gates, weights)) == pytest.approx((first + second) / 6, rel=1e-5)


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


def test_the_global_copy_is_fedavg_on_half_b(federation: Federation) -> None:
    """Neither psi nor the local copy has a say in the global path."""
    it = play(make_spec("flow", federation, rounds=4, client=CALM), federation)
    _, second = method_of(it).halves(it.clients)
    plain = Run(make_spec("fedavg", federation, rounds=4, client=CALM), federation)
    plain.method.update = lambda clients, received, message: plain.method.upload(  # type: ignore[method-assign]
        clients.fit(received, items=second)
    )
    plain.warm_up()
    for round in range(4):
        plain.step(round)
    assert furthest({name: it.own[name] for name in plain.own}, plain.own) < 1e-5


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
