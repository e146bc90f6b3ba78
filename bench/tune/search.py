"""Where a search stands, by its stored runs: which trials have ended, and which runs come next.

Nothing of a search is kept but its runs. A trial is a configuration, run with every seed of the search to
its first rung, a number of rounds; from there the run of more rounds goes on where that of fewer has ended.
Trials come in batches: the default configuration alone, then as many as were asked for side by side. A
batch is proposed, and whether a trial of it goes on is decided, by the trials of the batches before alone.
So neither what runs beside nor how long a run takes decides anything, and a search that was stopped takes
the same way again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import cast, get_args

from bench.engine.methods import METHODS
from bench.spec import RunSpec
from bench.tune.proposals import propose
from bench.tune.record import EPSILON, State, Trial, client_epochs, dearest, ended
from bench.tune.tuning import Tuning, Value

COMPLETED = 5
"""Completed trials before any is stopped."""

PARTS = 3
"""A run is looked at after each of so many equal parts of its rounds."""


@dataclass(frozen=True)
class TrialRun:
    """A stored run. ``validation`` is the mean validation accuracy over clients of the trained model at
    its best round; ``client_epochs`` what it used, those of the run that it went on from included. Both are
    None where the run gave none. ``number`` tells the order in which runs were stored.
    """

    number: int
    state: str
    reason: str
    validation: float | None
    client_epochs: float | None
    seconds: float


Runs = dict[int, dict[int, TrialRun]]
"""The runs of a configuration: rounds -> seed -> run."""


@dataclass(frozen=True)
class Standing:
    """How far a search is: the trials that have ended, in order, the runs that come next, and which part of
    the budget is used up (empty while it goes on).
    """

    trials: tuple[Trial, ...] = ()
    to_run: tuple[RunSpec, ...] = ()
    ended: str = ""


def rungs(spec: RunSpec) -> list[int]:
    """After how many rounds a trial is looked at; the last are all of them. A method whose runs cannot go
    on with more rounds is looked at then alone.
    """
    rounds = spec.protocol.rounds
    first = 1 if METHODS.named(spec.method).prolongable else PARTS
    return sorted({-(-rounds * part // PARTS) for part in range(first, PARTS + 1)})


def standing(tuning: Tuning, stored: Sequence[tuple[dict[str, Value], Runs]], width: int) -> Standing:
    """Where a search stands whose trials come ``width`` at a time.

    ``stored`` are the configurations that have runs, those whose first run was stored earlier first.
    """
    known = {tuning.place(parameters): (parameters, runs) for parameters, runs in stored}
    first = tuning.place(tuning.default)
    batch = {first: known.pop(first, (tuning.default, {}))}
    waiting = list(known.items())
    trials: list[Trial] = []
    while batch:
        share = (tuning.budget - client_epochs(trials)) / len(batch)
        parts = [
            _trial(tuning, parameters, runs, share, trials) for _, (parameters, runs) in sorted(batch.items())
        ]
        whole = [part for part in parts if isinstance(part, Trial)]
        trials += [
            trial.model_copy(update={"number": number}) for number, trial in enumerate(whole, len(trials))
        ]
        if len(whole) < len(parts):
            specs = [spec for part in parts if isinstance(part, list) for spec in part]
            return Standing(tuple(trials), tuple(specs))
        batch, waiting = dict(waiting[:width]), waiting[width:]
        size = _size(tuning, trials, width)
        if len(batch) < size:
            for parameters in propose(tuning, trials, size):
                if len(batch) < size:
                    batch.setdefault(tuning.place(parameters), (parameters, {}))
    return Standing(tuple(trials), (), ended(tuning, trials))


def _size(tuning: Tuning, trials: Sequence[Trial], width: int) -> int:
    """How many trials may come next side by side: each may use what the dearest so far did."""
    if ended(tuning, trials):
        return 0
    room = int((tuning.budget - client_epochs(trials) + EPSILON) // dearest(tuning, trials))
    return min(width, room, min(tuning.trials, tuning.size) - len(trials))


def _trial(
    tuning: Tuning, parameters: dict[str, Value], runs: Runs, share: float, before: Sequence[Trial]
) -> Trial | list[RunSpec]:
    """A trial that may use a share of the client epochs, or the runs that it still takes."""
    steps = [rounds for rounds in sorted(runs) if runs[rounds].keys() >= set(tuning.seeds)]
    reached: dict[int, float] = {}
    costs = {0: 0.0}
    seconds, state = 0.0, ""
    bad: TrialRun | None = None
    for rounds in steps:
        made = [runs[rounds][seed] for seed in tuning.seeds]
        costs[rounds] = sum(_used(tuning, run) for run in made)
        seconds = max(seconds, sum(run.seconds for run in made))  # one that diverged cannot say it
        bad = next((run for run in made if run.state != "searched"), None)
        if bad is not None:
            state = bad.state if bad.state in get_args(State) else "failed"
            break
        reached[rounds] = sum(run.validation or 0.0 for run in made) / len(made)
    last = max(costs)
    begun = [rounds for rounds in runs if rounds > last]
    goal, looks = tuning.spec.protocol.rounds, rungs(tuning.spec)
    if not state and last == goal:
        state = "complete"
    if not state and last and not begun:  # what has gone on is not stopped afterwards
        if last in looks and _behind(before, last, reached[last]):
            state = "pruned"
        elif _reach(costs, share) <= last:
            state = "cut"
    if not state:
        aim = min(begun) if begun else min(rounds for rounds in looks if rounds > last)
        rounds = aim if begun or not last else min(aim, _reach(costs, share))
        return [spec for spec in tuning.specs(parameters, rounds) if spec.seed not in runs.get(rounds, {})]
    return Trial(
        number=0,
        parameters=parameters,
        state=cast(State, state),
        validation=None if bad else reached[last],
        client_epochs=min(costs[last], share) if bad else costs[last],
        seconds=seconds,
        reason=bad.reason if bad else "",
        reached=reached,
    )


def _used(tuning: Tuning, run: TrialRun) -> float:
    """Client epochs of a run; one that cannot say it is taken for a plain run to the end."""
    return tuning.run_epochs / len(tuning.seeds) if run.client_epochs is None else run.client_epochs


def _behind(before: Sequence[Trial], rounds: int, value: float) -> bool:
    """Whether it lies below the median of the completed trials' at the same rung."""
    others = [
        trial.reached[rounds] for trial in before if trial.state == "complete" and rounds in trial.reached
    ]
    return len(others) >= COMPLETED and value < median(others)


def _reach(costs: Mapping[int, float], share: float) -> int:
    """For how many rounds a share of client epochs suffices. What a round takes is measured between the last
    two rungs; up to the first one a warm-up counts for it, which is never too little.
    """
    (rounds, cost), (last, whole) = sorted(costs.items())[-2:]
    rate = max((whole - cost) / (last - rounds), EPSILON)
    return last + math.floor((share - whole) / rate + EPSILON)
