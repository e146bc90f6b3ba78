"""Where a search stands by its runs: what comes next, what counts, and what a stop leaves."""

from __future__ import annotations

import random
import re

import pytest

from bench.spec import RunSpec
from bench.tune.record import client_epochs, winner_of
from bench.tune.search import TrialRun

from .toy_tuning import EPOCHS, PLAIN, ROUNDS, final, go_on, plain, tuning, warm

SMALL = {"client.learning_rate": (0.001, 0.01), "client.dropout": (0.0, 0.5)}


def test_the_default_comes_first_and_nothing_twice() -> None:
    search = tuning(trials=30)
    where = go_on(search)
    assert where.ended == "trials"
    assert where.trials[0].parameters == search.default
    assert [trial.number for trial in where.trials] == list(range(30))
    assert len({str(trial.parameters) for trial in where.trials}) == 30
    assert {trial.state for trial in where.trials} == {"complete"}
    best = winner_of(where.trials)
    assert best is not None
    assert best.validation == max(final(search.specs(trial.parameters)[0]) for trial in where.trials)


def test_a_trial_reaches_the_mean_over_seeds_and_uses_their_sum() -> None:
    def uneven(spec: RunSpec) -> TrialRun:
        value = {1000: 0.5, 1001: 0.7}[spec.seed]
        return TrialRun(0, "searched", "", value, 3.0 * ROUNDS + spec.seed, 1.5)

    search = tuning(trials=200)
    where = go_on(search, play=uneven, most=2)
    (trial,) = where.trials
    assert trial.validation == pytest.approx(0.6)
    assert trial.client_epochs == 3.0 * ROUNDS * 2 + 2001
    assert trial.seconds == 3.0


@pytest.mark.parametrize("width", [1, 3])
def test_a_search_that_was_stopped_goes_on_as_if_it_had_not(width: int) -> None:
    """Stopped after any number of runs, which end in any order: the same trials, and no run made twice."""
    search = tuning(trials=12)
    whole = go_on(search, width)
    for stop in (1, 2, 3, 7, 16, 23):
        for seed in (1, 2):
            order = random.Random(seed)
            stopped = go_on(search, width, most=stop, order=order)
            where = go_on(search, width, stored=stopped.runs, order=order)
            assert where.trials == whole.trials


def test_another_batch_takes_another_way_from_there_on() -> None:
    search = tuning(trials=12)
    first = go_on(search, 1, most=9)
    known = [trial.parameters for trial in first.trials]
    where = go_on(search, 4, stored=first.runs)
    assert where.ended
    every = [trial.parameters for trial in where.trials]
    assert len(every) == 12
    assert all(parameters in every for parameters in known), "what was run counts"
    used = sum(trial.client_epochs for trial in where.trials)
    assert used <= search.budget


def test_nothing_runs_beside_the_default_and_then_a_batch_does() -> None:
    search = tuning(trials=9)
    where = go_on(search, 4, most=0)
    assert {search.place_of(spec) for spec in where.to_run} == {search.configurations.index(search.default)}
    where = go_on(search, 4, stored=where.runs, most=2)
    assert len(where.trials) == 1
    assert len({search.place_of(spec) for spec in where.to_run}) == 4
    assert len(where.to_run) == 4 * 2


@pytest.mark.parametrize("width", [1, 3])
def test_a_larger_total_goes_on(width: int) -> None:
    early = go_on(tuning(trials=4), width)
    assert len(early.trials) == 4
    late = go_on(tuning(trials=9), width, stored=early.runs)
    whole = go_on(tuning(trials=9), width)
    assert late.trials == whole.trials


def test_a_warm_up_costs_trials_and_never_more_client_epochs() -> None:
    search = tuning(trials=8)
    for width in (1, 2, 3, 8):
        where = go_on(search, width, play=warm)
        # 8 plain trials grant 192 client epochs; one takes 36 with its warm-up
        used = sum(trial.client_epochs for trial in where.trials)
        assert used <= search.budget == 8 * PLAIN
        assert search.budget - used < 1.5 * PLAIN, "else another trial would fit"
        assert where.ended == "client epochs"


def test_a_trial_that_is_dearer_than_what_is_left_for_it_is_cut() -> None:
    """Three plain trials grant 72: the first takes 24, then two side by side may use 24 each."""

    def dear_but_default(spec: RunSpec) -> TrialRun:
        run = plain(spec)
        more = 0.0 if spec.client.dropout == 0.5 else 1.0
        return TrialRun(0, "searched", "", 0.95, (run.client_epochs or 0.0) + more, 0.1)

    where = go_on(tuning(trials=3, space=SMALL), 2, play=dear_but_default)
    cut = next(trial for trial in where.trials if trial.parameters["client.dropout"] == 0.0)
    assert (cut.state, cut.validation, cut.client_epochs) == ("cut", None, 24.0)
    assert client_epochs(where.trials) == 72.0
    best = winner_of(where.trials)
    assert best is not None
    assert best.overrides["client.dropout"] == 0.5


def test_a_budget_below_the_default_has_no_winner_and_a_larger_one_takes_its_runs() -> None:
    where = go_on(tuning(trials=1), play=warm)
    assert winner_of(where.trials) is None
    assert [trial.state for trial in where.trials] == ["cut"]
    where = go_on(tuning(trials=3), play=warm, stored=where.runs)
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
    where = go_on(tuning(trials=6, space=space), play=faulty)
    by_decay = {}
    for trial in where.trials:
        by_decay.setdefault(trial.parameters["client.weight_decay"], []).append(trial)
    for trial in by_decay[0.0]:
        assert (trial.state, trial.validation, trial.client_epochs) == ("diverged", None, 10.0)
        assert re.findall(r"\d+", trial.reason) == ["1"], "the round in which it diverged"
    for trial in by_decay[0.005]:
        # the seed that failed cannot say what it used: it is taken for a plain run to the end
        assert (trial.state, trial.client_epochs) == ("failed", 2 * ROUNDS * EPOCHS)
    best = winner_of(where.trials)
    assert best is not None
    assert best.overrides["client.weight_decay"] == 0.0005


def test_an_exhausted_space_ends_the_search() -> None:
    where = go_on(tuning(trials=9, space=SMALL), 3)
    assert (len(where.trials), where.ended) == (4, "space")
