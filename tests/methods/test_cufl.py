"""CUFL: masks on edges, graphs with weights, reports and scales, against loops and dense algebra."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from plain_gcn import normalised, plain_gcn
from toy_federations import PLAIN, copied, furthest, make_spec, play

from bench.engine.method import Message, Stack
from bench.engine.run import Run
from bench.federation.types import TRAIN, Client, Federation
from bench.methods._curriculum import (
    Edges,
    grown,
    pace,
    scaled,
    selected,
    shares,
    unscaled,
    unselected,
)
from bench.methods._masks import MASK
from bench.methods.cufl import CUFL, EASE, EDGES, REFERENCE, report

SHORT = {"warm_up_epochs": 5}


def begun(federation: Federation, method: str = "cufl", **settings: Any) -> tuple[Run, CUFL]:
    it = Run(make_spec(method, federation, **{"hyper": SHORT, **settings}), federation)
    assert isinstance(it.method, CUFL)
    it.warm_up()
    return it, it.method


def fresh(edges: int, clients: int = 1) -> Stack:
    return unselected(torch.zeros(clients, 1, dtype=torch.float64), edges)


def pairs_of(client: Client) -> list[tuple[int, int]]:
    assert client.edges is not None
    return sorted((int(u), int(v)) for u, v in client.edges.T if u < v)


def random_stack(it: Run, seed: int = 0) -> dict[str, torch.Tensor]:
    """Random models and masks, and random masks and weights of edges."""
    rng = torch.Generator().manual_seed(seed)
    drawn = {name: torch.randn(value.shape, generator=rng) for name, value in it.own.items()}
    chances = (EASE, EDGES + "s", REFERENCE + "s")
    return {
        **{name: drawn[name] if name in it.model.shapes or MASK in name else value
           for name, value in it.own.items()},
        **{name: torch.rand(it.own[name].shape, generator=rng, dtype=it.own[name].dtype) for name in chances},
    }  # fmt: skip


def weighted(client: Client, weight: dict[tuple[int, int], float]) -> torch.Tensor:
    """The adjacency of a client's graph whose edges have weights, normalised with self-loops."""
    w = torch.eye(len(client.ids))
    for (u, v), value in weight.items():
        w[u, v] = w[v, u] = value
    return normalised(w)


def test_a_mask_takes_the_steps_of_adam() -> None:
    rng = np.random.default_rng(3)
    state = fresh(6, clients=2)
    s, first, second, taken = np.zeros((2, 6)), np.zeros((2, 6)), np.zeros((2, 6)), 0
    least, most = 1.0, 0.0
    for step in (0.1, 0.4, 0.05, 1.0, 1.0):
        d = rng.random((2, 6)) / 2
        state = grown(state, torch.from_numpy(d), step, 0.05)
        slope = d - step  # of sum s d - step sum s
        for _ in range(5):
            taken += 1
            first = 0.9 * first + 0.1 * slope
            second = 0.999 * second + 0.001 * slope**2
            size = np.sqrt(second / (1 - 0.999**taken)) + 1e-8
            s = np.clip(s - 0.05 * first / (1 - 0.9**taken) / size, 0, 1)
        np.testing.assert_allclose(state["s"], s)
        least, most = min(least, s.min()), max(most, s.max())
    assert (least, most) == (0, 1)


def test_the_pace_ends_at_one() -> None:
    assert [pace(round, 9) for round in range(9)] == [1 / 7, 1 / 6, 1 / 5, 1 / 4, 1 / 3, 1 / 2, 1, 1, 1]
    assert pace(0, 100) == pytest.approx(1 / 67)
    assert pace(0, 1) == 1


def test_weights_are_shares_of_selections() -> None:
    state: Stack = {**fresh(3), "s": torch.tensor([[0.5, 0.1, 0.25]])}
    assert shares(state, 0.2).tolist() == [[1, 0, 1]]  # nothing was selected before
    state = selected(state, 0.2)
    state = selected({**state, "s": torch.tensor([[0.5, 0.6, 0.1]])}, 0.2)
    assert shares(state, 0.2).tolist() == [[1, 0.5, 0]]


def test_difficulties_and_products_edge_by_edge(tiny: Federation) -> None:
    it, method = begun(tiny)
    edges = method.own_edges(it.clients.blocks[0].evaluation)
    items = it.clients.blocks[0].items
    z = torch.randn(2, items, 3, generator=torch.Generator().manual_seed(1))
    nodes = torch.rand(2, items, generator=torch.Generator().manual_seed(2))
    difficulty, products = edges.difficulty(z), edges.of_ends(nodes)
    for row, client in enumerate(tiny.clients):
        pairs = pairs_of(client)
        for place, (u, v) in enumerate(pairs):
            one, two = z[row, u].double().numpy(), z[row, v].double().numpy()
            p = (one @ two / math.sqrt(one @ one * (two @ two)) + 1) / 2
            assert float(difficulty[row, place]) == pytest.approx((1 - p) ** 2, abs=1e-6)
            assert float(products[row, place]) == pytest.approx(float(nodes[row, u] * nodes[row, v]))
        assert difficulty[row, len(pairs) :].tolist() == [1.0] * (edges.width - len(pairs))


