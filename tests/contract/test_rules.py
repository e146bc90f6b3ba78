"""The contract notices what it is there to notice, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.contract import Broken
from bench.contract.checks import check
from bench.contract.rules import (
    Rule,
    a_run_goes_on_where_it_was_saved,
    absent_clients_keep_what_they_have,
    clients_do_their_part_alone,
    describes_itself,
    hooks_are_spelt_right,
    hooks_keep_to_their_side,
    learns_a_toy_task,
    majority_share,
    order_of_clients_changes_nothing,
    received_model_stays,
    same_spec_is_bit_equal,
)
from bench.contract.subject import Subject
from bench.contract.toys import permuted
from bench.data import Family
from bench.engine.method import Clients, Message, Method, Stack, Update
from bench.engine.methods import METHODS
from bench.hyper import tunable
from bench.methods.fedavg import FedAvg

FAMILIES: list[Family] = ["graph", "images"]


class Own(FedAvg):
    """FedAvg, to be changed."""

    name = "own"
    title = "Own"


def subject(kind: type[Method], monkeypatch: pytest.MonkeyPatch, family: Family | None = None) -> Subject:
    kinds = METHODS.all() | {"own": kind}
    monkeypatch.setattr(METHODS, "all", lambda: kinds)
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


class ForgetsAnArgument(Own):
    """A hook that cannot be called as the engine calls it."""

    def load(self, own: Stack, message: Message) -> Stack:  # type: ignore[override]
        return own


class Misnames(Own):
    """A setting that is none."""

    settings: ClassVar[dict[str, object]] = {"protocol.rouds": 3}


class MisnamesASection(Own):
    """A setting of a section that is none."""

    settings: ClassVar[dict[str, object]] = {"clients.model": "gcn"}


class SearchesTooFar(Own):
    """A search beyond its limit."""

    class Hyper(FedAvg.Hyper):
        """``groups``: how many."""

        groups: int = tunable(2, search=[1, 0], ge=1)


class KeepsAFunction(Own):
    """An attribute that no file holds."""

    def setup_server(self) -> None:
        super().setup_server()
        self.squash = torch.tanh


class DerivesAFunction(KeepsAFunction):
    """The same, said to be set up anew."""

    derived: ClassVar[frozenset[str]] = frozenset({"squash"})


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


class ForgetsACount(DerivesACount):
    """The same, and numbers do depend on it."""

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        super().aggregate(participants, received, upload)
        self.model = {name: value / (1 + self.rounds) for name, value in self.model.items()}


class OwnModels(Own):
    """The server keeps every client's own model and sends it back."""

    def setup_server(self) -> None:
        super().setup_server()
        self.models = {name: value.clone() for name, value in self.task.common().items()}

    def broadcast(self) -> Message:
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


class ByItsPlace(Own):
    """Clients are trained by where they are among those that are trained together."""

    def update(self, clients, received, message):  # type: ignore[no-untyped-def]
        def objective(models, batch):  # type: ignore[no-untyped-def]
            place = torch.arange(len(batch.labels))
            return batch.cross_entropy(batch.forward(models).logits) * (1 + place)

        return self.upload(clients.fit(received, objective=objective))


class SneaksInPlace(Own):
    """Clients leave their models in a dict of the server, which takes them from there."""

    def setup_server(self) -> None:
        super().setup_server()
        self.left: dict[str, Tensor] = {}

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        trained = clients.fit(received)
        self.left.update({name: value.clone() for name, value in trained.items()})
        return Update(trained)

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        super().aggregate(participants, received, Message(self.left))


class Sneaks(SneaksInPlace):
    """The same in an attribute that is set."""

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        self.left = dict(clients.fit(received))
        return Update(self.left)


class Notes(Own):
    """Clients log how far they went, and start from what each of them noted in its last round."""

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        bias = torch.tensor([note or 0.0 for note in clients.noted("bias")])
        trained = clients.fit({**received, "head.bias": received["head.bias"] + bias[:, None]})
        clients.log(bias=bias)
        clients.note("bias", trained["head.bias"].mean(dim=1).tolist())
        return self.upload(trained)


def alike(stack: Stack) -> Stack:
    return {name: value.mean(dim=0, keepdim=True).expand_as(value).clone() for name, value in stack.items()}


class MixesInUpdate(Own):
    """Clients keep the mean of their models, without a message."""

    def broadcast(self) -> Message:
        return Message()

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        return Update(alike(clients.fit(received)))

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None: ...


class MixesInLoad(MixesInUpdate):
    """The same when a round begins."""

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        return alike(own)

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        return Update(clients.fit(received))


class Adapts(Own):
    """Clients train before and in their round, by random streams of both."""

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        received = clients.fit({**own, **message.model}, epochs=1)
        return {name: value.clone() for name, value in received.items()}


class Idle(Own):
    """Trains nothing and sends what it had."""

    def broadcast(self) -> Message:
        return Message()

    def update(self, clients, received, message):  # type: ignore[no-untyped-def]
        clients.loss = 0.0
        return self.upload(received)


class ChangesUploads(Own):
    """The server works in the memory of what it gets."""

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        upload.model["head.bias"].mul_(0.5)
        super().aggregate(participants, received, upload)


