"""FedAux: the readout, the weights of the server and both limits, against loops and other methods."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from plain_gcn import looped, normalised, plain_gcn
from toy_federations import PLAIN, begun, furthest, make_spec, play, uploads_of

from bench.engine.method import Stack
from bench.engine.run import Run
from bench.federation.types import Federation
from bench.methods._masks import MASK, masked
from bench.methods.fedaux import PROJECTION, READOUT, FedAux, kernel_means, mean


def random_models(it: Run, seed: int = 0) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return {name: torch.randn(value.shape, generator=rng) for name, value in it.own.items()}


def outputs(it: Run, models: Stack) -> torch.Tensor:
    return it.method.logits(models, it.clients.blocks[0].evaluation)


def test_logits_of_two_clients_node_by_node(tiny: Federation) -> None:
    it = Run(make_spec("fedaux", tiny, client={"hidden": 4}, hyper={"sigma": 0.4}), tiny)
    models = random_models(it)
    logits = outputs(it, models)
    for row, client in enumerate(tiny.clients):
        w = {name: value[row].double() for name, value in models.items()}
        used = {name: value * w[MASK + name] for name, value in w.items() if MASK + name in w}
        a, x = normalised(looped(client)).double(), torch.from_numpy(client.dense()).double()
        h = torch.relu(plain_gcn({**w, **used}, a, x)[1])
        length = (h.norm(dim=1) * w[PROJECTION].norm()).clamp_min(1e-8)
        scores = (h @ w[PROJECTION] / length).tolist()
        for v in range(len(client.ids)):
            k = [math.exp(-((scores[u] - scores[v]) ** 2) / 0.4**2) for u in range(len(client.ids))]
            z = sum((weight * h[u] for u, weight in enumerate(k)), torch.zeros(4)) / sum(k)
            expected = h[v] @ used["head.weight"] + z @ used[READOUT] + w["head.bias"]
            torch.testing.assert_close(logits[row, v].double(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", ["fedaux", "fedpub"])
def test_the_released_head_begins_by_xavier_s_rule(federation: Federation, method: str) -> None:
    """Within sqrt(6 / (inputs + classes)), the bias as one row, and near it somewhere; all else as ever."""
    hidden, classes = 16, federation.classes
    inputs = 2 * hidden if method == "fedaux" else hidden
    plain, released = (
        Run(make_spec(method, federation, initial="common", hyper=hyper), federation).method.broadcast().model
        for hyper in ({}, {"initial_head": "xavier"})
    )
    head = {"head.weight": inputs, "head.bias": 1, READOUT: inputs}
    for name, value in released.items():
        if name not in head:
            assert torch.equal(value, plain[name]), name
            continue
        bound = math.sqrt(6 / (head[name] + classes))
        assert torch.equal(value, value[:1].expand(value.shape)), "all clients begin alike"
        assert 0.6 * bound < float(value.abs().max()) <= bound, name
    if method == "fedaux":
        assert not torch.equal(released["head.weight"], released[READOUT])


def test_the_readout_at_both_ends_of_sigma_and_in_pieces() -> None:
    rng = torch.Generator().manual_seed(1)
    h = torch.rand(2, 5, 3, generator=rng, requires_grad=True)
    scores = torch.rand(2, 5, generator=rng)
    node = torch.tensor([[1.0] * 5, [1.0, 1.0, 1.0, 0.0, 0.0]])
    averages = torch.stack([h[0].mean(dim=0), h[1, :3].mean(dim=0)])
    wide = kernel_means(h, scores, node, 1e4)
    torch.testing.assert_close(wide, averages[:, None, :].expand_as(h))
    torch.testing.assert_close(mean(h, node), wide)
    narrow = kernel_means(h, scores, node, 1e-4)
    torch.testing.assert_close(narrow[0], h[0])
    torch.testing.assert_close(narrow[1, :3], h[1, :3])
    assert torch.isfinite(narrow).all()
    whole, pieces = (kernel_means(h, scores, node, 0.3, pairs) for pairs in (10**6, 7))
    torch.testing.assert_close(whole, pieces)
    slopes = [torch.autograd.grad(z.square().sum(), h, retain_graph=True)[0] for z in (whole, pieces)]
    torch.testing.assert_close(*slopes)


def test_the_vector_is_trained(tiny: Federation) -> None:
    it = begun("fedaux", tiny, client=PLAIN)
    before = it.own[PROJECTION].clone()
    it.step(0)
    assert (it.own[PROJECTION] != before).any(dim=1).all()


def test_all_start_from_one_model_and_one_vector(federation: Federation) -> None:
    it = Run(make_spec("fedaux", federation, initial="own"), federation)
    first = it.method.broadcast().model
    assert set(first) == {*it.method.task.parameters, PROJECTION, READOUT}
    assert all(torch.equal(value[0], value[1]) for value in first.values())
    assert 0 <= first[PROJECTION].min() <= first[PROJECTION].max() <= 1
    bound = 1 / math.sqrt(2 * 16)
    for name in ("head.weight", READOUT):
        assert 0.8 * bound < float(first[name].abs().max()) <= bound


def test_weight_matrices_have_masks_where_they_are_asked_for(federation: Federation) -> None:
    it = play(make_spec("fedaux", federation), federation)
    matrices = {"conv1.weight", "conv2.weight", "head.weight", READOUT}
    assert {name.removeprefix(MASK) for name in it.own if name.startswith(MASK)} == matrices
    assert all((it.own[MASK + name] != 1).any() for name in matrices)
    plain = play(make_spec("fedaux", federation, hyper={"masks": False}), federation)
    assert set(plain.own) == {*it.method.task.parameters, PROJECTION, READOUT}


def test_the_server_weighs_by_the_cosine_of_vectors(federation: Federation) -> None:
    it = begun("fedaux", federation, hyper={"alpha": 5.0})
    uploads = uploads_of(it)
    it.step(0)
    sent = uploads[0].model
    a = sent[PROJECTION].double().numpy()
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    w = np.exp(5 * a @ a.T)
    w /= w.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(it.method.records["collaboration"], w, rtol=1e-5)
    for name, value in it.method.broadcast().model.items():
        expected = np.einsum("ij,j...->i...", w, sent[name].double().numpy())
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-6)


def test_without_masks_readout_and_weights_it_is_fedavg(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From one model, with z = 0, which gives the readout's weights no gradient."""
    monkeypatch.setattr(FedAux, "readout", lambda method, h, a, batch: 0 * h * a[:, None, :])
    settings: dict[str, Any] = {"client": PLAIN, "initial": "common"}
    it = Run(make_spec("fedaux", federation, hyper={"alpha": 0.0, "masks": False}, **settings), federation)
    average = Run(make_spec("fedavg", federation, **settings), federation)
    start = it.method.broadcast().model
    average.method.model = {name: start[name][0].clone() for name in average.own}  # type: ignore[attr-defined]
    for run in (it, average):
        run.warm_up()
        for index in range(3):
            run.step(index)
    assert furthest({name: it.own[name] for name in average.own}, average.own) < 1e-5


def test_pruned_masks_are_zero_in_predictions_alone(tiny: Federation) -> None:
    it = Run(make_spec("fedaux", tiny, hyper={"prune": 0.5}), tiny)
    models = random_models(it)
    name = MASK + "conv1.weight"
    small = models[name].abs() <= 0.5
    assert small.any()
    by_hand = {
        **models,
        **{mask: models[mask] * (models[mask].abs() > 0.5) for mask in models if MASK in mask},
    }
    assert torch.equal(outputs(it, models), outputs(it, by_hand))
    unpruned = masked(models, [name.removeprefix(MASK) for name in models if MASK in name])
    assert torch.equal(unpruned["conv1.weight"], models["conv1.weight"] * models[name])
