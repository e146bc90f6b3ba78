"""Where a search stands by its runs, and whole searches on the sweep."""

from __future__ import annotations

import io
import random
import sqlite3
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console
from stored_runs import any_federation

from bench.engine.result import RunResult
from bench.errors import NoDataError, NotApplicableError, RequestError
from bench.runner.display import Display
from bench.runner.run import Sweep
from bench.runner.workers import Order, OwnProcess
from bench.spec import RunSpec
from bench.store import open_store
from bench.store.bundle import write_bundle
from bench.store.store import stored_runs
from bench.studies.shipped import opened_results
from bench.tune.record import Record, winner_of
from bench.tune.search import Searches, TrialRun, opened_searches
from bench.tune.tuning import Tuning

from . import toy_tuning as toy
from .toy_tuning import EPOCHS, PLAIN, ROUNDS, best_of, go_on, plain, tuning, warm

SMALL = {"client.learning_rate": (0.001, 0.01), "client.dropout": (0.0, 0.5)}


def test_the_default_comes_first_and_nothing_twice() -> None:
    search = tuning(trials=30)
    where = go_on(search, most=0)
    assert where.to_run == [*search.specs(search.default)]
    where = go_on(search, stored=where.runs)
    assert where.ended == "trials"
    assert where.trials[0].parameters == search.default
    assert [trial.number for trial in where.trials] == list(range(30))
    assert len({str(trial.parameters) for trial in where.trials}) == 30
    assert {trial.state for trial in where.trials} == {"complete"}
    reached = [toy.final(search.specs(trial.parameters)[0]) for trial in where.trials]
    assert best_of(where).validation == max(reached)


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


@pytest.mark.parametrize("asked", [4, 12])
def test_a_search_that_was_stopped_goes_on_as_if_it_had_not(asked: int) -> None:
    """Stopped after any number of runs, which end in any order, or at a smaller total: the same trials, and
    no run made twice.
    """
    search = tuning(trials=12)
    whole = go_on(search)
    for stop in (1, 2, 3, 7, 16, 23):
        for seed in (1, 2):
            order = random.Random(seed)
            stopped = go_on(tuning(trials=asked), most=stop, order=order)
            where = go_on(search, stored=stopped.runs, order=order)
            assert where.trials == whole.trials


def test_a_warm_up_costs_trials_and_never_more_client_epochs() -> None:
    """8 plain trials grant 192 client epochs; one takes 36 with its warm-up."""
    where = go_on(tuning(trials=8), play=warm)
    assert [trial.client_epochs for trial in where.trials] == [1.5 * PLAIN] * 5
    assert where.ended == "client epochs"


def test_a_trial_that_is_dearer_than_what_is_left_for_it_is_cut() -> None:
    """Three plain trials grant 72: the first takes 24, which leaves 48 for one that takes 50."""

    def dear_but_default(spec: RunSpec) -> TrialRun:
        is_default = spec == search.specs(search.default)[spec.seed - 1000]
        return TrialRun(0, "searched", "", 0.5 if is_default else 0.95, 12.0 if is_default else 25.0, 0.1)

    search = tuning(trials=3, space=SMALL)
    where = go_on(search, play=dear_but_default)
    assert [(trial.state, trial.client_epochs) for trial in where.trials] == [("complete", 24), ("cut", 48)]
    assert best_of(where).number == 0


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
    ends = {trial.parameters["client.weight_decay"]: trial for trial in where.trials}
    diverged, failed = ends[0.0], ends[0.005]
    assert (diverged.state, diverged.validation, diverged.client_epochs) == ("diverged", None, 10.0)
    assert diverged.reason == "a loss is not finite in round 1"
    # the seed that failed cannot say what it used: it is taken for a plain run to the end
    assert (failed.state, failed.client_epochs) == ("failed", 2 * ROUNDS * EPOCHS)
    assert best_of(where).overrides["client.weight_decay"] == 0.0005


def test_an_exhausted_space_ends_the_search() -> None:
    where = go_on(tuning(trials=9, space=SMALL))
    assert (len(where.trials), where.ended) == (4, "space")


def test_the_space_is_numbered_with_the_last_parameter_fastest() -> None:
    search = tuning(space={"client.learning_rate": (0.001, 0.01), "client.dropout": (0.0, 0.5)})
    configurations = [tuple(configuration.values()) for configuration in search.configurations]
    assert configurations == [(0.001, 0.0), (0.001, 0.5), (0.01, 0.0), (0.01, 0.5)]


# Whole searches on the sweep -----------------------------------------------------------------------

NAME = "local-cora-non-overlapping-3.json"


def url(home: Path) -> str:
    return f"sqlite:///{home / 'tuning.db'}"


def run(
    home: Path,
    tunings: list[Tuning],
    slots: int = 1,
    execute: Any = toy.answer,
    build: Any = any_federation,
    on_trial: Any = lambda *trial: None,
) -> Searches:
    going, _ = opened_searches(url(home), tunings)
    searches = Searches(going, home, on_trial)
    steps, pool = searches.next_steps(going), OwnProcess(("cpu",) * slots, 1)
    display = Display(Console(file=io.StringIO()), only_notes=True)
    where = {"home": home, "follow_up": searches.follow}
    sweep = Sweep(steps, url(home), (), pool, display, execute, build, **where)
    searches.give_up(sweep.run().left)
    return searches


def read(home: Path, name: str = NAME) -> Record:
    return Record.model_validate_json((home / "tuned" / name).read_bytes())


def stored(home: Path) -> pd.DataFrame:
    with open_store(url(home), create=False) as store:
        return store.runs()


