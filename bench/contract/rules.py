"""The rules of the contract, each a function that raises ``Broken`` with what to mend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from inspect import isfunction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from bench.contract.subject import ROUNDS, SIZES, Subject
from bench.contract.toys import copied, finish, furthest, permuted, play
from bench.engine.checkpoint import Checkpoint
from bench.engine.clients import Clients
from bench.engine.execute import run
from bench.engine.method import Message, Method, Stack
from bench.engine.run import Run
from bench.federation.types import TEST, TRAIN, Federation


class Broken(Exception):
    """A rule is not kept; the message says what to mend."""


def require(holds: bool, problem: str) -> None:
    """Raise ``Broken`` unless the rule is kept."""
    if not holds:
        raise Broken(problem)


def same_counts(loop: Run, other_loop: Run, order: Sequence[int] | slice = slice(None)) -> bool:
    """Whether two runs count the same correct predictions, the other one for its clients in an ``order``."""
    other_counts = other_loop.correct()
    return all(np.array_equal(counts[:, order], other_counts[key]) for key, counts in loop.correct().items())


def describes_itself(subject: Subject) -> None:
    """It has a title, a docstring and a numerics version."""
    kind = subject.kind
    require(bool(kind.title), "give it a title, as tables shall print it")
    require(bool(kind.__doc__), "say in its docstring what it computes, and after which paper")
    require(kind.numerics >= 1, f"numerics is {kind.numerics}: start at 1, raise it when numbers change")


HOOKS = [name for name, value in vars(Method).items() if isfunction(value) and not name.startswith("_")]


def hooks_are_spelt_right(subject: Subject) -> None:
    """No public method of its own is called almost as a hook, which would never be called."""
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


def shapes_and_finite_numbers(subject: Subject) -> None:
    """Models keep shape and type, and all numbers are finite."""
    loop, count = subject.short, len(subject.federation)
    unknown_names = set(loop.method.shared()) - set(loop.own)
    require(not unknown_names, f"shared() names parameters that no client has: {sorted(unknown_names)}")
    for name, shape in loop.model.shapes.items():
        value = loop.own[name]
        expected = (count, *shape)
        require(
            value.shape == expected, f"{name} is {tuple(value.shape)} after a run, expected {tuple(expected)}"
        )
        require(value.dtype == torch.float32, f"{name} is {value.dtype} after a run, expected float32")
        require(bool(torch.isfinite(value).all()), f"{name} is not finite after {ROUNDS} rounds")
        require(not value.requires_grad, f"{name} still carries a gradient: detach what train() returns")
    if subject.kind.trains:
        require(bool(np.isfinite(loop.loss).all()), "a training loss is not finite")
    for name, value in loop.method.artefacts().items():
        require(bool(torch.isfinite(value).all()), f"artefact {name} is not finite")


def what_is_sent_fits(subject: Subject) -> None:
    """``broadcast`` has a row for every client, of its parameter's shape."""
    loop = Run(subject.spec(), subject.federation)
    loop.warm_up()
    with torch.no_grad():
        message = loop.method.broadcast(0)
    for name, value in message.model.items():
        require(name in loop.own, f"broadcast() names {name}, which is no parameter of a client")
        require(
            value.shape == loop.own[name].shape,
            f"broadcast() gives {name} as {tuple(value.shape)}, expected {tuple(loop.own[name].shape)}",
        )
    for name, value in {**message.model, **message.extras}.items():
        require(not value.requires_grad, f"broadcast() gives {name} with a gradient: detach it")
        rows, count = (len(value) if value.dim() else 0), len(subject.federation)
        require(
            rows == count, f"broadcast() gives {name} {rows} rows, expected one for each of {count} clients"
        )


def same_spec_is_bit_equal(subject: Subject) -> None:
    """The same spec twice gives the same bits, whatever the global generators hold."""
    first_run, (second_run, _) = subject.short, subject.again
    is_same = furthest(first_run.own, second_run.own) == 0 and same_counts(first_run, second_run)
    require(is_same, "two runs of one spec differ: draw from task.generator(...), keyed by what it is for")


