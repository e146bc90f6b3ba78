"""FED-PUB: masks, pruning, mixing weights and penalties against small computations by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from plain_gcn import dense_gcn, looped, normalised, plain_gcn
from toy_federations import both_ways, copied, furthest, make_spec, permuted, play

from bench.engine.method import Clients, Message, Stack, Update
from bench.engine.run import Run
from bench.federation.types import TRAIN, Client, Federation
from bench.methods._masks import MASK
from bench.methods.fedpub import proxy_graph

MATRICES = ("conv1.weight", "conv2.weight", "head.weight")
MASKS = tuple(MASK + name for name in MATRICES)
PLAIN = {"optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.0, "dropout": 0.0}

Parameters = dict[str, torch.Tensor]


def masks_of(it: Run) -> Parameters:
    return copied({name: it.own[name] for name in MASKS})


def train_by_hand(it: Run, start: Parameters, penalty: Callable[[Parameters, int], Any]) -> Parameters:
    """Plain gradient descent on CE(W * mu) + penalty, one client after the other, in dense algebra."""
    result = copied(start)
    for index in range(it.clients.count):
        w = {name: value[index].clone().requires_grad_() for name, value in start.items()}
        client = it.federation.clients[index]  # type: ignore[attr-defined]
        forward = dense_gcn(client)
        train = np.flatnonzero(client.roles == TRAIN)
        labels = torch.from_numpy(client.labels[train])
        for _ in range(it.spec.protocol.local_epochs):
            used = {name: w[name] * w[MASK + name] for name in MATRICES}
            logits = forward({**w, **used})[0]
            loss = torch.nn.functional.cross_entropy(logits[train], labels) + penalty(w, index)
            gradients = torch.autograd.grad(loss, list(w.values()))
            with torch.no_grad():
                for value, gradient in zip(w.values(), gradients, strict=True):
                    value -= it.spec.client.learning_rate * gradient
        for name, value in w.items():
            result[name][index] = value.detach()
    return result


def make(federation: Federation, method: str = "fedpub", **settings: Any) -> Run:
    it = Run(make_spec(method, federation, **settings), federation)
    it.federation = federation  # type: ignore[attr-defined]
    it.warm_up()
    return it


def test_masks_start_at_ones_on_the_weight_matrices_alone(federation: Federation) -> None:
    it = make(federation)
    assert set(it.own) == set(it.model.shapes) | set(MASKS)
    for name in MATRICES:
        assert it.own[MASK + name].shape == it.own[name].shape
        assert (it.own[MASK + name] == 1).all()


def test_masks_train_with_the_weights_as_by_hand(federation: Federation) -> None:
    it = make(federation, client=PLAIN, local_epochs=3, hyper={"mask_decay": 0.0})
    for round in range(2):
        start = {**copied(it.own), **copied(it.method.broadcast().model)}
        it.step(round)
        expected = train_by_hand(it, start, lambda w, index: 0.0)
        assert furthest(copied(it.own), expected) < 1e-5
        assert min(float((it.own[name] - 1).abs().max()) for name in MASKS) > 1e-4


def test_masks_are_never_sent_and_stay_with_their_client(federation: Federation) -> None:
    it = make(federation)
    model = 4 * sum(int(np.prod(shape)) for shape in it.model.shapes.values()) * len(federation)
    embeddings = 4 * 16 * len(federation)
    update = it.method.update
    before: Parameters = {}

    def watched(clients: Clients, received: Stack, message: Message) -> Update:
        for name in MASKS:
            assert torch.equal(received[name], before[name])
        return update(clients, received, message)

    it.method.update = watched  # type: ignore[method-assign]
    for round in range(3):
        assert set(it.method.broadcast().model) == set(it.method.shared()) == set(it.model.shapes)
        before = masks_of(it)
        it.step(round)
        assert furthest(before, masks_of(it)) > 1e-4
        assert it.traffic.bytes_down == (round + 1) * model
        assert it.traffic.bytes_up == (round + 1) * (model + embeddings)
    apart = [float((it.own[name][0] - it.own[name][1]).abs().max()) for name in MASKS]
    assert min(apart) > 1e-3


def three(federation: Federation) -> Federation:
    return permuted(federation, [1, 2, 4])


@pytest.mark.parametrize("tau", [1.0, 10.0])
def test_mixing_weights_of_three_clients_by_hand(
    federation: Federation, tau: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Embeddings (1, 0), (3, 4), (0, -2): cosines 0.6, 0 and -0.8."""
    it = make(three(federation), hyper={"tau": tau})
    reports = torch.tensor([[1.0, 0.0], [3.0, 4.0], [0.0, -2.0]])
    monkeypatch.setattr(Clients, "embeddings", lambda clients, stack, on=None: reports)
    it.step(0)
    e = {cosine: math.exp(tau * cosine) for cosine in (1.0, 0.6, 0.0, -0.8)}
    rows = [[e[1.0], e[0.6], e[0.0]], [e[0.6], e[1.0], e[-0.8]], [e[0.0], e[-0.8], e[1.0]]]
    a = np.array([[value / sum(row) for value in row] for row in rows])
    np.testing.assert_allclose(it.artefacts()["collaboration"], a, atol=1e-6)
    for name, sent in it.method.broadcast().model.items():
        expected = np.einsum("ij,j...->i...", a, it.own[name].double().numpy())
        np.testing.assert_allclose(sent.numpy(), expected, atol=1e-6)