def test_edges_of_the_reference_graph_are_all_there(tiny: Federation) -> None:
    it, method = begun(tiny)
    edges: Edges = method.reference_edges(it.clients.blocks[0].evaluation)
    assert method.proxy.edges is not None
    ends = {(int(u), int(v)) for u, v in method.proxy.edges.T if u < v}
    count = len(ends)
    assert set(zip(edges.low[:count].tolist(), edges.high[:count].tolist(), strict=True)) == ends
    assert len(edges.low) == count * len(tiny.clients)


@pytest.mark.parametrize("every", [False, True], ids=["some edges", "all edges"])
def test_clients_train_on_the_selected_edges_as_by_hand(federation: Federation, every: bool) -> None:
    """With every edge at a weight of 1 that is FED-PUB's client, but for the head's mask."""
    hyper = {**SHORT, "mask_decay": 0.0}
    it, method = begun(federation, client=PLAIN, local_epochs=2, hyper=hyper)
    start = random_stack(it)
    if every:
        start |= {EASE: torch.ones_like(start[EASE]), EDGES + "s": torch.ones_like(start[EDGES + "s"])}
    it.clients.begin_round(1)  # no cycle
    result = method.update(it.clients, start, Message()).keep
    for row, client in enumerate(federation.clients):
        pairs = pairs_of(client)
        s, ease = start[EDGES + "s"][row].tolist(), start[EASE][row].tolist()
        own = {pair: (s[e] > 0.2) * ease[e] for e, pair in enumerate(pairs)}
        assert every or not pairs or min(own.values()) == 0 < max(own.values())
        a, x = weighted(client, own), torch.from_numpy(client.dense())
        names = [*it.model.shapes, MASK + "conv1.weight", MASK + "conv2.weight"]
        w = {name: start[name][row].clone().requires_grad_() for name in names}
        train = np.flatnonzero(client.roles == TRAIN)
        for _ in range(2):
            used = {name: w[name] * w[MASK + name] for name in ("conv1.weight", "conv2.weight")}
            logits = plain_gcn({**w, **used}, a, x)[0][train]
            loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(client.labels[train]))
            for value, slope in zip(w.values(), torch.autograd.grad(loss, list(w.values())), strict=True):
                value.data -= 0.1 * slope
        for name, value in w.items():
            torch.testing.assert_close(result[name][row], value.detach(), rtol=1e-3, atol=1e-4)


def test_ease_of_edges_by_hand(federation: Federation) -> None:
    """Of training nodes alone, by their losses above the least of them."""
    it, method = begun(federation)
    models = random_stack(it)
    batch = it.clients.blocks[0].evaluation
    log = method.logits(models, batch).log_softmax(dim=2).double().numpy()
    result = method.ease(models, batch)
    for row, client in enumerate(federation.clients):
        losses = {v: -log[row, v, client.labels[v]] for v in np.flatnonzero(client.roles == TRAIN)}
        least = min(losses.values())
        d = {v: math.exp(2 * loss) / math.exp(2 * least) for v, loss in losses.items()}
        for place, (u, v) in enumerate(pairs_of(client)):
            expected = 1 / (d.get(u, 1.0) * d.get(v, 1.0))
            assert float(result[row, place]) == pytest.approx(expected, rel=1e-3)


def test_predictions_are_on_the_whole_graph(federation: Federation) -> None:
    it, method = begun(federation)
    batch = it.clients.blocks[0].evaluation
    models = random_stack(it)
    without = {**models, EDGES + "s": torch.zeros_like(models[EDGES + "s"])}
    assert torch.equal(method.logits(models, batch), method.logits(without, batch))


