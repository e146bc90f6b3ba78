"""Whole searches on the sweep: what is stored and written, what is refused, and what stops them."""

from __future__ import annotations

import io
import sqlite3
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console
from sqlalchemy import create_engine, text

from bench.engine.result import RunResult
from bench.errors import NoDataError, NotApplicableError, RequestError
from bench.store import open_store
from bench.store.bundle import write_bundle
from bench.store.store import stored_runs
from bench.sweep.display import Display
from bench.sweep.order import Order
from bench.tune.record import Record, parse
from bench.tune.search import Searches, opened_searches, run_searches
from bench.tune.tuning import Tuning

from .toy_tuning import PLAIN, ROUNDS, Here, answer, any_federation, go_on, room, tuning

NAME = "local-cora-non-overlapping-3.json"


def url(home: Path) -> str:
    return f"sqlite:///{home / 'tuning.db'}"


def run(home: Path, searches: list[Tuning], width: int = 1, slots: int = 1, **changes: Any) -> Searches:
    arguments: dict[str, Any] = {
        "on_trial": lambda *trial: None,
        "execute": answer,
        "build": any_federation,
        **changes,
    }
    display = Display(Console(file=io.StringIO()), only_notes=True)
    return run_searches(searches, url(home), home, (), Here(("cpu",) * slots, 1), width, display, **arguments)


def read(home: Path, name: str = NAME) -> Record:
    return parse((home / "tuned" / name).read_bytes(), name)


def stored(home: Path) -> pd.DataFrame:
    with open_store(url(home), create=False) as store:
        return store.runs()


def test_the_winner_is_the_best_by_validation_and_every_trial_is_runs(tmp_path: Path) -> None:
    said: list[tuple[int, int]] = []
    tuned = run(
        tmp_path,
        [tuning(trials=9)],
        on_trial=lambda where, one: said.append((len(where.trials), one.number)),
    )
    assert not tuned.failed
    assert [file for _, file in tuned.records] == [tmp_path / "tuned" / NAME]
    record = read(tmp_path)
    expected = go_on(tuning(trials=9))
    assert [trial.parameters for trial in record.trials] == [trial.parameters for trial in expected.trials]
    assert [trial.state for trial in record.trials] == [trial.state for trial in expected.trials]
    for trial, other in zip(record.trials, expected.trials, strict=True):
        assert trial.validation == pytest.approx(other.validation, abs=1e-4)  # whole items of 10,000
        assert trial.client_epochs == other.client_epochs
    assert record.winner.validation == max(trial.validation or 0 for trial in record.trials)
    assert record.budget.model_dump() == {"trials": 9, "client_epochs": 9 * PLAIN}
    assert record.clients == "fake"
    assert said == [(count + 1, count) for count in range(9)]

    runs = stored(tmp_path)
    assert set(runs["state"]) == {"searched"}
    assert set(runs["seed"]) == {1000, 1001}
    assert set(runs["rounds"]) <= {2, 4, ROUNDS}
    with open_store(url(tmp_path), create=False) as store:
        splits = set(store.client_results(runs["id"])["split"])
    assert splits == {"train", "val"}, "no number of a test item is stored"
    content = (tmp_path / "tuned" / NAME).read_bytes()
    run(tmp_path, [tuning(trials=9)], execute=None)  # which could not be called
    assert (tmp_path / "tuned" / NAME).read_bytes() == content, "nothing was left to do"
    assert len(stored(tmp_path)) == len(runs)


@pytest.mark.slow
def test_searches_beside_each_other_do_not_change_each_other(tmp_path: Path) -> None:
    searches = [tuning(method, trials=7) for method in ("local", "fedprox", "fedsheafhn")]
    tuned = run(tmp_path, searches, width=2, slots=3)
    assert [record.study for record, _ in tuned.records] != []
    for search in searches:
        record = read(tmp_path, f"{search.spec.method}-cora-non-overlapping-3.json")
        alone = go_on(search, 2)
        assert [trial.parameters for trial in record.trials] == [trial.parameters for trial in alone.trials]


def test_a_larger_total_goes_on_and_a_smaller_one_is_refused(tmp_path: Path) -> None:
    run(tmp_path, [tuning(trials=4)])
    first = read(tmp_path)
    run(tmp_path, [tuning(trials=9)])
    assert read(tmp_path).trials[:4] == first.trials
    before = stored(tmp_path)
    with pytest.raises(RequestError, match=r"9 trials are done.* expected 9 or more, got 8"):
        run(tmp_path, [tuning(trials=8)])
    pd.testing.assert_frame_equal(stored(tmp_path), before)


def faulty(order: Order) -> RunResult:
    """No weight decay goes wrong."""
    if order.spec.client.weight_decay == 0:
        raise ValueError("first line\nsecond line")
    return answer(order)


def test_failures_are_trials_and_are_not_run_again(tmp_path: Path) -> None:
    space = {"client.learning_rate": (0.001, 0.01), "client.weight_decay": (0.0, 0.0005)}
    for _ in range(2):
        assert run(tmp_path, [tuning(trials=4, space=space)], execute=faulty).failed == {}
        by = {tuple(trial.parameters.values()): trial for trial in read(tmp_path).trials}
        assert by[0.001, 0.0].reason == by[0.01, 0.0].reason == "ValueError: first line"
        assert by[0.01, 0.0].state == "failed"
        assert (stored(tmp_path)["state"] == "failed").sum() == 2 * 2


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


def change(home: Path, statement: str) -> None:
    engine = create_engine(url(home))
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def rows(home: Path) -> list[tuple[Any, ...]]:
    """What the table of runs holds, read without a check."""
    with sqlite3.connect(home / "tuning.db") as database:
        return database.execute("select * from runs").fetchall()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("update runs set method_numerics = method_numerics - 1", "code of other numerics"),
        (
            "update runs set partition_hash = 'another'",
            r"other clients \(another\) than there are now \(fake\)",
        ),
        ("update runs set state = 'done' where id = 1", "holds runs that are reported"),
    ],
)
def test_a_database_that_does_not_fit_is_refused_and_stays(
    tmp_path: Path, statement: str, message: str
) -> None:
    run(tmp_path, [tuning(trials=2)])
    change(tmp_path, statement)
    before = rows(tmp_path)
    searches = [tuning(trials=4)]
    with pytest.raises(RequestError, match=message) as caught:
        run(tmp_path, searches)
    assert "\n" not in str(caught.value)
    if "partition_hash" not in statement:  # a dry run does not build the clients
        with pytest.raises(RequestError, match=message):
            opened_searches(url(tmp_path), searches, 1)
    assert rows(tmp_path) == before


def test_a_database_of_searches_serves_no_report(tmp_path: Path) -> None:
    run(tmp_path, [tuning(trials=1)])
    with pytest.raises(RequestError, match="holds those of searches"):
        stored_runs(url(tmp_path))
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
            disk.enter_context(room(100))

    with ExitStack() as disk, pytest.raises((RequestError, OSError)) as caught:
        run(home, [tuning(trials=4)], on_trial=fill)
    assert "\n" not in str(caught.value)
    assert not list(home.glob("tuned/*.json"))
    run(home, [tuning(trials=4)])
    assert plain(read(home)) == plain(read(tmp_path / "whole"))


def plain(record: Record) -> list[dict[str, Any]]:
    """The trials without what depends on the clock."""
    return [trial.model_dump(exclude={"seconds"}) for trial in record.trials]
