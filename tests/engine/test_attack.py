"""Malicious clients: who they are, what the server gets of them, and what nothing else notices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from toy_federations import make_spec

from bench.engine.attack import Attacker
from bench.engine.execute import run
from bench.engine.method import Message
from bench.engine.run import Run
from bench.federation.types import SPLITS, Federation
from bench.resolve import resolve
from bench.spec import Attack, RunSpec


def test_the_share_of_malicious_clients_is_that_of_the_spec() -> None:
    for ratio, count in ((0.2, 4), (0.4, 8), (0.8, 16)):
        malicious = Attacker(Attack(ratio=ratio), seed=3, clients=20).malicious
        assert malicious.sum() == count
        assert np.array_equal(malicious, Attacker(Attack(ratio=ratio), 3, 20).malicious)
    chosen = {tuple(Attacker(Attack(ratio=0.2), seed, 20).malicious) for seed in range(5)}
    assert len(chosen) > 1  # drawn from the run's seed


def reports(values: torch.Tensor) -> Message:
    """What clients upload that report these values beside no model."""
    return Message(extras={"report": values})


def test_same_value_and_gaussian_replace_the_reports_of_malicious_clients_only() -> None:
    honest = torch.arange(40 * 3000, dtype=torch.float32).view(40, 3000) / 1000
    counts = 1 + torch.arange(40 * 3, dtype=torch.float32).view(40, 3)
    for kind in ("same", "gaussian"):
        attacker = Attacker(Attack(kind=kind, ratio=0.5, tau=5.0), seed=0, clients=40)
        everybody = torch.arange(40)
        sent = attacker.replace(reports(honest), everybody, round=2).extras["report"]
        bad = torch.from_numpy(attacker.malicious)
        assert torch.equal(sent[~bad], honest[~bad])
        spread = sent[bad].std(dim=1)
        if kind == "same":
            assert torch.equal(spread, torch.zeros(20))
            # 20 draws of N(0, 25): their root mean square is within 5 (1 ± 0.6) but for one in 10^4
            assert 2.0 < sent[bad][:, 0].square().mean().sqrt() < 8.0
            assert len(sent[bad][:, 0].unique()) == 20
        else:
            assert torch.allclose(spread, torch.full((20,), 5.0), atol=0.4)
        again = attacker.replace(reports(honest), everybody, round=3).extras["report"]
        assert not torch.equal(again[bad], sent[bad])  # drawn anew for every message
        both = Message({"head.bias": counts}, {"counts": counts, "report": honest})
        replaced = attacker.replace(both, everybody, round=2)
        assert replaced.model["head.bias"] is counts
        for name, value in both.extras.items():
            assert torch.equal(replaced.extras[name][~bad], value[~bad])
            assert not (replaced.extras[name][bad] == value[bad]).any(), name
    assert torch.equal(honest[0, :3], torch.tensor([0.0, 0.001, 0.002]))  # the clients' own is untouched


def attacked(method: str, federation: Federation, **attack: object) -> RunSpec:
    spec = make_spec(method, federation, client={"hidden": 8})
    return spec.with_settings({f"attack.{name}": value for name, value in attack.items()})


def test_the_server_works_with_what_it_gets(federation: Federation) -> None:
    """One scalar in every place: malicious embeddings are collinear, FED-PUB's cosines 1 or -1."""
    it = Run(attacked("fedpub", federation, kind="same", ratio=0.5, tau=5.0), federation)
    it.warm_up()
    it.step(0)
    matrix = it.artefacts()["collaboration"]
    first, second = np.flatnonzero(it.attacker.malicious)
    ratio = matrix[first, first] / matrix[first, second]
    opposite = np.exp(2 * it.method.hyper.tau)
    assert ratio == pytest.approx(1.0, rel=1e-4) or ratio == pytest.approx(opposite, rel=1e-3)


def test_the_first_embeddings_are_attacked_too(federation: Federation) -> None:
    """FedSheafHN's clients report after their warm-up, before there is a round."""
    spec = attacked("fedsheafhn", federation, kind="gaussian", ratio=0.5, tau=5.0)
    spec = spec.with_settings({"method.warm_up_epochs": 2})
    honest, it = Run(spec.model_copy(update={"attack": None}), federation), Run(spec, federation)
    honest.warm_up()
    it.warm_up()
    attacker = Attacker(spec.attack, spec.seed, len(federation))
    assert 0 < attacker.malicious.sum() < len(federation)
    replaced = attacker.replace(reports(honest.method.x0), torch.arange(len(federation)), -1)
    assert torch.equal(it.method.x0, replaced.extras["report"])
    assert not torch.equal(it.method.x0, honest.method.x0)


def test_an_attack_keeps_who_was_malicious_and_leaves_models_alone(federation: Federation) -> None:
    spec = attacked("fedpub", federation, kind="gaussian", ratio=0.25, tau=5.0)
    result, usual = (run(one, federation) for one in (spec, spec.model_copy(update={"attack": None})))
    assert result.artefacts["malicious"].sum() == 1
    assert "malicious" not in usual.artefacts
    for split in SPLITS:  # before the first reports are used nothing differs
        assert np.array_equal(result.correct["trained", split][0], usual.correct["trained", split][0])


def test_methods_without_reports_cannot_be_attacked(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_hot = attacked("fedsheafhn", federation, ratio=0.5)
    one_hot = one_hot.with_settings({"method.warm_up_epochs": 1, "method.inputs": "one-hot"})
    step, rounds = Run.step, []

    def counted(it: Run, round: int) -> None:
        rounds.append(round)
        step(it, round)

    monkeypatch.setattr(Run, "step", counted)
    for refused in (one_hot, attacked("fedavg", federation, ratio=0.5)):
        rounds.clear()
        result = run(refused, federation)
        assert (result.state, result.correct) == ("not_applicable", {})
        assert "attack" in result.reason
        assert rounds == [0]  # known by then: what a method sends is seen, not asked


def test_specs_without_attack_keep_their_canonical_form() -> None:
    plain = resolve("cora", "non-overlapping", 10, "fedpub", 0)
    assert "attack" not in plain.canonical()
    assert "newcomers" not in plain.canonical()
    zero = resolve("cora", "non-overlapping", 10, "fedpub", 0, {"attack.ratio": 0, "attack.tau": 20.0})
    assert zero.hash == plain.hash