def test_the_winner_is_the_best_by_validation_and_every_trial_is_runs(tmp_path: Path) -> None:
    said: list[int] = []
    search = tuning(trials=9)
    tuned = run(tmp_path, [search], on_trial=lambda where, one: said.append(one.number))
    assert not tuned.failed
    assert list((tmp_path / "tuned").iterdir()) == [tmp_path / "tuned" / NAME]
    record, expected = read(tmp_path), go_on(search)
    assert [trial.parameters for trial in record.trials] == [trial.parameters for trial in expected.trials]
    for trial, other in zip(record.trials, expected.trials, strict=True):
        assert trial.validation == pytest.approx(other.validation, abs=1e-4)  # whole items of 10,000
        assert (trial.state, trial.client_epochs) == (other.state, other.client_epochs)
    assert record.winner.validation == max(trial.validation or 0 for trial in record.trials)
    assert record.budget.model_dump() == {"trials": 9, "client_epochs": 9 * PLAIN}
    assert (record.clients, record.space, said) == ("p", search.space, list(range(9)))

    runs = stored(tmp_path)
    assert set(runs["state"]) == {"searched"}
    assert set(runs["seed"]) == {1000, 1001}
    with open_store(url(tmp_path), create=False) as store:
        splits = set(store.client_results(runs["id"])["split"])
    assert splits == {"train", "val"}, "no number of a test item is stored"
    content = (tmp_path / "tuned" / NAME).read_bytes()
    run(tmp_path, [search], execute=None)  # which could not be called
    assert (tmp_path / "tuned" / NAME).read_bytes() == content, "nothing was left to do"


def test_a_larger_total_goes_on_and_a_smaller_one_is_refused(tmp_path: Path) -> None:
    run(tmp_path, [tuning(trials=4)])
    first = read(tmp_path)
    run(tmp_path, [tuning(trials=9)])
    assert read(tmp_path).trials[:4] == first.trials
    before = stored(tmp_path)
    with pytest.raises(RequestError, match="9 trials are done, --trials 8 is a total"):
        run(tmp_path, [tuning(trials=8)])
    pd.testing.assert_frame_equal(stored(tmp_path), before)


def broken(order: Order) -> RunResult:
    raise ValueError("no good")


def not_applicable(order: Order) -> RunResult:
    raise NotApplicableError("not on this")


def test_without_a_number_there_is_no_winner(tmp_path: Path) -> None:
    tuned = run(tmp_path / "one", [tuning(trials=1)], execute=broken)
    assert tuned.failed == {
        "local cora non-overlapping 3": "none of 1 trials gave a number: ValueError: no good"
    }
    for _ in range(2):
        tuned = run(tmp_path / "two", [tuning(trials=2), tuning("fedavg", trials=2)], execute=not_applicable)
        assert set(tuned.failed.values()) == {"not on this"}
    assert not list(tmp_path.glob("*/tuned"))


def test_data_that_are_not_to_be_had(tmp_path: Path) -> None:
    def lacking(*key: Any, roots: tuple[Path, ...]) -> Any:
        if key[0] == "cora":
            raise NoDataError("missing cora.x")
        return any_federation(*key, roots=roots)

    with pytest.raises(NoDataError, match=r"missing cora\.x"):
        run(tmp_path, [tuning()], build=lacking)
    assert not list(tmp_path.iterdir())
    tuned = run(tmp_path, [tuning(trials=2), tuning(trials=2, dataset="citeseer")], build=lacking)
    assert tuned.failed == {"local cora non-overlapping 3": "missing cora.x"}
    assert len(tuned.records) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("method_numerics = method_numerics - 1", "code of other numerics"),
        ("partition_hash = 'another'", r"other clients \(another\) than there are now \(p\)"),
        ("state = 'done' where id = 1", "holds runs that are reported"),
    ],
)
def test_a_database_that_does_not_fit_is_refused(tmp_path: Path, change: str, message: str) -> None:
    run(tmp_path, [tuning(trials=2)])
    with sqlite3.connect(tmp_path / "tuning.db") as raw:
        raw.execute(f"update runs set {change}")
    raw.close()
    with pytest.raises(RequestError, match=message):
        run(tmp_path, [tuning(trials=4)])


def test_a_database_of_searches_serves_no_report(tmp_path: Path) -> None:
    run(tmp_path, [tuning(trials=1)])
    with pytest.raises(RequestError, match="holds those of searches"):
        stored_runs(url(tmp_path))
    with pytest.raises(RequestError, match="searches"), opened_results(url(tmp_path), own=True):
        pass
    with (
        pytest.raises(RequestError, match="no run to export"),
        open_store(url(tmp_path), create=False) as store,
    ):
        write_bundle(store, store.runs(), tmp_path / "bundle")


@pytest.mark.parametrize("what", ["database", "record"])
def test_a_full_disk_ends_in_one_line_and_the_same_request_goes_on(tmp_path: Path, what: str) -> None:
    run(tmp_path / "whole", [tuning(trials=4)])
    home = tmp_path / "full"

    def fill(search: Any, one: Any) -> None:
        if one.number == (1 if what == "database" else 3):
            disk.enter_context(toy.room(100))

    with ExitStack() as disk, pytest.raises((RequestError, OSError)) as caught:
        run(home, [tuning(trials=4)], on_trial=fill)
    assert "\n" not in str(caught.value)
    assert not list(home.glob("tuned/*.json"))
    run(home, [tuning(trials=4)])
    trials, expected = read(home).trials, read(tmp_path / "whole").trials
    assert [trial.model_copy(update={"seconds": 0.0}) for trial in trials] == [
        trial.model_copy(update={"seconds": 0.0}) for trial in expected
    ]
