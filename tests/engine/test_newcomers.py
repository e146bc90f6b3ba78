"""Clients that join after training: whose results count, what they are sent, and what stays frozen."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from toy_federations import copied, furthest, make_spec, permuted

from bench import streams
from bench.contract.toys import finish
from bench.engine.execute import run
from bench.engine.method import Clients, Message, Stack, Update
from bench.engine.methods import METHODS
from bench.engine.newcomers import TRAINED_CLIENTS, arrive, held_out, part
from bench.engine.run import Run
from bench.federation.types import SPLITS, TEST, Federation
from bench.methods.fedavg import FedAvg
from bench.spec import Newcomers, RunSpec

N = 5
"""Clients of the federation."""


def joining(method: str, federation: Federation, epochs: int = 4, **hyper: object) -> RunSpec:
    spec = make_spec(method, federation, client={"hidden": 8}, rounds=3, hyper=hyper)
    return spec.model_copy(update={"newcomers": Newcomers(ratio=0.4, epochs=epochs)})


def over(spec: RunSpec, federation: Federation) -> Run:
    return finish(Run(spec, part(federation, ~held_out(spec, N))))


class TwoPhases(FedAvg):
    """Trains the head for one epoch, then everything for longer than newcomers are to."""

    name = "two_phases"
    onboard = FedAvg.onboard

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Head, then all."""
        head = clients.fit(received, epochs=1, trainable=self.task.head)
        return self.upload(clients.fit(head, epochs=40))