BREAKS: list[tuple[Rule, type[Own], str]] = [
    (hooks_are_spelt_right, Misspells, r"agregate.* call it aggregate\(\)"),
    (hooks_are_spelt_right, ForgetsAnArgument, r"load\(self, own, message\)"),
    (describes_itself, Misnames, "protocol.rouds: .*got 3"),
    (describes_itself, MisnamesASection, "clients.model"),
    (describes_itself, SearchesTooFar, "search.groups: .*got 0"),
    (a_run_goes_on_where_it_was_saved, KeepsAFunction, "'squash'"),
    (a_run_goes_on_where_it_was_saved, ForgetsACount, "checkpoint"),
    (a_run_goes_on_where_it_was_saved, DerivesNothing, "'modle'"),
    (a_run_goes_on_where_it_was_saved, DerivesACount, "'rounds'"),
    (absent_clients_keep_what_they_have, ByItsPlace, "trained together"),
    (order_of_clients_changes_nothing, FirstRows, "participants"),
    (hooks_keep_to_their_side, SneaksInPlace, r"update\(\) changes 'left'"),
    (clients_do_their_part_alone, MixesInUpdate, r"^update\(\) gives"),
    (clients_do_their_part_alone, MixesInLoad, r"^load\(\) gives"),
    (learns_a_toy_task, Idle, "majority class"),
    (received_model_stays, ChangesUploads, r"aggregate\(\) changes head.bias"),
]


@pytest.mark.parametrize(("rule", "kind", "words"), BREAKS, ids=[row[1].__name__ for row in BREAKS])
def test_a_broken_rule_is_said(
    rule: Rule, kind: type[Own], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Broken, match=words):
        rule(subject(kind, monkeypatch))


KEEPS: list[tuple[Rule, type[Own], Family]] = [
    (hooks_are_spelt_right, HasHelpers, "graph"),
    (a_run_goes_on_where_it_was_saved, DerivesAFunction, "images"),
    (order_of_clients_changes_nothing, OwnModels, "graph"),
    (hooks_keep_to_their_side, Notes, "graph"),
    (clients_do_their_part_alone, Notes, "graph"),
    (a_run_goes_on_where_it_was_saved, Notes, "graph"),
    (clients_do_their_part_alone, Adapts, "graph"),
    (clients_do_their_part_alone, Adapts, "images"),
    (clients_do_their_part_alone, ChangesUploads, "graph"),  # which is not to blame
]


@pytest.mark.parametrize(("rule", "kind", "family"), KEEPS)
def test_a_rule_that_is_kept_is_not_said(
    rule: Rule, kind: type[Own], family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule(subject(kind, monkeypatch, family))


@pytest.mark.parametrize("name", ["adapt", "warm_up", "enrol", "artefacts"])
def test_a_hook_of_the_version_before_is_refused_and_not_left_uncalled(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        type("Old", (FedAvg,), {"name": "old", name: lambda self: None})


def test_a_hook_of_clients_that_sets_an_attribute_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError, match="'left'"):
        subject(Sneaks, monkeypatch).play()


def test_clients_may_log_and_note_what_is_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    bias = subject(Notes, monkeypatch).short.artefacts()["bias"]
    assert bias.shape == (3, 4)
    assert (bias[0] == 0).all()
    assert (bias[1:] != 0).all()


@pytest.mark.slow
def test_server_state_that_forgets_absent_clients_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    subject(SomeRows, monkeypatch)
    noticed = [finding.problem for finding in check("own") if "half of the clients" in finding.rule]
    assert noticed
    assert all(noticed)


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

    with pytest.raises(Broken, match="two runs of one spec differ"):
        same_spec_is_bit_equal(subject(Draws, monkeypatch))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_toys_are_what_the_rules_need(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unequal clients, which another order moves, and a task that is not learnt by chance."""
    toys = subject(Own, monkeypatch, family)
    sizes = [len(client.ids) for client in toys.federation.clients]
    assert len(set(sizes)) == 4
    moved = permuted(toys.federation, [2, 0, 3, 1])
    assert [len(client.ids) for client in moved.clients] == [sizes[index] for index in (2, 0, 3, 1)]
    assert majority_share(toys.learnable) < 0.6


UPDATES: dict[str, Callable[[Method, Clients, Stack], Any]] = {
    "update() returns None": lambda method, clients, received: None,
    "update() returns a value of type dict": lambda method, clients, received: clients.fit(received),
    "a row for every client": lambda method, clients, received: Update(
        received, Message({}, {"means": torch.zeros(3, 7), "counts": torch.zeros(4)})
    ),
    "with a gradient": lambda method, clients, received: Update(
        received, Message({}, {"means": torch.zeros(4, 7, requires_grad=True)})
    ),
    "test_rules.py, line": lambda method, clients, received: method.upload(
        clients.fit(received, trainable=["conv1.weigth"])
    ),
}
"""What is said of an update: what it should have returned, and where an error in the suite came from."""


@pytest.mark.parametrize("problem", UPDATES)
def test_an_update_that_is_none_is_said(problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Returns(Own):
        """FedAvg with another update."""

        families = ("graph",)

        def update(self, clients: Clients, received: Stack, message: Message) -> Update:
            result: Update = UPDATES[problem](self, clients, received)
            return result

        def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None: ...

    subject(Returns, monkeypatch)
    problems = {finding.problem for finding in check("own")}
    assert any(problem in said for said in problems), problems
