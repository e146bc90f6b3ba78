"""The rules of the contract. Each is a function that raises ``Broken`` and says what to correct."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from inspect import Parameter, isfunction, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ValidationError

from bench.contract import Broken, require
from bench.contract.hooks import apart, attributes, standing_in, watched
from bench.contract.subject import ROUNDS, SIZES, Subject
from bench.contract.toys import copied, finish, furthest, permuted, play, same_counts
from bench.engine.checkpoint import Checkpoint
from bench.engine.clients import Clients
from bench.engine.method import Message, Method, Stack
from bench.engine.run import Run
from bench.errors import NotApplicableError, first_problem
from bench.federation.types import TEST, TRAIN, Federation
from bench.spec import ClientSettings, Protocol

SETTINGS: dict[str, type[BaseModel]] = {"protocol": Protocol, "client": ClientSettings}


def describes_itself(subject: Subject) -> None:
    """It has a title, a docstring and a numerics version, and its settings exist and take its values."""
    kind = subject.kind
    require(bool(kind.title), "give it a title, as tables shall print it")
    require(bool(kind.__doc__), "say in its docstring what it computes, and after which paper")
    require(kind.numerics >= 1, f"numerics is {kind.numerics}: start at 1, raise it when numbers change")
    settings: list[tuple[str, type[BaseModel], dict[str, Any]]] = []
    for key, value in kind.settings.items():
        section, _, name = key.partition(".")
        require(section in SETTINGS, f"settings names '{key}': expected a key of {' or '.join(SETTINGS)}")
        settings.append((section, SETTINGS[section], {name: value}))
    for name, values in kind.Hyper.search_space().items():
        settings += [("search", kind.Hyper, {name: value}) for value in values]
    for section, model, given in settings:
        try:
            model.model_validate(given)
        except ValidationError as error:
            raise Broken(first_problem(error, section, with_input=True)) from error


HOOKS = [name for name, value in vars(Method).items() if isfunction(value) and not name.startswith("_")]


def hooks_are_spelt_right(subject: Subject) -> None:
    """Hooks take the arguments that the engine gives them, and no public method has almost a hook's name."""
    for kind in subject.kind.__mro__[: subject.kind.__mro__.index(Method)]:
        for name, value in vars(kind).items():
            if not isfunction(value) or name.startswith("_") or hasattr(Method, name):
                continue
            for hook in get_close_matches(name, HOOKS, n=1, cutoff=0.8):
                require(
                    hook in vars(kind),
                    f"{kind.__name__}.{name}() is no hook, and the suite never calls it: "
                    f"call it {hook}(), or _{name}() if it is a helper",
                )
    for name in HOOKS:
        given = signature(vars(Method)[name]).parameters.values()
        taken = signature(getattr(subject.kind, name))
        arguments = [value.name for value in given if value.kind is Parameter.POSITIONAL_OR_KEYWORD]
        try:
            taken.bind(*arguments)
        except TypeError as error:
            takes, gets = ", ".join(taken.parameters), ", ".join(arguments)
            raise Broken(f"{name}({takes}) is called with ({gets}): {error}") from error


def shapes_and_finite_numbers(subject: Subject) -> None:
    """Models keep their shapes and types, and all numbers are finite."""
    loop, count = subject.short, len(subject.federation)
    unknown_names = set(loop.method.shared()) - set(loop.own)
    require(not unknown_names, f"shared() names parameters that no client has: {sorted(unknown_names)}")
    for name, shape in loop.model.shapes.items():
        value = loop.own[name]
        expected = (count, *shape)
        require(value.shape == expected, f"{name} is {tuple(value.shape)} after a run, expected {expected}")
        require(value.dtype == torch.float32, f"{name} is {value.dtype} after a run, expected float32")
        require(bool(torch.isfinite(value).all()), f"{name} is not finite after {ROUNDS} rounds")
        require(not value.requires_grad, f"{name} still carries a gradient: detach what train() returns")
    if subject.kind.trains:
        require(bool(np.isfinite(loop.loss).all()), "a training loss is not finite")
    for name, value in loop.method.records.items():
        require(bool(torch.isfinite(value).all()), f"what is recorded as {name} is not finite")