def a_run_goes_on_where_it_was_saved(subject: Subject) -> None:
    """A run that is saved between two rounds and taken up again ends with the same bits, also where the one
    that was saved would have ended there.
    """
    straight_run = subject.short
    short_spec = subject.spec(rounds=1) if subject.kind.prolongable else subject.spec()
    with TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "run.npz", identity="contract")
        first_run = Run(short_spec, subject.federation)
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
        "attributes, name in 'derived' only those that a run which is set up anew has again, and say "
        "'prolongable = False' where the number of rounds decides what the first ones do",
    )


def seed_matters(subject: Subject) -> None:
    """Another seed gives other models."""
    gap = furthest(subject.short.own, subject.play(seed=1).own)
    require(gap > 1e-2, "another seed gives the same models: start from task.common() or task.own()")


def global_generators_are_left_alone(subject: Subject) -> None:
    """A run draws nothing from torch's and NumPy's global generators."""
    _, is_untouched = subject.again
    require(is_untouched, "it draws from a global generator: use task.generator(...) or task.seeded(...)")


def block_size_changes_nothing(subject: Subject) -> None:
    """Numbers do not depend on how many clients are trained together."""
    short_run = subject.short
    for size in {1, 3, len(SIZES)} - {short_run.block_size}:
        blocks = subject.play(size)
        gap = furthest(short_run.own, blocks.own)
        require(
            gap < 1e-4 and same_counts(short_run, blocks),
            f"blocks of {size} clients give other numbers than of {short_run.block_size} "
            f"(models {gap:.1g} apart): "
            "a loss or a hook mixes clients of a block, or takes a block's place for a client's number",
        )


def _without_dropout(kind: type[Method]) -> dict[str, float]:
    """Hyper-parameters that switch a method's own dropout off, whatever it is called."""
    fields = kind.Hyper.model_fields
    return {
        name: 0.0 for name, info in fields.items() if name.endswith("dropout") and info.annotation is float
    }


class _Reordered(Run):
    """A run on the same clients in another order; the same ones take part in its rounds."""

    def __init__(self, straight_run: Run, federation: Federation, order: Sequence[int]) -> None:
        super().__init__(straight_run.spec, permuted(federation, order))
        self._straight_run, self._place = straight_run, torch.tensor(order).argsort()

    def participants(self, round: int) -> torch.Tensor:
        return self._place[self._straight_run.participants(round)].sort().values


def order_of_clients_changes_nothing(subject: Subject) -> None:
    """Numbers follow the clients when their order changes.

    Streams that belong to a client's number (initial weights, dropout) are taken out by a common
    initial model and no dropout. So it is where some clients take part in a round, the same ones.
    """
    batch = {"batch_size": 1000} if subject.family == "images" else {}  # batches are shuffled by number
    order = [2, 0, 3, 1]
    for participation, prefix in ((1.0, ""), (0.5, "with half of the clients in a round, ")):
        spec = subject.spec(
            initial="common",
            participation=participation,
            client={"dropout": 0.0, **batch},
            hyper=_without_dropout(subject.kind),
        )
        straight_run = play(spec, subject.federation)
        reordered_run = finish(_Reordered(straight_run, subject.federation, order))
        gap = furthest({name: value[order] for name, value in straight_run.own.items()}, reordered_run.own)
        require(
            gap < 1e-4 and same_counts(straight_run, reordered_run, order),
            f"{prefix}another order of clients gives other numbers (models {gap:.1g} apart): key a client's "
            "random streams by its data, and what the server keeps for it by 'participants', or say in the "
            "docstring why its number matters",
        )