def test_a_report_leaves_out_the_smallest_entries() -> None:
    """Of ten entries three go; of entries that are equal but for rounding none."""
    total = torch.tensor([[10.0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [4.0] * 9 + [4 + 1e-6]], dtype=torch.float64)
    r = report(total, torch.tensor([2.0, 0.0]), 1e-5)
    assert r[0].tolist() == [5, 0, 0, 0, 2, 2.5, 3, 3.5, 4, 4.5]
    assert (r[1] > 3.9).all()


def test_the_server_weighs_by_reports_and_scales(federation: Federation) -> None:
    """A client without a report is like itself alone."""
    it, method = begun(federation)
    clients = len(federation)
    rng = torch.Generator().manual_seed(1)
    r = torch.rand(clients, 7, generator=rng)
    r[1] = 0
    scale = torch.tensor([3.0 + client for client in range(clients)])
    model = {name: torch.randn(it.own[name].shape, generator=rng) for name in method.shared()}
    upload = Message(model, {"reference": r, "scale": scale})
    method.aggregate(it.clients.rows, {}, upload)
    unit = r.double().numpy() / np.maximum(np.linalg.norm(r.double().numpy(), axis=1, keepdims=True), 1e-30)
    alike = unit @ unit.T
    alike[1, 1] = 1
    w = np.exp(scale.numpy()[:, None] * alike)
    w /= w.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(method.collaboration, w, rtol=1e-5)
    for name, sent in method.broadcast().model.items():
        np.testing.assert_allclose(
            sent, np.einsum("ij,j...->i...", w, model[name].double().numpy()), rtol=1e-4, atol=1e-5
        )


def test_the_control_sends_plain_averages(federation: Federation) -> None:
    it = play(make_spec("cufl_average", federation, hyper=SHORT), federation)
    for name, sent in it.method.broadcast().model.items():
        mean = it.own[name].double().mean(dim=0)
        assert torch.allclose(sent.double(), mean.expand_as(sent), atol=1e-6)


def scale_by_hand(losses: list[float], start: float) -> float:
    """One client's scale: on after five bests in a row, round after five rounds without one."""
    scale, up, best, good, bad = start, True, math.inf, 0, 0
    for seen in range(len(losses)):
        mean = float(np.mean(losses[max(seen - 4, 0) : seen + 1]))
        good, bad = (good + 1, 0) if mean < best else (0, bad + 1)
        best = min(best, mean)
        if good == 5 or bad == 5:
            up = up if good == 5 else not up
            scale *= 1.25 if up else 0.8
            good, bad = (0, bad) if good == 5 else (good, 0)
        scale = min(max(scale, 0.6 * start), 2 * start)
    return scale


def test_the_scale_follows_the_losses() -> None:
    falling = [2.0 - 0.1 * step for step in range(30)]
    turning = [abs(1.0 - 0.1 * step) + 0.1 for step in range(30)]
    waving = [1 + math.sin(step / 2) / (1 + step) for step in range(30)]
    rising_first = [1.0] + [2.0] * 5 + [0.5 - 0.01 * step for step in range(24)]
    curves = [falling, [1.0] * 30, turning, waving, rising_first]
    state: Stack = unscaled(torch.zeros(5, 1, dtype=torch.float64), 5.0)
    values = set()
    for step in range(30):
        state = scaled(state, torch.tensor([curve[step] for curve in curves]), 3.0, 10.0)
        expected = [scale_by_hand(curve[: step + 1], 5.0) for curve in curves]
        np.testing.assert_allclose(state["value"], expected, rtol=1e-6)
        values |= set(expected)
    assert {10.0, 3.0} <= values


def test_edges_train_from_the_first_round_on_but_not_as_released(federation: Federation) -> None:
    """Most edges join nodes that a pre-trained model of two layers sees as alike."""
    for method, some in (("cufl", True), ("cufl_released", False)):
        it = play(make_spec(method, federation, hyper={"warm_up_epochs": 60}), federation)
        logged = {name: torch.from_numpy(value) for name, value in it.artefacts().items()}
        assert bool((logged["edges_selected"][0] > 0).any()) == some
        assert bool((logged["reference_selected"] > 0).any()) == some


def test_pre_training_is_counted(federation: Federation) -> None:
    """Seven epochs in rounds of three: three models down and two up for every client."""
    it, _ = begun(federation, hyper={"warm_up_epochs": 7})
    model = 4 * sum(int(np.prod(shape)) for shape in it.model.shapes.values()) * len(federation)
    assert (it.traffic.bytes_down, it.traffic.bytes_up) == (3 * model, 2 * model)
    assert it.clients.passes == 7
    none, _ = begun(federation, hyper={"warm_up_epochs": 0})
    assert (none.traffic.bytes_down, none.traffic.bytes_up, none.clients.passes) == (0, 0, 0)


def test_pre_training_leaves_the_model_that_all_begin_with(federation: Federation) -> None:
    it, method = begun(federation)
    before = copied(method.broadcast().model)
    short, _ = begun(federation, hyper={"warm_up_epochs": 0})
    assert furthest(before, copied(short.method.broadcast().model)) == 0
    assert (it.own[MASK + "conv1.weight"] == 1).all()
    assert MASK + "head.weight" not in it.own


def test_a_round_sends_models_reports_and_scales(federation: Federation) -> None:
    it, method = begun(federation, hyper={"warm_up_epochs": 0})
    it.step(0)
    assert method.proxy.edges is not None
    model = sum(int(np.prod(shape)) for shape in it.model.shapes.values())
    assert it.traffic.bytes_up == 4 * len(federation) * (model + method.proxy.edges.shape[1] // 2 + 1)
    assert it.traffic.bytes_down == 4 * len(federation) * model