def hooks_keep_to_their_side(subject: Subject) -> None:
    """Hooks return what the engine expects, and hooks of clients change no attribute."""
    with standing_in(subject.method, watched(subject.kind)):
        subject.play()


def same_spec_is_bit_equal(subject: Subject) -> None:
    """The same spec twice gives the same bits, whatever the state of the global generators."""
    first_run = subject.short
    torch.rand(7)
    np.random.rand(7)  # noqa: NPY002 - the global stream must not matter
    second_run = subject.play()
    is_same = furthest(first_run.own, second_run.own) == 0 and same_counts(first_run, second_run)
    require(is_same, "two runs of one spec differ: draw from task.generator(...), keyed by what it is for")


def a_run_goes_on_where_it_was_saved(subject: Subject) -> None:
    """A run that is saved and taken up again ends with the same bits, also of ``derived`` attributes."""
    straight_run, derived = subject.short, subject.kind.derived
    for name in sorted(derived):
        has_it = hasattr(straight_run.method, name)
        require(has_it, f"'derived' names '{name}', which is no attribute after a run")
    with TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "run.npz", identity="contract")
        first_run = Run(subject.spec(), subject.federation)
        first_run.warm_up()
        first_run.step(0)
        try:
            checkpoint.save(first_run, 0, 0.0)
        except TypeError as error:
            raise Broken(str(error)) from error
        resumed_run = Run(subject.spec(), subject.federation)
        checkpoint.resume(resumed_run)
    finish(resumed_run, first=1)
    is_same = furthest(straight_run.own, resumed_run.own) == 0 and same_counts(straight_run, resumed_run)
    require(
        is_same and straight_run.traffic.bytes_up == resumed_run.traffic.bytes_up,
        "a run taken up from a checkpoint ends with other numbers: keep what lasts over rounds in "
        "attributes, and name in 'derived' only those that a run which is set up anew has again",
    )
    values, resumed_values = attributes(straight_run.method), attributes(resumed_run.method)
    for name in sorted(derived & values.keys()):
        require(
            values[name] == resumed_values.get(name),
            f"a run taken up from a checkpoint ends with another '{name}', which 'derived' names: it lasts "
            "over rounds, so take it out of 'derived'",
        )


def seed_matters(subject: Subject) -> None:
    """Another seed gives other models."""
    gap = furthest(subject.short.own, subject.play(seed=1).own)
    require(gap > 1e-2, "another seed gives the same models: start from task.common() or task.own()")


def held_out_labels_are_not_read(subject: Subject) -> None:
    """Validation and test labels change no training number."""
    federation, rng = subject.federation, np.random.default_rng(0)
    noisy_clients = []
    for client in federation.clients:
        other_labels = rng.integers(0, federation.classes, len(client.labels))
        labels = np.where(client.roles == TRAIN, client.labels, other_labels)
        noisy_clients.append(replace(client, labels=labels))
    noisy_federation = replace(federation, clients=tuple(noisy_clients))
    loop, noise = subject.short, play(subject.spec(), noisy_federation)
    is_same = furthest(loop.own, noise.own) == 0 and np.array_equal(loop.loss, noise.loss, equal_nan=True)
    for stage in ("received", "trained"):
        is_same &= np.array_equal(loop.correct()[stage, "train"], noise.correct()[stage, "train"])
    require(is_same, "other validation and test labels change what is trained: read training labels only")


