"""A trial's run: no test item is in it or decides it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_federations import linked, make_spec, play, random_federation

from bench.engine.execute import run as engine_run
from bench.engine.result import RunResult
from bench.federation.types import TEST, VALIDATION, Federation
from bench.runner import execution
from bench.runner.execution import CLIENT_EPOCHS, execute_trial
from bench.runner.workers import Order
from bench.spec import RunSpec

FEDERATION = random_federation()
ROUNDS = 4


def spec_of(method: str, **hyper: Any) -> RunSpec:
    return make_spec(method, FEDERATION, seed=1000, hyper=hyper, rounds=ROUNDS)


def run(spec: RunSpec, federation: Federation = FEDERATION, **options: Any) -> RunResult:
    """A trial's run on a federation, with all its labels, whatever its spec asks for."""

    def build(*key: Any, roots: tuple[Path, ...]) -> Federation:
        return federation

    make_run = partial(execution.execute, build=build, **options)
    return execute_trial(Order(spec, (), "cpu", 1), make_run)


@pytest.mark.parametrize("method", ["fedavg", "fedpub"])
def test_the_score_is_the_validation_accuracy_of_the_best_round(method: str) -> None:
    result = run(spec_of(method))
    counts = play(spec_of(method), FEDERATION).correct()["trained", "val"]
    samples = [int((client.roles == VALIDATION).sum()) for client in FEDERATION.clients]
    np.testing.assert_array_equal(result.correct["trained", "val"], counts)
    np.testing.assert_array_equal(result.samples["val"], samples)
    assert result.state == "searched"


@pytest.mark.parametrize(
    ("method", "hyper", "used"),
    [("fedsheafhn", {"warm_up_epochs": 5}, 5 + ROUNDS * 2), ("flow", {"data": "all"}, 2 * ROUNDS * 2)],
)
def test_client_epochs_are_counted(method: str, hyper: dict[str, Any], used: int) -> None:
    result = run(spec_of(method, **hyper))
    assert result.artefacts == {CLIENT_EPOCHS: pytest.approx(used, abs=1e-9)}


def test_a_run_that_diverged_says_what_it_used() -> None:
    client = {"optimizer": "sgd", "learning_rate": 1e30}
    result = run(make_spec("local", FEDERATION, seed=1000, rounds=ROUNDS, client=client))
    assert result.state == "diverged"
    assert 0 < float(result.artefacts[CLIENT_EPOCHS]) <= ROUNDS * 2


@pytest.mark.parametrize("federation", [FEDERATION, linked(FEDERATION)], ids=["graph", "linked"])
def test_no_test_item_reaches_the_engine_or_the_outcome(federation: Federation) -> None:
    given: list[Federation] = []

    def seen(spec: RunSpec, federation: Federation, *rest: Any) -> RunResult:
        given.append(federation)
        return engine_run(spec, federation, *rest)

    result = run(spec_of("fedavg"), federation=federation, run=seen)
    (hidden,) = given
    assert hidden.hash == federation.hash
    for mine, client in zip(hidden.clients, federation.clients, strict=True):
        test = client.roles == TEST
        assert test.any()
        assert (mine.labels[test] == -1).all()
        assert (mine.labels[~test] == client.labels[~test]).all()
    assert not result.samples["test"].any()
    assert not any(counts.any() for (_, split), counts in result.correct.items() if split == "test")
