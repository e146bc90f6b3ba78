"""FED-PUB: masks, pruning, mixing weights and penalties against small computations by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from plain_gcn import descended, looped, normalised, plain_gcn
from toy_federations import PLAIN, begun, both_ways, copied, furthest, make_spec, permuted, play, uploads_of

from bench.engine.method import Clients, Message
from bench.federation.types import Client, Federation
from bench.methods._masks import MASK
from bench.methods.fedpub import proxy_graph

MATRICES = ("conv1.weight", "conv2.weight", "head.weight")
MASKS = tuple(MASK + name for name in MATRICES)


def test_masks_start_at_ones_on_the_weight_matrices_alone(federation: Federation) -> None:
    it = begun("fedpub", federation)
    assert set(it.own) == set(it.model.shapes) | set(MASKS)
    for name in MATRICES:
        assert it.own[MASK + name].shape == it.own[name].shape
        assert (it.own[MASK + name] == 1).all()


@pytest.mark.parametrize("tau", [1.0, 10.0])
def test_mixing_weights_of_three_clients_by_hand(
    federation: Federation, tau: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Embeddings (1, 0), (3, 4), (0, -2): cosines 0.6, 0 and -0.8."""
    it = begun("fedpub", permuted(federation, [1, 2, 4]), hyper={"tau": tau})
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


def test_pruning_acts_in_evaluation_only(federation: Federation) -> None:
    """A mask of 9e-4 counts in training and not in predictions; -2e-3 counts in both."""
    it = begun("fedpub", federation, client=PLAIN, local_epochs=1)
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
    assert furthest(trained, descended(it.spec, federation, stack)) < 1e-5


def test_masks_have_a_weight_decay_of_their_own(federation: Federation) -> None:
    """One step of SGD: w <- w - rate (gradient + decay w), with 0.5 for weights and 0.2 for masks."""
    sgd = {**PLAIN, "weight_decay": 0.5}
    it = begun("fedpub", federation, client=sgd, local_epochs=1, hyper={"mask_decay": 0.2})
    start = {**copied(it.own), **copied(it.method.broadcast().model)}
    it.step(0)
    expected = descended(it.spec, federation, start)
    for name in start:
        expected[name] -= 0.1 * (0.2 if name in MASKS else 0.5) * start[name]
    assert furthest(copied(it.own), expected) < 1e-5


def test_functional_embeddings_by_dense_algebra(federation: Federation) -> None:
    """The mean of the second convolution before ReLU on the proxy graph, with pruned masks."""
    it = begun("fedpub", federation, hyper={"prune": 0.985})
    uploads = uploads_of(it)
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


def test_what_is_logged_of_the_masks(federation: Federation) -> None:
    it = play(make_spec("fedpub", federation, hyper={"prune": 0.995}), federation)
    mask = np.concatenate([it.own[name].flatten(1).numpy() for name in MASKS], axis=1)
    logged = it.artefacts()
    np.testing.assert_allclose(logged["mask_mean"], [mask.mean(axis=1)], rtol=1e-5)
    share = (np.abs(mask) < 0.995).mean(axis=1)
    np.testing.assert_allclose(logged["mask_pruned"], [share], rtol=1e-5)
    assert share.min() > 0