def test_tau_zero_is_the_plain_average(federation: Federation) -> None:
    it = make(federation, hyper={"tau": 0.0})
    for round in range(2):
        it.step(round)
        for name, sent in it.method.broadcast().model.items():
            mean = it.own[name].double().mean(dim=0)
            assert torch.allclose(sent.double(), mean.expand_as(sent), atol=1e-6)
    personal = make(federation, hyper={"tau": 10.0})
    personal.step(0)
    sent = personal.method.broadcast().model
    assert furthest({"a": sent["conv2.weight"][0]}, {"a": sent["conv2.weight"][1]}) > 1e-6


def test_the_first_round_starts_from_one_model(federation: Federation) -> None:
    it = make(federation)
    for value in it.method.broadcast().model.values():
        assert (value == value[:1]).all()


def test_pruning_acts_in_evaluation_only(federation: Federation) -> None:
    """A mask of 9e-4 counts in training and not in predictions; -2e-3 counts in both."""
    it = make(federation, client=PLAIN, local_epochs=1)
    block = it.clients.blocks[0]
    stack = copied(it.own)
    head = MASK + "head.weight"
    stack[head][:, 0], stack[head][:, 1] = 9e-4, -2e-3
    without = copied(stack)
    without[head][:, 0] = 0
    every = {name: value[block.rows] for name, value in stack.items()}
    used = {name: every[name] * without[MASK + name][block.rows] for name in MATRICES}
    expected = block.evaluation.forward({**every, **used}).logits
    assert torch.allclose(it.method.logits(every, block.evaluation), expected, atol=1e-7)
    # an effective weight of zero would have no gradient from its mask: W's gradient is mu's size
    trained = copied(it.method.update(it.clients, stack, Message()).keep)
    moved = (trained["head.weight"] - stack["head.weight"])[:, 0].abs().max()
    assert 0 < moved < 1e-3
    assert furthest(trained, train_by_hand(it, stack, lambda w, index: 0.0)) < 1e-5


def test_masks_have_a_weight_decay_of_their_own(federation: Federation) -> None:
    """One step of SGD: w <- w - rate (gradient + decay w), with 0.5 for weights and 0.2 for masks."""
    sgd = {**PLAIN, "weight_decay": 0.5}
    it = make(federation, client=sgd, local_epochs=1, hyper={"mask_decay": 0.2})
    start = {**copied(it.own), **copied(it.method.broadcast().model)}
    it.step(0)
    expected = train_by_hand(it, start, lambda w, index: 0.0)
    for name in start:
        expected[name] -= 0.1 * (0.2 if name in MASKS else 0.5) * start[name]
    assert furthest(copied(it.own), expected) < 1e-5


def test_default_decay_of_masks_is_the_released_one(federation: Federation) -> None:
    it = make(federation)
    decays: dict[str, float] = {}
    fit = it.clients.fit

    def watched(stack: Stack, **how: Any) -> Stack:
        decays.update({name: how["optimiser"].decay(name) for name in stack})
        return fit(stack, **how)

    it.clients.fit = watched  # type: ignore[method-assign]
    it.step(0)
    weights = dict.fromkeys(it.model.shapes, it.spec.client.weight_decay)
    assert decays == {**weights, **dict.fromkeys(MASKS, 1e-6)}


