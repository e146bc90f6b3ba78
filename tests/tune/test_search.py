"""Where a search stands by its runs: what comes next, what counts, and what a stop leaves."""

from __future__ import annotations

import copy
import random
import re
from statistics import median

import pytest

from bench.spec import RunSpec
from bench.tune.record import best_of
from bench.tune.search import COMPLETED, TrialRun, progress_of, rungs

from .toy_tuning import EPOCHS, PLAIN, ROUNDS, final, go_on, plain, reached, tuning, warm

SMALL = {"client.learning_rate": (0.001, 0.01), "client.dropout": (0.0, 0.5)}


def test_the_default_comes_first_and_nothing_twice() -> None:
    search = tuning(trials=30)
    where, _ = go_on(search)
    assert where.ended == "trials"
    assert where.trials[0].parameters == search.default
    assert [trial.number for trial in where.trials] == list(range(30))
    assert len({str(trial.parameters) for trial in where.trials}) == 30
    assert {trial.state for trial in where.trials} == {"complete", "pruned"}


def test_a_trial_reaches_the_mean_over_seeds_and_uses_their_sum() -> None:
    def uneven(spec: RunSpec) -> TrialRun:
        value = {1000: 0.5, 1001: 0.7}[spec.seed]
        return TrialRun(0, "searched", "", value, 3.0 * spec.protocol.rounds + spec.seed, 1.5)

    search = tuning(trials=200)
    where, _ = go_on(search, play=uneven, most=6)
    (trial,) = where.trials
    assert trial.validation == pytest.approx(0.6)
    assert trial.client_epochs == 3.0 * ROUNDS * 2 + 2001
    assert trial.seconds == 3.0


def test_a_trial_stops_below_the_median_of_the_completed_ones_at_the_same_rung() -> None:
    """The median is computed here from what the completed trials of earlier batches reached at a rung."""
    search = tuning(trials=30)
    where, stored = go_on(search)
    looks = rungs(search.spec)
    assert looks == [2, 4, 6]
    completed: list[float] = []
    stopped = 0
    for trial in where.trials:
        (spec, _) = search.specs(trial.parameters)
        last = max(next(runs for parameters, runs in stored.values() if parameters == trial.parameters))
        first_below = next(
            (
                rounds
                for rounds in looks[:-1]
                if len(completed) >= COMPLETED and final(spec) < median(completed)
            ),
            ROUNDS,
        )
        assert last == first_below
        assert trial.state == ("complete" if last == ROUNDS else "pruned")
        assert trial.validation == pytest.approx(final(spec) * last / ROUNDS)
        assert trial.client_epochs == last * EPOCHS * 2
        stopped += trial.state == "pruned"
        completed += [final(spec)] if trial.state == "complete" else []
    assert stopped > 5
    best = best_of(where.trials)
    assert best is not None
    assert best.state == "complete"


def test_the_default_is_never_stopped() -> None:
    space = {"client.learning_rate": (0.001, 0.003, 0.01, 0.03), "client.dropout": (0.0, 0.5)}

    def default_is_bad(spec: RunSpec) -> TrialRun:
        run = plain(spec)
        bad = (spec.client.learning_rate, spec.client.dropout) == (0.01, 0.5)
        return TrialRun(0, run.state, "", 0.01 if bad else run.validation, run.client_epochs, 0.1)

    where, _ = go_on(tuning(trials=8, space=space), play=default_is_bad)
    assert where.trials[0].state == "complete"
    assert where.trials[0].validation == 0.01


@pytest.mark.parametrize("width", [1, 3])
def test_a_search_that_was_stopped_goes_on_as_if_it_had_not(width: int) -> None:
    """Stopped after any number of runs, which end in any order: the same trials, and no run made twice."""
    search = tuning(trials=12)
    whole, _ = go_on(search, width)
    for stop in (1, 2, 3, 7, 16, 31, 50):
        for seed in (1, 2):
            order = random.Random(seed)
            _, stored = go_on(search, width, most=stop, order=order)
            where, _ = go_on(search, width, stored=copy.deepcopy(stored), order=order)
            assert where.trials == whole.trials


def test_another_batch_takes_another_way_from_there_on() -> None:
    search = tuning(trials=12)
    first, stored = go_on(search, 1, most=20)
    known = [trial.parameters for trial in first.trials]
    where, _ = go_on(search, 4, stored=stored)
    assert where.ended
    every = [trial.parameters for trial in where.trials]
    assert len(every) == 12
    assert all(parameters in every for parameters in known), "what was run counts"
    used = sum(trial.client_epochs for trial in where.trials)
    assert used <= search.budget


