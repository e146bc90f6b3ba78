"""The rules that numbers do not depend on which clients are called, trained or present together."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from bench.contract import Broken, require
from bench.contract.hooks import apart, standing_in
from bench.contract.subject import ROUNDS, SIZES, Subject
from bench.contract.toys import copied, finish, furthest, permuted, play, same_counts
from bench.engine.run import Run
from bench.errors import NotApplicableError
from bench.federation.types import Federation

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
    together = called(everyone, ROUND_HOOKS)  # copies what hooks return, as it is for groups
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
        spec = subject.spec(
            initial="common",
            participation=participation,
            client={"dropout": 0.0, **batch},
            hyper=own_dropout,
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


def absent_clients_keep_what_they_have(subject: Subject) -> None:
    """With half of the clients in a round, the other clients stay as they are, whoever is trained beside
    them.
    """
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
