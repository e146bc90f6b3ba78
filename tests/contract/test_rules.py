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
    clients_do_their_part_alone,
    clients_talk_in_messages_alone,
    describes_itself,
    global_generators_are_left_alone,
    hooks_are_spelt_right,
    hooks_return_what_fits,
    last_epoch_is_what_clients_keep,
    late_rounds_are_as_the_first,
    learns_a_toy_task,
    majority_share,
    newcomers_are_sent_what_fits,
    order_of_clients_changes_nothing,
    received_model_stays,
    same_spec_is_bit_equal,
)
from bench.contract.subject import Subject
from bench.contract.toys import permuted
from bench.data import Family
from bench.engine.method import Clients, Message, Method, Stack, Update
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.hyper import tunable
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


class Sneaks(Own):
    """Clients leave their models in an attribute, and the server takes them from there."""

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        trained = clients.fit(received)
        self.left = {name: value.clone() for name, value in trained.items()}
        return Update(trained)

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        super().aggregate(participants, received, Message(self.left))


class SneaksByNumber(Own):
    """The same by client number."""

    def setup_server(self) -> None:
        super().setup_server()
        self.left: dict[int, Stack] = {}

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        trained = clients.fit(received)
        for row, number in enumerate(clients.numbers):
            self.left[number] = {name: value[row].clone() for name, value in trained.items()}
        return Update(trained)

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        left = [self.left[number] for number in participants.tolist() if number in self.left]
        if left:
            models = {name: torch.stack([model[name] for model in left]) for name in left[0]}
            super().aggregate(participants, received, Message(models))


class Notes(Own):
    """Clients log how far they went, and start from what each of them noted in its last round."""

    def setup_server(self) -> None:
        super().setup_server()
        self.log: list[Tensor] = []
        self.notes: dict[int, float] = {}

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        bias = torch.tensor([self.notes.get(number, 0.0) for number in clients.numbers])
        trained = clients.fit({**received, "head.bias": received["head.bias"] + bias[:, None]})
        self.log.append(clients.losses)
        self.notes.update(zip(clients.numbers, trained["head.bias"].mean(dim=1).tolist(), strict=True))
        return self.upload(trained)


@pytest.mark.parametrize("kind", [Sneaks, SneaksByNumber])
def test_a_server_that_reads_what_clients_left_in_an_attribute_is_noticed(
    kind: type[Own], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Broken, match=r"update\(\) 'left'"):
        clients_talk_in_messages_alone(subject(kind, monkeypatch))


def test_clients_may_log_and_note_what_is_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    noting = subject(Notes, monkeypatch)
    assert set(noting.watched.noted) == {"log", "notes"}
    clients_talk_in_messages_alone(noting)
    clients_do_their_part_alone(noting)


def alike(stack: Stack) -> Stack:
    return {name: value.mean(dim=0, keepdim=True).expand_as(value).clone() for name, value in stack.items()}


class MixesInUpdate(Own):
    """Clients keep the mean of their models, without a message."""

    def broadcast(self, round: int) -> Message:
        return Message()

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        return Update(alike(clients.fit(received)))

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None: ...


class MixesInLoad(MixesInUpdate):
    """The same when a round begins."""

    def load(self, own: Stack, message: Message) -> Stack:
        return alike(own)

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        return Update(clients.fit(received))


class MixesNotes(Notes):
    """Clients start from what all of them noted."""

    def adapt(self, clients: Clients, received: Stack, message: Message) -> Stack:
        shift = sum(self.notes.values())
        return {**received, "head.bias": received["head.bias"] + shift}


class Adapts(Own):
    """Clients train before and in their round, by random streams of both."""

    def adapt(self, clients: Clients, received: Stack, message: Message) -> Stack:
        return {name: value.clone() for name, value in clients.fit(received, epochs=1).items()}


@pytest.mark.parametrize(
    ("kind", "hook"), [(MixesInUpdate, "update"), (MixesInLoad, "load"), (MixesNotes, "adapt")]
)
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


class TurnsItsHead(Own):
    """What a client keeps and predicts with is not what it has trained."""

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        update = super().update(clients, received, message)
        turned_head = {name: -value for name, value in update.keep.items() if name.startswith("head.")}
        return Update({**update.keep, **turned_head}, update.upload)


class TrainsOnAlone(Own):
    """The personal model is trained for an epoch more than the protocol says."""

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        epochs = clients.spec.protocol.local_epochs + 1
        personal = clients.fit(received, epochs=epochs)
        return Update(personal, super().update(clients, received, message).upload)


