"""Methods whose numbers hang on who is beside whom are noticed, and others are not."""

from __future__ import annotations

import pytest
import torch
from own_method import Own, subject
from torch import Tensor

from bench.contract.broken import Broken
from bench.contract.checks import check
from bench.contract.independence import (
    absent_clients_keep_what_they_have,
    clients_do_their_part_alone,
    order_of_clients_changes_nothing,
)
from bench.contract.rules import a_run_goes_on_where_it_was_saved, hooks_keep_to_their_side
from bench.data import Family
from bench.engine.method import Clients, Message, Stack, Update


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

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
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


class Sneaks(Own):
    """Clients leave their models in an attribute, and the server takes them from there."""

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        trained = clients.fit(received)
        self.left = {name: value.clone() for name, value in trained.items()}
        return Update(trained)

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        super().aggregate(participants, received, Message(self.left))


class SneaksInPlace(Own):
    """The same in a dict that is there already."""

    def setup_server(self) -> None:
        super().setup_server()
        self.left: dict[str, Tensor] = {}

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        trained = clients.fit(received)
        self.left.update({name: value.clone() for name, value in trained.items()})
        return Update(trained)

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        super().aggregate(participants, received, Message(self.left))


class Notes(Own):
    """Clients log how far they went, and start from what each of them noted in its last round."""

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        bias = torch.tensor([note or 0.0 for note in clients.noted("bias")])
        trained = clients.fit({**received, "head.bias": received["head.bias"] + bias[:, None]})
        clients.log(bias=bias)
        clients.note("bias", trained["head.bias"].mean(dim=1).tolist())
        return self.upload(trained)


def test_a_hook_of_clients_that_sets_an_attribute_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError, match="'left'"):
        subject(Sneaks, monkeypatch).play()


def test_a_hook_of_clients_that_changes_an_attribute_in_place_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Broken, match=r"update\(\) changes 'left'"):
        hooks_keep_to_their_side(subject(SneaksInPlace, monkeypatch))


def test_clients_may_log_and_note_what_is_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    noting = subject(Notes, monkeypatch)
    hooks_keep_to_their_side(noting)
    clients_do_their_part_alone(noting)
    a_run_goes_on_where_it_was_saved(noting)
    bias = noting.short.artefacts()["bias"]
    assert bias.shape == (3, 4)
    assert (bias[0] == 0).all()
    assert (bias[1:] != 0).all()


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


@pytest.mark.parametrize(("kind", "hook"), [(MixesInUpdate, "update"), (MixesInLoad, "load")])
def test_client_hooks_that_mix_clients_are_named(
    kind: type[Own], hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Broken, match=rf"^{hook}\(\) gives"):
        clients_do_their_part_alone(subject(kind, monkeypatch))


@pytest.mark.parametrize("family", ["graph", "images"])
def test_clients_that_train_twice_in_a_round_do_it_alone(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients_do_their_part_alone(subject(Adapts, monkeypatch, family))