def test_newcomers_of_a_method_of_several_phases_are_judged_when_all_are_over(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty epochs fit a dozen training nodes; one epoch of the head does not."""
    kinds = METHODS.all() | {"two_phases": TwoPhases}
    monkeypatch.setattr(METHODS, "all", lambda: kinds)
    spec = joining("fedavg", federation)
    longer = run(spec.model_copy(update={"newcomers": Newcomers(ratio=0.4, epochs=40)}), federation)
    result = run(spec.model_copy(update={"method": "two_phases"}), federation)
    assert result.correct["trained", "train"].shape == (1, 5)
    late = held_out(spec, N)
    fitted = longer.correct["trained", "train"][-1, late]
    assert (fitted > longer.correct["received", "train"][0, late]).any()
    assert result.correct["trained", "train"][0, late].sum() >= fitted.sum()


@pytest.mark.parametrize("method", ["local", "fedavg", "fedper", "fedsheafhn"])
def test_results_are_those_of_the_newcomers(federation: Federation, method: str) -> None:
    spec = joining(method, federation)
    result = run(spec, federation)
    late = held_out(spec, N)
    assert late.sum() == 2
    assert result.correct["received", "test"].shape == (1, 5)
    assert result.correct["trained", "test"].shape == (4, 5)
    for split in SPLITS:
        assert not result.samples[split][~late].any()
        for stage in ("received", "trained"):
            counts = result.correct[stage, split]
            assert not counts[:, ~late].any()
            assert (counts <= result.samples[split]).all()
    for matrices in result.confusion.values():
        assert np.array_equal(matrices.sum(axis=(1, 2)), result.samples["test"])
    tests = [client.count(TEST) for client in federation.clients]
    assert np.array_equal(result.samples["test"], np.where(late, tests, 0))


def test_what_the_others_scored_is_kept_as_if_nobody_had_joined(federation: Federation) -> None:
    spec = joining("fedavg", federation)
    there = part(federation, ~held_out(spec, N))
    alone = run(spec.model_copy(update={"newcomers": None}), there)
    kept = run(spec, federation).artefacts[TRAINED_CLIENTS]
    assert alone.samples["test"].all()
    assert kept == pytest.approx(alone.correct["trained", "test"][-1] / alone.samples["test"])
    assert kept.any()
    assert TRAINED_CLIENTS not in alone.artefacts


def test_the_average_greets_newcomers_of_fedavg_and_does_not_learn_from_them(federation: Federation) -> None:
    """Zero-shot predictions of the last average, counted here by hand."""
    spec = joining("fedavg", federation)
    late = held_out(spec, N)
    it = over(spec, federation)
    before = copied(it.method.model)
    correct = arrive(it, federation, late).correct()
    assert furthest(it.method.model, before) == 0
    newcomers = part(federation, late).clients
    inputs = it.model.collate(newcomers, torch.device("cpu"))
    stack = {name: value.expand(2, *value.shape) for name, value in before.items()}
    predicted = it.model.forward(stack, inputs, None).logits.argmax(dim=2).numpy()
    by_hand = [
        int(((predicted[row, : len(client.ids)] == client.labels) & (client.roles == TEST)).sum())
        for row, client in enumerate(newcomers)
    ]
    assert correct["received", "test"][0, late].tolist() == by_hand


def test_newcomers_of_local_train_as_if_nobody_else_were_there(federation: Federation) -> None:
    """They never meet the others: other data of the known clients change nothing."""
    spec = joining("local", federation)
    late = held_out(spec, N)
    first = run(spec, federation)
    mixed = np.arange(len(federation))
    mixed[~late] = mixed[~late][::-1]
    second = run(spec, permuted(federation, mixed.tolist()))
    for key, counts in first.correct.items():
        assert np.array_equal(counts, second.correct[key])


def test_fedsheafhn_generates_newcomers_backbones_among_all_clients(federation: Federation) -> None:
    spec = joining("fedsheafhn", federation, warm_up_epochs=2)
    it = over(spec, federation)
    method = it.method
    weights = [parameter.clone() for parameter in (*method.theta, *method.phi)]
    reports = torch.randn(2, method.x0.shape[1], generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        sent = method.onboard(it.clients, Message(extras={"embedding": reports})).model
        everybody = torch.cat([method.x0, reports])
        diffused = method.sheaf(everybody, 1 - torch.eye(5), None)
        x = method.attention(diffused)
        for layer in method.network.body:
            x = torch.relu(layer(x))
        for name, value in sent.items():
            layer = method.network.out[name.replace(".", "_")]
            expected = (x @ layer.weight.t() + layer.bias)[3:].view(2, *value.shape[1:])
            assert torch.allclose(value, expected, atol=1e-5)
    assert set(sent) == set(it.method.task.backbone)
    arrive(it, federation, held_out(spec, N))
    for parameter, before in zip((*method.theta, *method.phi), weights, strict=True):
        assert torch.equal(parameter, before)


def test_newcomers_train_as_the_method_does(federation: Federation) -> None:
    """FedProx without its term is FedAvg; with it, newcomers are held where the average is."""

    def trained(method: str, **hyper: object) -> np.ndarray:
        return run(joining(method, federation, 12, **hyper), federation).correct["trained", "train"]

    average = trained("fedavg")
    assert np.array_equal(trained("fedprox", mu=0.0), average)
    assert trained("fedprox", mu=1e4)[-1].sum() < average[-1].sum()


@pytest.mark.parametrize(
    ("method", "hyper", "reason"),
    [
        ("fedsheafhn_released", {"warm_up_epochs": 1}, "matrix of the clients"),
        ("fedsheafhn", {"warm_up_epochs": 1, "inputs": "one-hot"}, "by number"),
        ("pfedhn", {}, "never seen"),
        ("flow", {}, "never seen"),
    ],
)
def test_servers_that_know_their_clients_cannot_serve_new_ones(
    federation: Federation,
    method: str,
    hyper: dict[str, object],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Run, "step", lambda it, round: pytest.fail("trained before it was refused"))
    result = run(joining(method, federation, **hyper), federation)
    assert result.state == "not_applicable"
    assert reason in result.reason


def test_newcomers_draw_from_streams_of_their_own(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three known clients are numbered 0 to 2, so the two newcomers are 3 and 4."""
    spec = joining("local", federation)
    it, late = over(spec, federation), held_out(spec, N)
    drawn: set[tuple[str | int, ...]] = set()
    generator = streams.generator

    def recorded(seed: int, *key: str | int) -> np.random.Generator:
        drawn.add(key[:2])
        return generator(seed, *key)

    monkeypatch.setattr(streams, "generator", recorded)
    arrive(it, federation, late)
    assert drawn == {("initial", 3), ("initial", 4), ("dropout", 3), ("dropout", 4)}
