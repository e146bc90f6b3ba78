"""The contract notices what it is there to notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest
import torch
from own_method import Own, subject
from torch import Tensor

from bench.contract.broken import Broken
from bench.contract.checks import check
from bench.contract.independence import (
    clients_do_their_part_alone,
)
from bench.contract.rules import (
    a_run_goes_on_where_it_was_saved,
    global_generators_are_left_alone,
    learns_a_toy_task,
    majority_share,
    received_model_stays,
    same_spec_is_bit_equal,
)
from bench.contract.toys import permuted
from bench.data import Family
from bench.engine.method import Clients, Message, Stack, Update


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

    def broadcast(self) -> Message:
        return Message()

    def update(self, clients, received, message):  # type: ignore[no-untyped-def]
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


class ChangesUploads(Own):
    """The server works in the memory of what it gets."""

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        upload.model["head.bias"].mul_(0.5)
        super().aggregate(participants, received, upload)


def test_a_server_that_changes_what_clients_keep_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    changing = subject(ChangesUploads, monkeypatch)
    with pytest.raises(Broken, match=r"aggregate\(\) changes head.bias"):
        received_model_stays(changing)
    clients_do_their_part_alone(changing)  # which is not to blame


class DerivesNothing(Own):
    """A name that no attribute has."""

    derived: ClassVar[frozenset[str]] = frozenset({"modle"})


class DerivesACount(Own):
    """A count that lasts over rounds, though no number depends on it."""

    derived: ClassVar[frozenset[str]] = frozenset({"rounds"})

    def setup_server(self) -> None:
        super().setup_server()
        self.rounds = torch.zeros(1)

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        super().aggregate(participants, received, upload)
        self.rounds = self.rounds + 1


@pytest.mark.parametrize(("kind", "name"), [(DerivesNothing, "'modle'"), (DerivesACount, "'rounds'")])
def test_derived_names_that_are_none_are_noticed(
    kind: type[Own], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Broken, match=name):
        a_run_goes_on_where_it_was_saved(subject(kind, monkeypatch))


WRONG_RETURNS = {
    "update() returns None": lambda trained: None,
    "update() returns a value of type dict": lambda trained: trained,
    "a row for every client": lambda trained: Update(
        trained, Message({}, {"means": torch.zeros(3, 7), "counts": torch.zeros(4)})
    ),
    "with a gradient": lambda trained: Update(
        trained, Message({}, {"means": torch.zeros(4, 7, requires_grad=True)})
    ),
}


@pytest.mark.parametrize("problem", WRONG_RETURNS)
def test_what_a_hook_should_have_returned_is_said(problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Returns(Own):
        """FedAvg with another update."""

        families = ("graph",)

        def update(self, clients: Clients, received: Stack, message: Message) -> Update:
            result: Update = WRONG_RETURNS[problem](clients.fit(received))
            return result

        def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None: ...

    subject(Returns, monkeypatch)
    problems = {finding.problem for finding in check("own")}
    assert any(problem in said for said in problems), problems


def test_an_error_in_the_suite_names_the_methods_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class TrainsNothing(Own):
        """FedAvg that trains a layer which it has not."""

        families = ("graph",)

        def update(self, clients: Clients, received: Stack, message: Message) -> Update:
            return self.upload(clients.fit(received, trainable=["conv1.weigth"]))

    subject(TrainsNothing, monkeypatch)
    (problem,) = {finding.problem for finding in check("own")} - {""}
    assert "test_rules.py, line" in problem