def received_model_stays(subject: Subject) -> None:
    """``aggregate`` is given what was received, and changes nothing that clients keep."""
    loop = Run(subject.spec(), subject.federation)
    aggregate, load = loop.method.aggregate, loop.method.load
    loads: list[dict[str, Any]] = []

    def aggregating(participants: torch.Tensor, received: Stack, upload: Message) -> None:
        for name, value in loads[-1].items():
            if name in received:
                is_same = torch.equal(received[name], value)
                require(is_same, f"{name} of the received model was changed in place")
        kept = copied(loop.own)
        aggregate(participants, received, upload)
        for name, value in kept.items():
            require(
                torch.equal(loop.own[name], value),
                f"aggregate() changes {name} of what clients keep: an upload shares their memory, so change "
                "none of it in place",
            )

    def loading(clients: Clients, own: Stack, message: Message) -> Stack:
        received = load(clients, own, message)
        loads.append(copied(received))
        return received

    loop.method.aggregate = aggregating  # type: ignore[method-assign]
    loop.method.load = loading  # type: ignore[method-assign]
    finish(loop)


ROUND_HOOKS = ("load", "update")
"""Hooks of clients in a round. ``first_upload`` is not among them, since it may exchange messages."""

GROUPS = ((1,), (0, 2, 3))
"""Groups of clients for which hooks are called one after the other."""


def clients_do_their_part_alone(subject: Subject) -> None:
    """Numbers do not depend on which clients a hook is called for at once."""
    everyone = [range(len(subject.federation))]

    def called(groups: Sequence[Sequence[int]], hooks: Sequence[str]) -> Run:
        with standing_in(subject.method, apart(subject.kind, groups, hooks)):
            return subject.play()

    def are_near(loop: Run, other_loop: Run) -> bool:
        return furthest(loop.own, other_loop.own) < 1e-4 and same_counts(loop, other_loop)

    loop = called(GROUPS, ROUND_HOOKS)
    if are_near(subject.short, loop):
        return
    together = called(everyone, ROUND_HOOKS)  # copies the results of hooks, as with groups
    if are_near(together, loop):
        return
    mixing_hooks = [f"{name}()" for name in ROUND_HOOKS if not are_near(together, called(GROUPS, [name]))]
    raise Broken(
        f"{' and '.join(mixing_hooks) or 'a client hook'} gives other numbers where it is called for some "
        f"clients apart (models {furthest(together.own, loop.own):.1g} apart): it mixes clients without a "
        "message; let the server mix what they upload"
    )


def block_size_changes_nothing(subject: Subject) -> None:
    """Numbers do not depend on how many clients are trained together."""
    short_run = subject.short
    for size in {1, 3, len(SIZES)} - {short_run.block_size}:
        blocks = subject.play(size)
        gap = furthest(short_run.own, blocks.own)
        require(
            gap < 1e-4 and same_counts(short_run, blocks),
            f"blocks of {size} clients give other numbers than of {short_run.block_size} "
            f"(models {gap:.1g} apart): a loss or a hook mixes clients of a block, or takes a block's place "
            "for a client's number",
        )


class _Reordered(Run):
    """A run on the same clients in another order. The same clients take part in its rounds."""

    def __init__(self, straight_run: Run, federation: Federation, order: Sequence[int]) -> None:
        super().__init__(straight_run.spec, permuted(federation, order))
        self._straight_run, self._place = straight_run, torch.tensor(order).argsort()

    def participants(self, round: int) -> torch.Tensor:
        return self._place[self._straight_run.participants(round)].sort().values


