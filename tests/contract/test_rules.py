"""The contract notices what it is there to notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.contract.checks import check
from bench.contract.rules import (
    Broken,
    a_run_goes_on_where_it_was_saved,
    absent_clients_keep_what_they_have,
    global_generators_are_left_alone,
    hooks_are_spelt_right,
    learns_a_toy_task,
    majority_share,
    order_of_clients_changes_nothing,
    same_spec_is_bit_equal,
)
from bench.contract.subject import Subject
from bench.contract.toys import permuted
from bench.data import Family
from bench.engine.method import Message, Method, Stack
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.methods.fedavg import FedAvg


class Own(FedAvg):
    """FedAvg, to be changed."""

    name = "own"
    title = "Own"


def subject(kind: type[Method], monkeypatch: pytest.MonkeyPatch, family: Family | None = None) -> Subject:
    monkeypatch.setitem(METHODS.all(), "own", kind)
    return Subject("own", family)


class Misspells(Own):
    """A hook that nobody calls."""

    def agregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        raise AssertionError("never called")


class HasHelpers(Own):
    """Methods beside the hooks: one that is private, one like a hook that is there too, and a further one."""

    def _agregate(self) -> None: ...

    def aggregates(self) -> None: ...

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        super().aggregate(participants, received, upload)

    def weights(self) -> None: ...


class KeepsAFunction(Own):
    """An attribute that no file holds."""

    def setup_server(self) -> None:
        super().setup_server()
        self.squash = torch.tanh


class DerivesAFunction(KeepsAFunction):
    """The same, said to be set up anew."""

    derived: ClassVar[frozenset[str]] = frozenset({"squash"})


class ForgetsACount(Own):
    """What lasts over rounds is said to be set up anew."""

    derived: ClassVar[frozenset[str]] = frozenset({"rounds"})

    def setup_server(self) -> None:
        super().setup_server()
        self.rounds = 0

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        super().aggregate(participants, received, upload)
        self.rounds += 1
        self.model = {name: value / (1 + self.rounds) for name, value in self.model.items()}


def test_a_misspelt_hook_is_named_with_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Broken, match="agregate") as error:
        hooks_are_spelt_right(subject(Misspells, monkeypatch))
    assert "aggregate()" in str(error.value)
    hooks_are_spelt_right(subject(HasHelpers, monkeypatch))


@pytest.mark.parametrize("family", ["graph", "images"])
def test_state_that_a_checkpoint_cannot_keep_is_refused_by_name(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Broken, match="'squash'"):
        a_run_goes_on_where_it_was_saved(subject(KeepsAFunction, monkeypatch, family))
    a_run_goes_on_where_it_was_saved(subject(DerivesAFunction, monkeypatch, family))


def test_state_that_is_said_to_come_back_and_does_not_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Broken, match="checkpoint"):
        a_run_goes_on_where_it_was_saved(subject(ForgetsACount, monkeypatch))


class OwnModels(Own):
    """The server keeps every client's own model and sends it back."""

    def setup_server(self) -> None:
        super().setup_server()
        self.models = {name: value.clone() for name, value in self.task.common().items()}

    def broadcast(self, round: int) -> Message:
        return Message(self.models)

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        self.models = {
            name: self.models[name].index_copy(0, participants, value) for name, value in upload.model.items()
        }


class FirstRows(OwnModels):
    """The server keeps them by their places among those that took part."""

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        for name, value in upload.model.items():
            self.models[name][: len(value)] = value


class SomeRows(OwnModels):
    """The server keeps only those that took part."""

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        self.models = dict(upload.model)


@pytest.mark.slow
def test_server_state_that_is_not_by_participants_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    order_of_clients_changes_nothing(subject(OwnModels, monkeypatch))
    with pytest.raises(Broken, match="participants"):
        order_of_clients_changes_nothing(subject(FirstRows, monkeypatch))
    subject(SomeRows, monkeypatch)
    problems = {finding.rule: finding.problem for finding in check("own")}
    noticed = [problem for rule, problem in problems.items() if "half of the clients" in rule]
    assert noticed
    assert all(noticed)


class ByItsPlace(Own):
    """Clients are trained by where they are among those that are trained together."""

    def load(self, own: Stack, message: Message) -> Stack:
        return {**own, **message.model}

    def update(self, clients, received, message):  # type: ignore[no-untyped-def]
        def objective(models, batch):  # type: ignore[no-untyped-def]
            place = torch.arange(len(batch.labels))
            return batch.cross_entropy(batch.forward(models).logits) * (1 + place)

        return self.upload(clients.fit(received, objective=objective))


def test_a_place_in_a_block_that_counts_is_noticed_with_some_clients_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Broken, match="trained together"):
        absent_clients_keep_what_they_have(subject(ByItsPlace, monkeypatch))


@pytest.mark.parametrize(
    "draw",
    [lambda: float(torch.rand(())), lambda: np.random.rand()],  # noqa: NPY002
    ids=["torch", "numpy"],
)
def test_a_single_draw_from_a_global_generator_is_noticed(
    draw: Callable[[], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Draws(Own):
        def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
            super().aggregate(participants, received, upload)
            self.model = {name: value + draw() for name, value in self.model.items()}

    drawing = subject(Draws, monkeypatch)
    with pytest.raises(Broken, match="two runs of one spec differ"):
        same_spec_is_bit_equal(drawing)
    with pytest.raises(Broken, match="draws from a global generator"):
        global_generators_are_left_alone(drawing)


class Idle(Own):
    """Trains nothing and sends what it had."""

    def broadcast(self, round: int) -> Message:
        return Message()

    def update(self, clients, received, message):  # type: ignore[no-untyped-def]
        clients.losses = torch.zeros(clients.count)
        clients.loss = 0.0
        return self.upload(received)


@pytest.mark.parametrize("family", ["graph", "images"])
def test_a_toy_is_not_learnt_by_chance(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Broken, match="majority class"):
        learns_a_toy_task(subject(Idle, monkeypatch, family))
    assert majority_share(subject(Own, monkeypatch, family).learnable) < 0.6


@pytest.mark.parametrize("family", ["graph", "images"])
def test_the_toys_are_what_the_rules_need(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unequal clients, which another order moves."""
    federation = subject(Own, monkeypatch, family).federation
    sizes = [len(client.ids) for client in federation.clients]
    assert len(set(sizes)) == 4
    moved = permuted(federation, [2, 0, 3, 1])
    assert [len(client.ids) for client in moved.clients] == [sizes[index] for index in (2, 0, 3, 1)]


def test_data_without_a_toy_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class Spoken(Own):
        families = ("speech",)  # type: ignore[assignment]

    monkeypatch.setitem(METHODS.all(), "own", Spoken)
    with pytest.raises(RequestError, match="speech"):
        list(check("own"))
