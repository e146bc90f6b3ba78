"""AdaFGL: what clients learn of their graphs, its two steps and its branches, against explicit matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from plain_gcn import normalised
from toy_federations import copied, furthest, make_spec

from bench.engine.run import Run
from bench.engine.stacks import part
from bench.federation.types import TRAIN, Federation
from bench.methods._homophily import (
    HOPS,
    Relations,
    cosine,
    perceptron,
    relations,
    reliability,
    signed,
)
from bench.methods.adafgl import PERSONAL, AdaFGL
from bench.nn.gcn import normalised_adjacency


def whole(federation: Federation, **settings: object) -> tuple[Run, AdaFGL]:
    it = Run(make_spec("adafgl", federation, **settings), federation)  # type: ignore[arg-type]
    assert isinstance(it.method, AdaFGL)
    return it, it.method


def known_of(it: Run, share: float) -> Relations:
    batch = it.clients.blocks[0].evaluation
    logits = 3 * torch.randn(*batch.labels.shape, 3, generator=torch.Generator().manual_seed(1))
    return relations(batch, logits.softmax(dim=2), share)


def test_like_predictions_are_joined(federation: Federation) -> None:
    """Symmetric, without loops and padding; every pair by its own cosine."""
    it, _ = whole(federation)
    known = known_of(it, 0.3)
    for row, client in enumerate(federation.clients):
        n = len(client.ids)
        q = known.predictions[row, :n].double().numpy()
        lengths = np.linalg.norm(q, axis=1)
        alike = (q @ q.T / np.outer(lengths, lengths) > 0.999) & ~np.eye(n, dtype=bool)
        assert np.array_equal(known.similar[row, :n, :n].numpy() > 0, alike)
        assert not known.similar[row, n:].any()
        a = np.zeros((n, n))
        a[client.edges[0], client.edges[1]] = 1  # type: ignore[index]
        mixture = 0.3 * a + 0.7 * alike + np.eye(n)
        expected = normalised(torch.from_numpy(mixture)).float()
        torch.testing.assert_close(known.propagation[row, :n, :n], expected, rtol=0, atol=1e-5)
    assert known.similar.any()


def test_reliability_by_plain_propagation(federation: Federation) -> None:
    it, _ = whole(federation)
    result = reliability(it.clients.blocks[0].evaluation)
    for row, client in enumerate(federation.clients):
        a = normalised_adjacency(client.edges, len(client.ids)).toarray().astype(np.float64)  # type: ignore[arg-type]
        training = np.flatnonzero(client.roles == TRAIN)
        seen: dict[int, int] = {}
        asked = []
        for v in training:
            label = int(client.labels[v])
            if seen.get(label, 0) % 2:
                asked.append(v)
            seen[label] = seen.get(label, 0) + 1
        given = [v for v in training if v not in asked]
        start = np.full((len(client.ids), 3), 1 / 3)
        start[given] = np.eye(3)[client.labels[given]]
        y = start.copy()
        for _ in range(10):
            y = a @ y / 2 + start / 2
            y[given] += start[given]
        right = [y[v].argmax() == client.labels[v] for v in asked]
        assert float(result[row]) == pytest.approx(np.mean(right) if right else 0.0)


def test_the_first_step_is_fedavg_and_the_second_sends_nothing(federation: Federation) -> None:
    it, method = whole(federation, rounds=4, initial="common")
    average = Run(make_spec("fedavg", federation, rounds=4, initial="common"), federation)
    model = sum(int(np.prod(shape)) for shape in method.task.shapes.values()) * 4 * len(federation)
    for one in (it, average):
        one.warm_up()
    branches = copied(part(PERSONAL, it.own))
    for index in range(2):
        it.step(index)
        average.step(index)
        assert furthest({name: it.own[name] for name in average.own}, average.own) == 0
        assert furthest(part(PERSONAL, it.own), branches) == 0
    assert furthest(method.model, average.method.model) == 0  # type: ignore[attr-defined]
    ended = copied(method.model)
    for index in (2, 3):
        it.step(index)
    assert furthest(method.model, ended) == 0
    assert furthest(part(PERSONAL, it.own), branches) > 1e-3
    assert (it.traffic.bytes_up, it.traffic.bytes_down) == (2 * model, 3 * model)


def test_a_perceptron_on_all_powers_is_one_on_the_written_out_features(tiny: Federation) -> None:
    it, _ = whole(tiny)
    batch = it.clients.blocks[0].evaluation
    known = relations(batch, torch.ones(*batch.labels.shape, 2) / 2, 0.5)
    w = {name: torch.randn(value.shape) for name, value in part(PERSONAL, it.own).items()}
    result = perceptron(w, "y3", batch, known.propagation)
    for row, client in enumerate(tiny.clients):
        n = len(client.ids)
        p, x = known.propagation[row, :n, :n], torch.from_numpy(client.dense())
        powers = torch.cat([torch.linalg.matrix_power(p, hop) @ x for hop in range(HOPS)], dim=1)
        blocks = w["y3.0.weight"][row].chunk(HOPS, dim=1)
        hidden = torch.relu(powers @ torch.cat(blocks) + w["y3.0.bias"][row])
        hidden = torch.relu(hidden @ w["y3.1.weight"][row] + w["y3.1.bias"][row])
        expected = hidden @ w["y3.2.weight"][row] + w["y3.2.bias"][row]
        torch.testing.assert_close(result[row, :n], expected, rtol=1e-3, atol=1e-3)


def test_signed_relations_by_hand() -> None:
    """The mean over four pairs is 0.25; the largest deviation, 0.75, becomes 1. Padding stays 0."""
    m = torch.tensor([[[0.0, 1.0, 7.0], [0.0, 0.0, 7.0], [7.0, 7.0, 7.0]]])
    result = signed(m, torch.tensor([[1.0, 1.0, 0.0]]))
    expected = torch.tensor([[[1.0, 1.0, 0.0], [-1 / 3, 1.0, 0.0], [0.0, 0.0, 0.0]]])
    torch.testing.assert_close(result, expected)


def test_homophily_chooses_between_the_branches(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    it, method = whole(federation, hyper={"choice": "threshold"})
    it.warm_up()
    it.method.broadcast()
    batch = it.clients.blocks[0].evaluation
    method.round = method.first_alone
    known = batch.cached(method.related)
    w = part(PERSONAL, it.own)
    y1, *others = (y.softmax(dim=2) for y in method.outputs(w, batch, known))
    homophilic = (y1 + known.predictions.softmax(dim=2)) / 2
    heterophilic = sum(others) / 3
    for value, choice, expected in (
        (0.95, "threshold", homophilic),
        (0.85, "threshold", heterophilic),
        (0.85, "blend", 0.85 * homophilic + 0.15 * heterophilic),
    ):
        reliable = torch.full_like(known.reliability, value)
        stated = known._replace(reliability=reliable)
        monkeypatch.setattr(batch, "cached", lambda build, stated=stated: stated)
        method.hyper = method.hyper.model_copy(update={"choice": choice})
        torch.testing.assert_close(method.logits(it.own, batch), expected)


def test_cosines_have_no_diagonal_and_bear_zero_rows() -> None:
    rows = torch.tensor([[[3.0, 4.0], [0.0, 0.0], [4.0, 3.0]]])
    expected = torch.zeros(1, 3, 3)
    expected[0, 0, 2] = expected[0, 2, 0] = 24 / 25
    torch.testing.assert_close(cosine(rows), expected)