def order_of_clients_changes_nothing(subject: Subject) -> None:
    """Numbers follow the clients when their order changes.

    Random streams of a client's number (initial weights, dropout) are avoided by a common initial model
    and no dropout. The rule is also checked with half of the clients in a round.
    """
    batch = {"batch_size": 1000} if subject.family == "images" else {}  # batches are shuffled by number
    fields = subject.kind.Hyper.model_fields
    own_dropout = {
        name: 0.0 for name, info in fields.items() if name.endswith("dropout") and info.annotation is float
    }
    order = [2, 0, 3, 1]
    for participation, prefix in ((1.0, ""), (0.5, "with half of the clients in a round, ")):
        client = {"dropout": 0.0, **batch}
        spec = subject.spec(initial="common", participation=participation, client=client, hyper=own_dropout)
        straight_run = play(spec, subject.federation)
        reordered_run = finish(_Reordered(straight_run, subject.federation, order))
        gap = furthest({name: value[order] for name, value in straight_run.own.items()}, reordered_run.own)
        require(
            gap < 1e-4 and same_counts(straight_run, reordered_run, order),
            f"{prefix}another order of clients gives other numbers (models {gap:.1g} apart): key a client's "
            "random streams by its data, and what the server keeps for it by 'participants', change no "
            "tensor in place that all clients share, such as those of task.common(), or say in the docstring "
            "why its number matters",
        )


def absent_clients_keep_what_they_have(subject: Subject) -> None:
    """With half of the clients in a round, the others stay as they are, whoever is trained beside them."""
    ends = []
    spec = subject.spec(participation=0.5, rounds=2 * ROUNDS)
    for block_size in (1, len(SIZES)):
        try:
            loop = Run(spec, subject.federation, block_size=block_size)
        except NotApplicableError:  # a method may refuse such rounds
            return
        loop.warm_up()
        for round in range(2 * ROUNDS):
            before = copied(loop.own)
            loop.step(round)
            absent = [row for row in range(len(SIZES)) if row not in loop.participants(round).tolist()]
            require(len(absent) == 2, f"{len(absent)} clients are absent from round {round}, expected 2")
            for name, value in loop.own.items():
                require(
                    torch.equal(value[absent], before[name][absent]),
                    f"{name} of a client changes in a round that it takes no part in",
                )
        ends.append(loop)
    gap = furthest(ends[0].own, ends[1].own)
    require(
        gap < 1e-4 and same_counts(ends[0], ends[1]),
        f"with half of the clients in a round, numbers depend on who is trained together ({gap:.1g} "
        "apart): index what the server keeps for its clients by the participants of a round",
    )


def majority_share(federation: Federation) -> float:
    """The test accuracy of predicting the most frequent training class, as a mean over clients."""
    shares = []
    for client in federation.clients:
        counts = np.bincount(client.labels[client.roles == TRAIN], minlength=federation.classes)
        shares.append(float((client.labels[client.roles == TEST] == counts.argmax()).mean()))
    return float(np.mean(shares))


def late_accuracy(subject: Subject, stage: str) -> float:
    """The mean test accuracy in the last quarter of the rounds on the learnable toy."""
    result = subject.lesson
    require(result.state == "done", f"a longer run ends as {result.state}: {result.reason}")
    counts = result.correct[stage, "test"]
    return float((counts[-len(counts) // 4 :] / result.samples["test"]).mean())


def learns_a_toy_task(subject: Subject) -> None:
    """It beats the majority class by 20 points on a task that is easy to learn."""
    accuracy, level = late_accuracy(subject, subject.kind.stage), majority_share(subject.learnable)
    require(
        accuracy > level + 0.2,
        f"on an easy task its {subject.kind.stage} model is right for {accuracy:.0%}, "
        f"the majority class for {level:.0%}",
    )


Rule = Callable[[Subject], None]

RULES: tuple[Rule, ...] = (
    describes_itself,
    hooks_are_spelt_right,
    hooks_keep_to_their_side,
    shapes_and_finite_numbers,
    clients_do_their_part_alone,
    same_spec_is_bit_equal,
    a_run_goes_on_where_it_was_saved,
    seed_matters,
    block_size_changes_nothing,
    order_of_clients_changes_nothing,
    held_out_labels_are_not_read,
    received_model_stays,
    absent_clients_keep_what_they_have,
    learns_a_toy_task,
)
"""The rules, ordered by their importance to an author."""