@pytest.mark.parametrize("kind", [TurnsItsHead, TrainsOnAlone])
def test_a_last_epoch_of_another_model_than_clients_keep_is_noticed(
    kind: type[Method], monkeypatch: pytest.MonkeyPatch
) -> None:
    last_epoch_is_what_clients_keep(subject(Own, monkeypatch))
    with pytest.raises(Broken, match="evaluate=epoch"):
        last_epoch_is_what_clients_keep(subject(kind, monkeypatch))


class LateDraw(Own):
    """Draws from a global generator from its fourth round on."""

    def broadcast(self, round: int) -> Message:
        if round >= 3:
            torch.rand(())
        return super().broadcast(round)


class LateFunction(Own):
    """Keeps what no file holds from its fourth round on."""

    def broadcast(self, round: int) -> Message:
        if round >= 3:
            self.squash = torch.tanh
        return super().broadcast(round)


@pytest.mark.parametrize(
    ("kind", "early", "problem"),
    [
        (LateDraw, global_generators_are_left_alone, "global generator"),
        (LateFunction, a_run_goes_on_where_it_was_saved, "'squash'"),
    ],
)
def test_what_goes_wrong_in_late_rounds_is_noticed(
    kind: type[Own], early: Callable[[Subject], None], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = subject(kind, monkeypatch)
    early(late)
    with pytest.raises(Broken, match=problem):
        late_rounds_are_as_the_first(late)


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


class Misnames(Own):
    """Settings that are none, and a search beyond its limit."""

    protocol: ClassVar[dict[str, object]] = {"rouds": 3, "initial": "both"}
    client: ClassVar[dict[str, object]] = {"modl": "gcn"}

    class Hyper(FedAvg.Hyper):
        """``groups``: how many."""

        groups: int = tunable(2, search=[0, 1, 2.5, "x"], ge=1)


def test_settings_that_are_none_and_searches_beyond_limits_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Broken) as error:
        describes_itself(subject(Misnames, monkeypatch))
    for part in ("rouds", "initial", "modl", "got 0", "got 2.5", "got 'x'"):
        assert part in str(error.value)


class WelcomesWithoutRows(Own):
    """Newcomers are sent one model for all of them."""

    def onboard(self, newcomers: Clients, message: Message) -> Message:
        return Message(self.model)


def test_a_welcome_that_does_not_fit_newcomers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    newcomers_are_sent_what_fits(subject(Own, monkeypatch))
    newcomers_are_sent_what_fits(subject(Misspells, monkeypatch))
    with pytest.raises(Broken, match=r"onboard\(\) gives"):
        newcomers_are_sent_what_fits(subject(WelcomesWithoutRows, monkeypatch))


class ForgetsAnArgument(Own):
    """A hook that cannot be called as the engine calls it."""

    def broadcast(self) -> Message:  # type: ignore[override]
        return Message()


def test_a_hook_that_lacks_an_argument_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Broken, match=r"broadcast\(self\)"):
        hooks_are_spelt_right(subject(ForgetsAnArgument, monkeypatch))


WRONG_RETURNS = {
    "update() returns None": lambda trained: None,
    "update() returns a value of type dict": lambda trained: trained,
    "update() keeps no head.bias": lambda trained: Update(
        {name: value for name, value in trained.items() if name != "head.bias"}
    ),
    "update() gives means as a value of type list": lambda trained: Update(
        trained, Message({}, {"means": [1.0] * 4})
    ),
    "update() gives means as (3, 7)": lambda trained: Update(
        trained, Message({}, {"means": torch.zeros(3, 7)})
    ),
    "update() keeps head.bias as torch.float64": lambda trained: Update(
        {**trained, "head.bias": trained["head.bias"].double()}
    ),
}


@pytest.mark.parametrize("problem", WRONG_RETURNS)
def test_what_a_hook_should_have_returned_is_said_by_every_rule(
    problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Returns(Own):
        """FedAvg with another update."""

        families = ("graph",)

        def update(self, clients: Clients, received: Stack, message: Message) -> Update:
            result: Update = WRONG_RETURNS[problem](clients.fit(received))
            return result

        def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None: ...

    with pytest.raises(Broken) as error:
        hooks_return_what_fits(subject(Returns, monkeypatch))
    assert str(error.value).startswith(problem)
    problems = {finding.problem for finding in check("own")} - {""}
    if "means as (3" not in problem and "float64" not in problem:  # which stop no run
        assert problems == {str(error.value)}


def test_an_error_in_the_suite_names_the_methods_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class TrainsNothing(Own):
        """FedAvg that trains a layer which it has not."""

        families = ("graph",)

        def update(self, clients: Clients, received: Stack, message: Message) -> Update:
            return self.upload(clients.fit(received, trainable=["conv1.weigth"]))

    subject(TrainsNothing, monkeypatch)
    (problem,) = {finding.problem for finding in check("own")} - {""}
    assert "test_rules.py, line" in problem