def test_nothing_runs_beside_the_default_and_then_a_batch_does() -> None:
    search = tuning(trials=9)
    where, stored = go_on(search, 4, most=0)
    assert {search.configuration(spec) == search.default for spec in where.to_run} == {True}
    where, _ = go_on(search, 4, stored=stored, most=6)
    assert len(where.trials) == 1
    assert len({str(search.configuration(spec)) for spec in where.to_run}) == 4
    assert len(where.to_run) == 4 * 2


@pytest.mark.parametrize("width", [1, 3])
def test_a_larger_total_goes_on(width: int) -> None:
    early, stored = go_on(tuning(trials=4), width)
    assert len(early.trials) == 4
    late, _ = go_on(tuning(trials=9), width, stored=stored)
    whole, _ = go_on(tuning(trials=9), width)
    assert late.trials == whole.trials


def test_a_warm_up_costs_trials_and_never_more_client_epochs() -> None:
    search = tuning(trials=8)
    for width in (1, 2, 3, 8):
        where, _ = go_on(search, width, play=warm)
        # 8 plain trials grant 192 client epochs; one takes 36 with its warm-up, fewer where it is stopped
        used = sum(trial.client_epochs for trial in where.trials)
        assert used <= search.budget == 8 * PLAIN
        assert search.budget - used < 1.5 * PLAIN, "else another trial would fit"
        assert where.ended == "client epochs"


def test_what_is_left_cuts_a_trial_between_its_rungs() -> None:
    """Three plain trials grant 72: a first one takes 24, then two side by side may use 24 each."""

    def dear_but_default(spec: RunSpec) -> TrialRun:
        run = plain(spec)
        more = 0.0 if spec.client.dropout == 0.5 else 1.0
        return TrialRun(0, "searched", "", run.validation, (run.client_epochs or 0.0) + more, 0.1)

    where, stored = go_on(tuning(trials=3, space=SMALL), 2, play=dear_but_default)
    cut = next(trial for trial in where.trials if trial.parameters["client.dropout"] == 0.0)
    # a warm-up of 1 in both runs: 10, 18, 26; after the second rung 6 are left for rounds of 4
    assert (cut.state, cut.client_epochs) == ("cut", 22.0)
    (runs,) = (runs for parameters, runs in stored.values() if parameters == cut.parameters)
    assert sorted(runs) == [2, 4, 5]


def test_with_a_budget_of_one_the_default_is_cut_and_a_larger_one_takes_it_on() -> None:
    where, stored = go_on(tuning(trials=1), play=warm)
    (cut,) = where.trials
    # Warm-up and two rounds of both runs take 12 + 8 of 24 client epochs: for all that is known by then a
    # round takes 10.
    assert (cut.state, cut.client_epochs) == ("cut", 20.0)
    spec = tuning().specs(cut.parameters, 2)[0]
    assert cut.validation == pytest.approx(reached(spec))
    assert best_of(where.trials) == cut
    where, _ = go_on(tuning(trials=3), play=warm, stored=stored)
    assert where.trials[0].state == "complete"
    assert where.trials[0].client_epochs == 1.5 * PLAIN


def test_failures_are_trials() -> None:
    def faulty(spec: RunSpec) -> TrialRun:
        if spec.client.weight_decay == 0.0:
            return TrialRun(0, "diverged", "a loss is not finite in round 1", None, 5.0, 0.5)
        if spec.client.weight_decay == 0.005 and spec.seed == 1001:
            return TrialRun(0, "failed", "ValueError: no good", None, None, 0.5)
        return plain(spec)

    space = {"client.learning_rate": (0.001, 0.01), "client.weight_decay": (0.0, 0.0005, 0.005)}
    where, _ = go_on(tuning(trials=6, space=space), play=faulty)
    by_decay = {}
    for trial in where.trials:
        by_decay.setdefault(trial.parameters["client.weight_decay"], []).append(trial)
    for trial in by_decay[0.0]:
        assert (trial.state, trial.validation, trial.client_epochs) == ("diverged", None, 10.0)
        assert re.findall(r"\d+", trial.reason) == ["1"], "the round in which it diverged"
    for trial in by_decay[0.005]:
        # the seed that failed cannot say what it used: it is taken for a plain run to the end
        assert (trial.state, trial.client_epochs) == ("failed", 2 * EPOCHS + ROUNDS * EPOCHS)
    best = best_of(where.trials)
    assert best is not None
    assert best.parameters["client.weight_decay"] == 0.0005


def test_an_exhausted_space_ends_the_search() -> None:
    where, _ = go_on(tuning(trials=9, space=SMALL), 3)
    assert (len(where.trials), where.ended) == (4, "space")


def test_runs_that_cannot_go_on_are_looked_at_once() -> None:
    """CFL's first split follows from the number of rounds."""
    search = tuning("cfl", trials=3)
    assert rungs(search.spec) == [ROUNDS]
    where = progress_of(search, [], 1)
    assert {spec.protocol.rounds for spec in where.to_run} == {ROUNDS}