def test_functional_embeddings_by_dense_algebra(federation: Federation) -> None:
    """The mean of the second convolution before ReLU on the proxy graph, with pruned masks."""
    it = make(federation, hyper={"prune": 0.985})
    uploads: list[Message] = []
    aggregate = it.method.aggregate

    def watched(participants: torch.Tensor, received: Stack, upload: Message) -> None:
        uploads.append(upload)
        aggregate(participants, received, upload)

    it.method.aggregate = watched  # type: ignore[method-assign]
    it.step(0)
    proxy = it.method.proxy  # type: ignore[attr-defined]
    reports = uploads[0].extras["embedding"]
    a, x = normalised(looped(proxy)).double(), torch.from_numpy(proxy.features).double()
    pruned = 0
    for index in range(len(federation)):
        w = {name: value[index].double() for name, value in it.own.items()}
        for name in MATRICES:
            mask = torch.where(w[MASK + name].abs() < 0.985, 0, w[MASK + name])
            pruned += int((mask == 0).sum())
            w[name] = w[name] * mask
        h = plain_gcn(w, a, x)[1].mean(dim=0)
        torch.testing.assert_close(reports[index].double(), h, rtol=0, atol=1e-5)
    assert pruned > 0


def test_the_proxy_graph_is_five_random_blocks() -> None:
    graph = proxy_graph(40, torch.Generator().manual_seed(1))
    assert isinstance(graph, Client)
    assert graph.edges is not None
    source, target = graph.edges
    assert (source // 100 == target // 100).all()
    assert (source != target).all()
    pairs = list(zip(source.tolist(), target.tolist(), strict=True))
    assert np.array_equal(graph.edges, both_ways(pairs))  # sorted, both directions, no doubles
    # 5 * 4950 possible edges with probability 0.1: 2475 with standard deviation 47
    assert abs(len(pairs) / 2 - 2475) < 5 * 47
    assert graph.features.shape == (500, 40)
    assert abs(float(graph.features.mean())) < 5 / math.sqrt(20000)
    assert float(graph.features.std()) == pytest.approx(1, abs=0.05)


def test_the_proxy_graph_belongs_to_the_run(federation: Federation) -> None:
    one, same, other = (make(federation, seed=seed).method.proxy for seed in (0, 0, 1))  # type: ignore[attr-defined]
    assert np.array_equal(one.features, same.features)
    assert not np.array_equal(one.features, other.features)


def test_what_is_logged_of_the_masks(federation: Federation) -> None:
    it = make(federation, hyper={"prune": 0.995})
    for round in range(2):
        it.step(round)
        mask = np.concatenate([it.own[name].flatten(1).numpy() for name in MASKS], axis=1)
        logged = {name: torch.from_numpy(value) for name, value in it.artefacts().items()}
        assert logged["mask_mean"].shape == logged["mask_pruned"].shape == (round + 1, len(federation))
        np.testing.assert_allclose(logged["mask_mean"][round].numpy(), mask.mean(axis=1), rtol=1e-5)
        share = (np.abs(mask) < 0.995).mean(axis=1)
        np.testing.assert_allclose(logged["mask_pruned"][round].numpy(), share, rtol=1e-5)
        assert share.min() > 0


def test_penalties_with_gradient_by_hand(federation: Federation) -> None:
    """CE + l mean |mu| + r sum ||W - W_received||, the second part from the second round on."""
    sparsity, proximity = 50.0, 0.3
    hyper = {"sparsity": sparsity, "proximity": proximity, "mask_decay": 0.0}
    it = make(federation, "fedpub_gradient", client=PLAIN, local_epochs=3, hyper=hyper)
    for round in range(2):
        start = {**copied(it.own), **copied(it.method.broadcast().model)}
        entries = sum(start[name][0].numel() for name in MASKS)

        def penalty(w: Parameters, index: int) -> Any:
            total = sparsity * sum(w[name].abs().sum() for name in MASKS) / entries  # noqa: B023
            for name in it.model.shapes if round else ():  # noqa: B023
                square = (w[name] - start[name][index]).square().sum()  # noqa: B023
                if square > 0:  # the gradient of the norm is taken as zero at zero
                    total = total + proximity * square.sqrt()
            return total

        it.step(round)
        assert furthest(copied(it.own), train_by_hand(it, start, penalty)) < 1e-5


def test_the_penalty_makes_masks_smaller_but_leaves_them_alive(federation: Federation) -> None:
    settings: dict[str, Any] = {"rounds": 40, "local_epochs": 3, "client": {"learning_rate": 0.01}}
    means = {}
    for method in ("fedpub", "fedpub_gradient"):
        it = play(make_spec(method, federation, **settings), federation)
        means[method] = float(it.artefacts()["mask_mean"][-1].mean())
    assert 0.1 < means["fedpub_gradient"] < means["fedpub"]