def held_out_labels_are_not_read(subject: Subject) -> None:
    """Validation and test labels change no training number."""
    federation, rng = subject.federation, np.random.default_rng(0)
    noisy_federation = replace(
        federation,
        clients=tuple(
            replace(
                client,
                labels=np.where(
                    client.roles == TRAIN,
                    client.labels,
                    rng.integers(0, federation.classes, len(client.labels)),
                ),
            )
            for client in federation.clients
        ),
    )
    loop, noise = subject.short, play(subject.spec(), noisy_federation)
    is_same = furthest(loop.own, noise.own) == 0 and np.array_equal(loop.loss, noise.loss, equal_nan=True)
    for stage in ("received", "trained"):
        is_same &= np.array_equal(loop.correct()[stage, "train"], noise.correct()[stage, "train"])
    require(is_same, "other validation and test labels change what is trained: read training labels only")


class _Watched(Clients):
    """Clients whose ``fit`` notices when the stack it was given changes."""

    def fit(self, stack: Stack, **options: Any) -> Stack:
        before = copied(stack)
        result = super().fit(stack, **options)
        require(furthest(stack, before) == 0, "local training changes the received model in place: copy it")
        return result


def received_model_stays(subject: Subject) -> None:
    """Training leaves the received model as it is, and ``aggregate`` gets what was received of an upload."""
    loop = Run(subject.spec(), subject.federation, clients_type=_Watched)
    aggregate, adapt = loop.method.aggregate, loop.method.adapt
    loads: list[dict[str, Any]] = []

    def watched(participants: torch.Tensor, received: Stack, upload: Message) -> None:
        for name, value in loads[-1].items():
            if name in received:
                require(
                    torch.equal(received[name], value), f"{name} of the received model was changed in place"
                )
        aggregate(participants, received, upload)

    def adapting(clients: Clients, received: Stack, message: Message) -> Stack:
        received = adapt(clients, received, message)
        loads.append(copied(received))
        return received

    loop.method.aggregate = watched  # type: ignore[method-assign]
    loop.method.adapt = adapting  # type: ignore[method-assign]
    finish(loop)


def absent_clients_keep_what_they_have(subject: Subject) -> None:
    """With half of the clients in a round the others stay as they are, whoever is trained beside them."""
    ends = []
    for block_size in (1, len(SIZES)):
        loop = Run(
            subject.spec(participation=0.5, rounds=2 * ROUNDS), subject.federation, block_size=block_size
        )
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
    """Mean over clients of the test accuracy of the most frequent training class."""
    shares = []
    for client in federation.clients:
        counts = np.bincount(client.labels[client.roles == TRAIN], minlength=federation.classes)
        shares.append(float((client.labels[client.roles == TEST] == counts.argmax()).mean()))
    return float(np.mean(shares))


NODES: dict[str, Any] = {
    "rounds": 40,
    "local_epochs": 5,
    "client": {"hidden": 16, "learning_rate": 0.02, "dropout": 0.3},
}
IMAGES: dict[str, Any] = {
    "rounds": 8,
    "local_epochs": 3,
    "client": {"hidden": 16, "optimizer": "adam", "learning_rate": 0.01},
}
"""How the learnable toy of a family is learnt. Adam, since generated networks start near zero, where a few
dozen steps of plain SGD lead nowhere.
"""


def late_accuracy(subject: Subject, stage: str) -> float:
    """Mean test accuracy of the last quarter of the rounds on the learnable toy."""
    lessons = IMAGES if subject.family == "images" else NODES
    rounds = lessons["rounds"]
    result = run(subject.spec(subject.learnable, whole=True, **lessons), subject.learnable)
    require(result.state == "done", f"a run of {rounds} rounds ends as {result.state}: {result.reason}")
    late_counts = result.correct[stage, "test"][-rounds // 4 :]
    return float((late_counts / result.samples["test"]).mean())


def learns_a_toy_task(subject: Subject) -> None:
    """It beats the majority class by 20 points where anything that learns does."""
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
    shapes_and_finite_numbers,
    what_is_sent_fits,
    same_spec_is_bit_equal,
    a_run_goes_on_where_it_was_saved,
    seed_matters,
    global_generators_are_left_alone,
    block_size_changes_nothing,
    order_of_clients_changes_nothing,
    held_out_labels_are_not_read,
    received_model_stays,
    absent_clients_keep_what_they_have,
    learns_a_toy_task,
)
"""In the order in which an author wants to know."""
