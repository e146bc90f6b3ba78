"""The rules of the contract, each a function that raises ``Broken`` with what to mend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from inspect import Parameter, isfunction, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ValidationError

from bench.contract.broken import Broken, require
from bench.contract.hooks import Counted, Watch, apart, attributes, holds_the_same, standing_in
from bench.contract.subject import ROUNDS, SIZES, Subject
from bench.contract.toys import copied, finish, furthest, permuted, play
from bench.engine.checkpoint import Checkpoint
from bench.engine.clients import Clients
from bench.engine.method import Message, Method, Stack
from bench.engine.newcomers import arrive, held_out
from bench.engine.run import Run
from bench.errors import NotApplicableError, problem_of, unknown
from bench.federation.types import TEST, TRAIN, Federation
from bench.spec import ClientSettings, Newcomers, Protocol


def same_counts(loop: Run, other_loop: Run, order: Sequence[int] | slice = slice(None)) -> bool:
    """Whether two runs count the same correct predictions, the other one for its clients in an ``order``."""
    other_counts = other_loop.correct()
    return all(np.array_equal(counts[:, order], other_counts[key]) for key, counts in loop.correct().items())


def describes_itself(subject: Subject) -> None:
    """It has a title, a docstring and a numerics version; settings that it names are there, and take what
    it says.
    """
    kind = subject.kind
    require(bool(kind.title), "give it a title, as tables shall print it")
    require(bool(kind.__doc__), "say in its docstring what it computes, and after which paper")
    require(kind.numerics >= 1, f"numerics is {kind.numerics}: start at 1, raise it when numbers change")
    problems = []
    for section, model, settings in (
        ("protocol", Protocol, kind.protocol),
        ("client", ClientSettings, kind.client),
    ):
        names = model.model_fields
        problems += [f"{section}: {unknown('key', name, names)}" for name in settings if name not in names]
        known = {name: value for name, value in settings.items() if name in names}
        problems += [f"{section}.{problem}" for problem in refused(model, known)]
    for name, values in kind.Hyper.search_space().items():
        for value in values:
            problems += [f"'search' of {problem}" for problem in refused(kind.Hyper, {name: value})]
    require(not problems, "; ".join(problems))


def refused(model: type[BaseModel], values: Mapping[str, Any]) -> list[str]:
    """What a model refuses of these values, each by itself."""
    try:
        model.model_validate(dict(values))
    except ValidationError as error:
        return [
            f"{detail['loc'][0]}: {problem_of(detail)}, got {detail['input']!r}"
            for detail in error.errors()
            if detail["loc"] and detail["loc"][0] in values
        ]
    return []


HOOKS = [name for name, value in vars(Method).items() if isfunction(value) and not name.startswith("_")]


def hooks_are_spelt_right(subject: Subject) -> None:
    """Hooks take what the engine gives them, and no public method of its own is called almost as one, which
    would never be called.
    """
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


def hooks_return_what_fits(subject: Subject) -> None:
    """Hooks return what the engine expects, and what is sent has a row for every client, of its parameter's
    shape.
    """
    for name in subject.watched.sent:
        require(name in subject.short.own, f"broadcast() names {name}, which is no parameter of a client")


ROUND_HOOKS = ("load", "adapt", "update")
"""Client hooks of a round. What warm-ups exchange methods count themselves; predictions are made by block."""


def noted(subject: Subject) -> dict[str, bool]:
    """Attributes that client hooks change, and whether they are dicts by client number."""
    state, numbers = vars(subject.short.method), set(range(len(subject.federation)))
    return {
        name: isinstance(state.get(name), dict) and state[name].keys() <= numbers
        for name in subject.watched.noted
    }


def clients_talk_in_messages_alone(subject: Subject) -> None:
    """No hook reads from an attribute what clients did, but from messages and from what clients keep. A dict
    by client number may hold what each of them notes for itself.
    """
    if not (names := noted(subject)):
        return
    everyone = [range(len(subject.federation))]
    problem = ""
    try:
        with standing_in(subject.method, apart(subject.kind, everyone, names, ("warm_up", *ROUND_HOOKS))):
            loop = play(subject.spec(), subject.federation, clients_type=Counted)
        is_kept = furthest(subject.short.own, loop.own) == 0 and same_counts(subject.short, loop)
    except Exception as error:  # whatever a hook raises that misses what it reads
        is_kept, problem = False, f" ({type(error).__name__} without it)"
    hooks = " and ".join(f"{hook}() '{name}'" for name, hook in subject.watched.noted.items())
    require(
        is_kept,
        f"what client hooks write into attributes is read by others{problem}, uncounted: {hooks}; upload "
        "what the server shall know, and keep what clients keep by add_parameters(), or in a dict by client "
        "number",
    )


GROUPS = ((1,), (0, 2, 3))
"""Clients that hooks are called for apart from each other."""


def clients_do_their_part_alone(subject: Subject) -> None:
    """Numbers do not depend on which clients a hook is called for at once."""
    clients_talk_in_messages_alone(subject)
    names, everyone = noted(subject), [range(len(subject.federation))]

    def called(groups: Sequence[Sequence[int]], hooks: Sequence[str]) -> Run:
        with standing_in(subject.method, apart(subject.kind, groups, names, hooks)):
            return play(subject.spec(), subject.federation, clients_type=Counted)

    def are_near(loop: Run, other_loop: Run) -> bool:
        return furthest(loop.own, other_loop.own) < 1e-4 and same_counts(loop, other_loop)

    loop = called(GROUPS, ROUND_HOOKS)
    if are_near(subject.short, loop):
        return
    together = called(everyone, ROUND_HOOKS)  # copies what hooks return, as it is for groups
    if are_near(together, loop):
        return
    mixing_hooks = [f"{name}()" for name in ROUND_HOOKS if not are_near(together, called(GROUPS, [name]))]
    raise Broken(
        f"{' and '.join(mixing_hooks) or 'a client hook'} gives other numbers where it is called for some "
        f"clients apart (models {furthest(together.own, loop.own):.1g} apart): it mixes clients without a "
        "message; let the server mix what they upload"
    )


def same_spec_is_bit_equal(subject: Subject) -> None:
    """The same spec twice gives the same bits, whatever the global generators hold."""
    first_run, (second_run, _) = subject.short, subject.again
    is_same = furthest(first_run.own, second_run.own) == 0 and same_counts(first_run, second_run)
    require(is_same, "two runs of one spec differ: draw from task.generator(...), keyed by what it is for")


def a_run_goes_on_where_it_was_saved(subject: Subject) -> None:
    """A run that is saved between two rounds and taken up again ends with the same bits, also where the one
    that was saved would have ended there; so do attributes that are ``derived``.
    """
    straight_run, derived = subject.short, subject.kind.derived
    for name in sorted(derived):
        require(
            hasattr(straight_run.method, name), f"'derived' names '{name}', which is no attribute after a run"
        )
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
    values, resumed_values = attributes(straight_run.method), attributes(resumed_run.method)
    for name in sorted(derived & values.keys()):
        require(
            holds_the_same(values[name], resumed_values.get(name)),
            f"a run taken up from a checkpoint ends with another '{name}', which 'derived' names: it lasts "
            "over rounds, so take it out of 'derived'",
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
            "random streams by its data, and what the server keeps for it by 'participants', change no "
            "tensor in place that all clients share, such as those of task.common(), or say in the docstring "
            "why its number matters",
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


def last_epoch_is_what_clients_keep(subject: Subject) -> None:
    """Where every local epoch is evaluated, the last one of a round is of the model that clients keep, or the
    method refuses to be evaluated so.
    """
    if not subject.kind.trains:
        return
    fast = {"learning_rate": 0.1}  # so that an epoch more is seen in what a model predicts
    try:
        by_epoch = subject.play(evaluate="epoch", client=fast)
    except NotApplicableError:
        return
    epochs = by_epoch.spec.protocol.local_epochs
    kept_counts = subject.play(client=fast).correct()
    require(
        all(
            np.array_equal(counts[epochs - 1 :: epochs], kept_counts[stage, split])
            for (stage, split), counts in by_epoch.correct().items()
            if stage == "trained"
        ),
        "with protocol.evaluate=epoch a round's last evaluation is not of the model that clients keep: give "
        "what fit() is told as copy='model' to update(), or raise NotApplicableError there",
    )


def received_model_stays(subject: Subject) -> None:
    """Training leaves the received model as it is, and ``aggregate`` gets what was received of an upload, and
    leaves what clients keep.
    """
    loop = Run(subject.spec(), subject.federation, clients_type=_Watched)
    aggregate, adapt = loop.method.aggregate, loop.method.adapt
    loads: list[dict[str, Any]] = []

    def watched(participants: torch.Tensor, received: Stack, upload: Message) -> None:
        for name, value in loads[-1].items():
            if name in received:
                require(
                    torch.equal(received[name], value), f"{name} of the received model was changed in place"
                )
        kept = copied(loop.own)
        aggregate(participants, received, upload)
        for name, value in kept.items():
            require(
                torch.equal(loop.own[name], value),
                f"aggregate() changes {name} of what clients keep: an upload shares their memory, so change "
                "none of it in place",
            )

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


def newcomers_are_sent_what_fits(subject: Subject) -> None:
    """Where it has something for clients that it has never seen, this has a row for each of them."""
    if subject.short.method.refuses_newcomers():
        return
    newcomers = Newcomers(ratio=0.75, epochs=1)
    spec = subject.spec(rounds=1).model_copy(update={"newcomers": newcomers})
    with standing_in(subject.method, Watch(subject.kind).kind):
        loop = play(spec, subject.federation)
        arrive(loop, subject.federation, held_out(newcomers, spec.seed, len(subject.federation)))


def majority_share(federation: Federation) -> float:
    """Mean over clients of the test accuracy of the most frequent training class."""
    shares = []
    for client in federation.clients:
        counts = np.bincount(client.labels[client.roles == TRAIN], minlength=federation.classes)
        shares.append(float((client.labels[client.roles == TEST] == counts.argmax()).mean()))
    return float(np.mean(shares))


def late_accuracy(subject: Subject, stage: str) -> float:
    """Mean test accuracy of the last quarter of the rounds on the learnable toy."""
    result, rounds = subject.lesson.result, subject.lesson.rounds
    require(result.state == "done", f"a run of {rounds} rounds ends as {result.state}: {result.reason}")
    late_counts = result.correct[stage, "test"][-rounds // 4 :]
    return float((late_counts / result.samples["test"]).mean())


def late_rounds_are_as_the_first(subject: Subject) -> None:
    """In a longer run, too, it draws nothing from global generators, and all that it keeps can be saved."""
    rounds = subject.lesson.rounds
    require(
        subject.lesson.left_generators,
        f"in a run of {rounds} rounds it draws from a global generator: use task.generator(...) or "
        "task.seeded(...)",
    )
    require(not subject.lesson.unkept, f"after {rounds} rounds {subject.lesson.unkept}")


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
    hooks_return_what_fits,
    clients_talk_in_messages_alone,
    clients_do_their_part_alone,
    same_spec_is_bit_equal,
    a_run_goes_on_where_it_was_saved,
    seed_matters,
    global_generators_are_left_alone,
    block_size_changes_nothing,
    order_of_clients_changes_nothing,
    held_out_labels_are_not_read,
    last_epoch_is_what_clients_keep,
    received_model_stays,
    absent_clients_keep_what_they_have,
    newcomers_are_sent_what_fits,
    late_rounds_are_as_the_first,
    learns_a_toy_task,
)
"""In the order in which an author wants to know."""
