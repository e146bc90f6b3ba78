"""One trial in this process, on toy federations."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench.contract.toys import linked, make_spec, play, random_federation
from bench.engine.evaluation import Evaluator
from bench.engine.run import Run
from bench.federation.types import TEST, VALIDATION, Federation
from bench.spec import RunSpec
from bench.tune import trial
from bench.tune.trial import TrialOrder, TrialResult, execute

FEDERATION = random_federation(sizes=(20, 31, 26), seed=3)
ROUNDS = 4


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    use(monkeypatch, FEDERATION)
    yield
    trial._federation.cache_clear()


def use(monkeypatch: pytest.MonkeyPatch, federation: Federation) -> None:
    """Whatever is asked for is this federation, with all its labels."""
    monkeypatch.setattr("bench.federation.build.build", lambda *key, roots: federation)
    trial._federation.cache_clear()


def specs(method: str, **protocol: Any) -> list[RunSpec]:
    hyper = {"warm_up_epochs": 5} if method == "fedsheafhn" else {}
    return [
        make_spec(method, FEDERATION, seed=seed, hyper=hyper, rounds=ROUNDS, **protocol)
        for seed in (1000, 1001)
    ]


def order(some: list[RunSpec], **changes: Any) -> TrialOrder:
    first, *others = (spec.canonical() for spec in some)
    whole = {"thresholds": (0.0,) * ROUNDS, "allowance": 1e9, **changes}
    return TrialOrder(first, (), "cpu", 1, others=tuple(others), **whole)


def played(some: RunSpec) -> list[float]:
    """Best mean validation accuracy so far of the trained models, from a run of its own."""
    it = play(some, FEDERATION)
    best, curve = 0.0, []
    rows = it.counts["trained"]
    for row in rows:
        each = []
        for client, member in enumerate(FEDERATION.clients):
            samples = int((member.roles == VALIDATION).sum())
            if samples:
                each.append(row[VALIDATION, client] / samples)
        best = max(best, sum(each) / len(each))
        curve.append(best)
    step = len(rows) // some.protocol.rounds
    return curve[step - 1 :: step]


@pytest.mark.parametrize("method", ["fedavg", "fedpub"])
def test_the_curve_is_the_mean_over_seeds_of_the_best_round_so_far(method: str) -> None:
    some = specs(method)
    result = execute(order(some))
    assert isinstance(result, TrialResult)
    expected = np.mean([played(spec) for spec in some], axis=0)
    np.testing.assert_allclose(result.curve, expected, rtol=1e-12)
    assert (result.state, result.stopped) == ("done", "")
    assert not result.correct
    assert not result.samples, "no counts leave the worker"


def test_rounds_that_are_looked_at_after_every_epoch() -> None:
    some = specs("local", evaluate="epoch")
    result = execute(order(some))
    assert isinstance(result, TrialResult)
    assert len(result.curve) == ROUNDS
    np.testing.assert_allclose(result.curve, np.mean([played(spec) for spec in some], axis=0))


@pytest.mark.parametrize(
    ("method", "each"),
    [("local", ROUNDS * 2), ("fedprox", ROUNDS * 2), ("fedsheafhn", 5 + ROUNDS * 2), ("flow", ROUNDS * 2)],
)
def test_client_epochs_are_counted(method: str, each: int) -> None:
    result = execute(order(specs(method)))
    assert isinstance(result, TrialResult)
    assert result.client_epochs == pytest.approx(2 * each, abs=1e-9)


def test_what_flow_does_with_all_nodes_costs_twice_as_much() -> None:
    some = [spec.model_copy(update={"hyper": {"data": "all"}}) for spec in specs("flow")]
    result = execute(order(some))
    assert isinstance(result, TrialResult)
    assert result.client_epochs == 2 * 2 * ROUNDS * 2


@pytest.mark.parametrize("method", ["fedavg", "fedsheafhn", "fedpub"])
def test_test_labels_are_never_read(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = execute(order(specs(method)))
    rng = np.random.default_rng(0)
    poisoned = tuple(
        replace(
            client,
            labels=np.where(
                client.roles == TEST, rng.permutation(client.labels + 1) % FEDERATION.classes, client.labels
            ),
        )
        for client in FEDERATION.clients
    )
    use(monkeypatch, replace(FEDERATION, clients=poisoned))
    assert any((a.labels != b.labels).any() for a, b in zip(poisoned, FEDERATION.clients, strict=True))
    other = execute(order(specs(method)))
    assert isinstance(honest, TrialResult)
    assert isinstance(other, TrialResult)
    assert honest.curve == other.curve


def test_test_counts_are_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = execute(order(specs("fedavg")))
    count = Evaluator.block

    def poisoned(self: Evaluator, *arguments: Any) -> Any:
        counts = count(self, *arguments)
        counts[TEST] = 1_000_000 + counts[TEST]
        return counts

    monkeypatch.setattr(Evaluator, "block", poisoned)
    other = execute(order(specs("fedavg")))
    assert isinstance(honest, TrialResult)
    assert isinstance(other, TrialResult)
    assert honest.curve == other.curve


@pytest.mark.parametrize("federation", [FEDERATION, linked(FEDERATION)], ids=["graph", "linked"])
def test_a_run_under_trial_has_no_test_label(federation: Federation, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, federation)
    given: list[Federation] = []

    class Seen(Run):
        def __init__(self, spec: RunSpec, federation: Federation, *others: Any, **named: Any) -> None:
            given.append(federation)
            super().__init__(spec, federation, *others, **named)

    monkeypatch.setattr("bench.engine.run.Run", Seen)
    execute(order(specs("fedavg")))
    assert len(given) == 2, "a run a seed"
    for each in given:
        assert len(each) == len(federation)
        for hidden, client in zip(each.clients, federation.clients, strict=True):
            test = client.roles == TEST
            assert test.any()
            assert (hidden.labels[test] == -1).all()
            assert (hidden.labels[~test] == client.labels[~test]).all()


def test_a_trial_stops_below_its_threshold() -> None:
    whole = execute(order(specs("fedavg")))
    assert isinstance(whole, TrialResult)
    at = (0.0, whole.curve[1], whole.curve[2] + 1e-9, 0.0)
    result = execute(order(specs("fedavg"), thresholds=at))
    assert isinstance(result, TrialResult)
    assert result.stopped == "pruned"
    assert result.curve == whole.curve[:3], "equal is not below"
    assert result.client_epochs == 2 * 3 * 2


@pytest.mark.parametrize(
    ("method", "allowance", "rounds", "used"),
    [
        ("local", 8.0, 2, 8.0),  # two rounds of two epochs of two runs
        ("local", 11.0, 2, 10.0),  # the first run begins a third round
        ("local", 3.0, 0, 2.0),
        ("fedsheafhn", 9.0, 0, 5.0),  # one warm-up of five
        ("fedsheafhn", 14.0, 1, 14.0),
        ("fedsheafhn", 4.0, 0, 0.0),
    ],
)
def test_a_trial_never_uses_more_than_it_may(method: str, allowance: float, rounds: int, used: float) -> None:
    whole = execute(order(specs(method)))
    result = execute(order(specs(method), allowance=allowance))
    assert isinstance(whole, TrialResult)
    assert isinstance(result, TrialResult)
    assert (result.stopped, result.client_epochs) == ("cut", used)
    assert result.curve == whole.curve[:rounds]


def test_a_configuration_that_diverges_says_so() -> None:
    wild = [
        make_spec(
            "local", FEDERATION, seed=seed, rounds=ROUNDS, client={"optimizer": "sgd", "learning_rate": 1e30}
        )
        for seed in (1000, 1001)
    ]
    result = execute(order(wild))
    assert isinstance(result, TrialResult)
    assert result.state == "diverged"
    assert result.reason.endswith(f"after {len(result.curve)} rounds")
