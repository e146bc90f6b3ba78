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
class SearchProgress:
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
    first_part = 1 if METHODS.named(spec.method).prolongable else PARTS
    return sorted({-(-rounds * part // PARTS) for part in range(first_part, PARTS + 1)})


def least_epochs(tuning: Tuning) -> float:
    """Client epochs that the default configuration takes up to its first rung, with the warm-up that its
    method declares (``warm_up_epochs``), over the seeds.
    """
    spec = tuning.spec
    share = spec.protocol.participants(spec.clients) / spec.clients
    warm_up = float(spec.hyper.get("warm_up_epochs", 0))
    return len(tuning.seeds) * (warm_up + rungs(spec)[0] * spec.protocol.local_epochs * share)


def progress_of(
    tuning: Tuning, history: Sequence[tuple[dict[str, Value], Runs]], width: int
) -> SearchProgress:
    """Where a search stands whose trials come ``width`` at a time.

    ``history`` are the configurations that have runs, those whose first run was stored earlier first.
    """
    places = {tuning.place(parameters): (parameters, runs) for parameters, runs in history}
    default = tuning.place(tuning.default)
    batch = {default: places.pop(default, (tuning.default, {}))}
    queue = list(places.items())
    trials: list[Trial] = []
    while batch:
        share = (tuning.budget - client_epochs(trials)) / len(batch)
        parts = [
            _trial(tuning, parameters, runs, share, trials) for _, (parameters, runs) in sorted(batch.items())
        ]
        batch_trials = [part for part in parts if isinstance(part, Trial)]
        trials += [
            trial.model_copy(update={"number": number})
            for number, trial in enumerate(batch_trials, len(trials))
        ]
        if len(batch_trials) < len(parts):
            specs = [spec for part in parts if isinstance(part, list) for spec in part]
            return SearchProgress(tuple(trials), tuple(specs))
        batch, queue = dict(queue[:width]), queue[width:]
        size = _size(tuning, trials, width)
        if len(batch) < size:
            for parameters in propose(tuning, trials, size):
                if len(batch) < size:
                    batch.setdefault(tuning.place(parameters), (parameters, {}))
    return SearchProgress(tuple(trials), (), ended(tuning, trials))


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
    scores: dict[int, float] = {}
    costs = {0: 0.0}
    seconds, state = 0.0, ""
    failed_run: TrialRun | None = None
    for rounds in steps:
        rung_runs = [runs[rounds][seed] for seed in tuning.seeds]
        costs[rounds] = sum(_used_epochs(tuning, run) for run in rung_runs)
        seconds = max(seconds, sum(run.seconds for run in rung_runs))  # one that diverged cannot say it
        failed_run = next((run for run in rung_runs if run.state != "searched"), None)
        if failed_run is not None:
            state = failed_run.state if failed_run.state in get_args(State) else "failed"
            break
        scores[rounds] = sum(run.validation or 0.0 for run in rung_runs) / len(rung_runs)
    last_rung = max(costs)
    begun_rungs = [rounds for rounds in runs if rounds > last_rung]
    goal, looks = tuning.spec.protocol.rounds, rungs(tuning.spec)
    if not state and last_rung == goal:
        state = "complete"
    if not state and last_rung and not begun_rungs:  # what has gone on is not stopped afterwards
        if last_rung in looks and _is_behind(before, last_rung, scores[last_rung]):
            state = "pruned"
        elif _rounds_in_reach(costs, share) <= last_rung:
            state = "cut"
    if not state:
        aim = min(begun_rungs) if begun_rungs else min(rounds for rounds in looks if rounds > last_rung)
        rounds = aim if begun_rungs or not last_rung else min(aim, _rounds_in_reach(costs, share))
        return [spec for spec in tuning.specs(parameters, rounds) if spec.seed not in runs.get(rounds, {})]
    return Trial(
        number=0,
        parameters=parameters,
        state=cast(State, state),
        validation=None if failed_run else scores[last_rung],
        client_epochs=min(costs[last_rung], share) if failed_run else costs[last_rung],
        seconds=seconds,
        reason=failed_run.reason if failed_run else "",
        reached=scores,
    )


def _used_epochs(tuning: Tuning, run: TrialRun) -> float:
    """Client epochs of a run; one that cannot say it is taken for a plain run to the end."""
    return tuning.run_epochs / len(tuning.seeds) if run.client_epochs is None else run.client_epochs


def _is_behind(before: Sequence[Trial], rounds: int, value: float) -> bool:
    """Whether it lies below the median of the completed trials' at the same rung."""
    values = [
        trial.reached[rounds] for trial in before if trial.state == "complete" and rounds in trial.reached
    ]
    return len(values) >= COMPLETED and value < median(values)


def _rounds_in_reach(costs: Mapping[int, float], share: float) -> int:
    """For how many rounds a share of client epochs suffices. What a round takes is measured between the last
    two rungs; up to the first one a warm-up counts for it, which is never too little.
    """
    (rounds, cost), (last_rounds, last_cost) = sorted(costs.items())[-2:]
    rate = max((last_cost - cost) / (last_rounds - rounds), EPSILON)
    return last_rounds + math.floor((share - last_cost) / rate + EPSILON)
