"""How a run ends, what its result holds, and what it costs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from toy_federations import make_spec

from bench.engine.execute import run
from bench.engine.method import Clients, Message, Method, Stack, Update
from bench.engine.methods import METHODS
from bench.errors import NotApplicableError, RequestError
from bench.federation.types import Federation


class Poisoned(Method):
    """Sends a model that is not a number from round 2 on."""

    name = "poisoned"
    title = "Poisoned"

    def broadcast(self) -> Message:
        value = float("nan") if self.round >= 2 else 0.0
        return Message({"head.bias": torch.full((self.task.clients, *self.task.shapes["head.bias"]), value)})


class Refuses(Method):
    """Cannot do what is asked."""

    name = "refuses"
    title = "Refuses"

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        raise NotApplicableError("refuses to train")


class Tiny(Method):
    """Keeps what a product of small numbers is during a run."""

    name = "tiny"
    title = "Tiny"

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        self.record(product=torch.tensor([1e-38]) * 0.1)


class Keeps(Method):
    """Trains nothing and keeps an array with the run."""

    name = "keeps"
    title = "Keeps"
    trains = False

    def setup_server(self) -> None:
        self.record(collaboration=torch.eye(self.task.clients))

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        return Update(received)


@pytest.fixture
def with_test_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**METHODS.all(), **{kind.name: kind for kind in (Poisoned, Refuses, Tiny, Keeps)}}
    monkeypatch.setattr(METHODS, "all", lambda: known)


@pytest.mark.usefixtures("with_test_methods")
def test_a_diverged_run_names_the_round_and_has_no_numbers(federation: Federation) -> None:
    result = run(make_spec("poisoned", federation, rounds=5), federation)
    assert result.state == "diverged"
    assert "round 2" in result.reason
    assert not result.correct
    assert not result.samples
    assert result.partition_hash == federation.hash


def test_a_run_whose_training_explodes_ends_as_diverged(federation: Federation) -> None:
    spec = make_spec("fedavg", federation, rounds=5, client={"learning_rate": 1e30})
    result = run(spec, federation)
    assert result.state == "diverged"
    assert "round 0" in result.reason
    warm = make_spec("fedsheafhn", federation, client={"learning_rate": 1e30})
    assert run(warm, federation).reason.endswith("during warm-up")


def test_the_printed_sign_diverges_and_the_other_does_not(federation: Federation) -> None:
    """A descent along trained minus received runs away from what was trained (facts 3.7.3, T4)."""
    hyper = {"hypernetwork_learning_rate": 0.02, "sheaf_learning_rate": 0.02, "warm_up_epochs": 5}
    long: dict[str, Any] = {"rounds": 60, "local_epochs": 1, "client": {"hidden": 8, "learning_rate": 0.02}}
    printed = run(make_spec("fedsheafhn_papersign", federation, hyper=hyper, **long), federation)
    assert printed.state == "diverged"
    assert re.search(r"in round \d+$", printed.reason)
    meant = run(make_spec("fedsheafhn", federation, hyper=hyper, **long), federation)
    assert meant.state == "done"
    assert meant.loss[-10:].mean() < meant.loss[:10].mean()


def test_a_method_on_the_wrong_family_is_not_applicable(federation: Federation) -> None:
    images = replace(federation, family="images")
    result = run(make_spec("fedsheafhn", federation), images)
    assert result.state == "not_applicable"
    assert "graph" in result.reason
    assert "images" in result.reason


@pytest.mark.parametrize("method", ["flow", "fggp"])
def test_a_method_for_another_client_model_is_not_applicable(method: str, federation: Federation) -> None:
    result = run(make_spec(method, federation, client={"model": "sage"}), federation)
    assert result.state == "not_applicable"
    assert {method, "gcn", "sage"} <= set(re.findall(r"\w+", result.reason))


@pytest.mark.usefixtures("with_test_methods")
def test_a_method_that_refuses_is_not_applicable(federation: Federation) -> None:
    result = run(make_spec("refuses", federation), federation)
    assert result.state == "not_applicable"
    assert "refuses" in result.reason


def test_other_errors_are_raised(federation: Federation) -> None:
    with pytest.raises(RequestError, match="gcn"):
        run(make_spec("fedavg", federation, client={"model": "gnc"}), federation)
    with pytest.raises(RequestError, match="cnn"):
        run(make_spec("fedavg", federation, client={"model": "cnn"}), federation)


def test_mini_batches_of_a_graph_are_refused_in_one_line(federation: Federation) -> None:
    for dropout in (0.0, 0.5):
        spec = make_spec("fedavg", federation, client={"batch_size": 4, "dropout": dropout})
        with pytest.raises(RequestError) as caught:
            run(spec, federation)
        assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("with_test_methods")
def test_what_a_result_holds(federation: Federation) -> None:
    result = run(make_spec("fedavg", federation, rounds=4), federation, block_size=2)
    assert result.state == "done"
    assert set(result.correct) == {(s, t) for s in ("received", "trained") for t in ("train", "val", "test")}
    for (_, split), counts in result.correct.items():
        assert counts.shape == (4, len(federation))
        assert counts.dtype == np.int32
        assert (counts >= 0).all()
        assert (counts <= result.samples[split]).all()
    for role, split in enumerate(("train", "val", "test")):
        assert result.samples[split].tolist() == [client.count(role) for client in federation.clients]
    assert result.loss.shape == (4,)
    assert np.isfinite(result.loss).all()
    parts = [result.seconds[part] for part in ("client", "server", "evaluation")]
    assert all(seconds > 0 for seconds in parts)
    assert sum(parts) <= result.seconds["total"]
    assert result.peak_memory > 2**20
    assert run(make_spec("keeps", federation), federation).artefacts["collaboration"].tolist() == (
        np.eye(len(federation)).tolist()
    )


@pytest.mark.usefixtures("with_test_methods")
@pytest.mark.parametrize("before", [False, True])
def test_denormals_are_zero_during_a_run_and_as_before_after_it(before: bool, federation: Federation) -> None:
    torch.set_flush_denormal(before)
    try:
        result = run(make_spec("tiny", federation, rounds=1), federation)
        after = bool(torch.tensor([1e-38]) * 0.1 == 0)
    finally:
        torch.set_flush_denormal(False)
    assert result.artefacts["product"] == 0
    assert after == before
