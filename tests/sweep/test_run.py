"""Running a plan in worker processes: failures, resuming, what is redone, and what is never written."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_execute import by_other_code, instant, told
from fake_runs import (
    FakeFederation,
    grid,
    no_citeseer,
    stored_numbers,
    too_many_clients,
)
from scripted import Scripted
from sqlalchemy import create_engine, insert, text, update

from bench.engine.methods import METHODS
from bench.engine.result import Code, RunResult
from bench.environment import describe
from bench.errors import NoDataError, RequestError
from bench.grids import Planned, expand
from bench.store import open_store
from bench.store.models import ImportedBundle, Run
from bench.store.store import now
from bench.sweep import fingerprint
from bench.sweep.policy import Limits, Slots
from bench.sweep.run import Outcome


@pytest.fixture
def work(tmp_path: Path) -> Scripted:
    return Scripted(tmp_path / "work")


def test_first_call_runs_everything_second_call_nothing(work: Scripted) -> None:
    planned = expand(grid())
    assert work.sweep(planned, execute=instant) == Outcome({"done": 4}, 4)
    assert [line[:6] for line in work.lines] == ["[1/4] ", "[2/4] ", "[3/4] ", "[4/4] "]
    assert sorted(line.split("]")[1].split(":")[0] for line in work.lines) == [
        f" {method} cora non-overlapping 3 seed {seed}" for method in ("fedavg", "local") for seed in (0, 1)
    ]
    assert all("done 0.5 s, test " in line for line in work.lines)
    before = stored_numbers(work.url)
    assert set(before) == {plan.spec.hash for plan in planned}

    def never(*_: object) -> RunResult:
        raise AssertionError

    assert work.sweep(planned, execute=never, build=never) == Outcome({"done": 4}, 0)
    assert stored_numbers(work.url) == before


def test_one_run_for_methods_that_read_the_same_run(work: Scripted) -> None:
    planned = expand(grid(methods=("fedavg", "fedavg_ft"), seeds=(0,)))
    assert work.sweep(planned) == Outcome({"done": 2}, 1)


def test_a_wrong_request_is_refused_before_anything_is_written(work: Scripted) -> None:
    planned = expand(grid(clients=(5, 20)))
    with pytest.raises(RequestError, match="at most 10, got 20"):
        work.sweep(planned, build=too_many_clients)
    assert not work.is_begun


def test_missing_data_is_a_state_unless_there_is_nothing_else(work: Scripted) -> None:
    with pytest.raises(NoDataError, match=r"citeseer\.x"):
        work.sweep(expand(grid(datasets=("citeseer",))), build=no_citeseer)
    assert not work.is_begun
    both = expand(grid(datasets=("cora", "citeseer")))
    assert work.sweep(both, build=no_citeseer) == Outcome({"done": 4, "no_data": 4}, 4)
    with open_store(work.url, create=False) as store:
        assert set(store.runs(state="no_data")["reason"]) == {"missing citeseer.x"}
    # Once the data are there, they are run.
    assert work.sweep(both) == Outcome({"done": 8}, 4)


def test_nothing_that_says_nothing_replaces_a_result(work: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data for an older run that is to be redone: the older one stays, and stays to be redone."""
    planned = expand(grid(datasets=("cora", "citeseer"), methods=("local",)))
    assert work.sweep(planned).counts == {"done": 4}
    before = stored_numbers(work.url)
    method = METHODS.named("local")
    monkeypatch.setattr(method, "numerics", method.numerics + 1)
    fingerprint.code.cache_clear()
    assert work.sweep(planned, build=no_citeseer, execute=instant).counts == {"done": 2, "stale": 2}
    assert stored_numbers(work.url) == before
    assert work.sweep(planned, execute=instant).counts == {"done": 4}
    with open_store(work.url, create=False) as store:
        assert set(store.runs()["method_numerics"]) == {method.numerics}
    fingerprint.code.cache_clear()


def test_what_made_a_run_is_what_its_worker_had(work: Scripted) -> None:
    """Files may be edited while a sweep lasts; a new worker has what is there then."""
    assert work.sweep(expand(grid()), execute=by_other_code).counts == {"done": 4}
    with open_store(work.url, create=False) as store:
        columns = store.runs()[["method_numerics", "engine_numerics", "source_hash"]]
    assert {tuple(row) for row in columns.itertuples(index=False)} == {(7, 8, "edited")}


def test_workers_are_told_device_and_threads(work: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    assert work.sweep(expand(grid()), slots=Slots(("cpu",), 2), execute=told).ran == 4
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ
    with open_store(work.url, create=False) as store:
        runs, environments = store.runs(), store.environments()
    assert set(runs["device"]) == {"cpu"}
    assert set(runs["peak_memory"]) == {2}, "the threads passed to the run"
    assert set(runs["bytes_up"]) == {2}, "OMP_NUM_THREADS of the worker"
    assert set(runs["bytes_down"]) == {1}, "an interrupt must reach the parent alone"
    assert json.loads(environments["description"][0])["threads"] == 2


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_machine_that_was_lost_elsewhere_is_never_said_to_be_this_one(
    work: Scripted, elsewhere: bool
) -> None:
    work.sweep(expand(grid(methods=("local",), seeds=(0,))), {"*": ["exit 3"]}, Slots(("cpu",), 1, elsewhere))
    with open_store(work.url, create=False) as store:
        (description,) = map(json.loads, store.environments()["description"])
    assert description == ({} if elsewhere else describe("cpu", 1))


def other_federation(*key: Any, roots: tuple[Path, ...]) -> Any:
    """What a request makes after a federation was imported, or a data set has changed."""
    return FakeFederation(hash="another")


def local_runs(*seeds: int, method: str = "local", clients: int = 3) -> list[Planned]:
    return expand(grid(methods=(method,), seeds=seeds, clients=(clients,)))


def test_a_sweep_does_not_mix_clients(work: Scripted) -> None:
    assert work.sweep(local_runs(0)).counts == {"done": 1}
    with pytest.raises(RequestError, match=r"seed 0 is stored, made on other clients \(p\).*now \(another\)"):
        work.sweep(local_runs(0, 1), build=other_federation)
    assert work.stored().keys() == {"local 3 0"}, "nothing is written"
    assert work.sweep(local_runs(0, 1)).counts == {"done": 2}
    for planned in (local_runs(2), local_runs(0, method="fedavg")):  # of a plan of its own
        with pytest.raises(RequestError, match=r"^local .* seed 0 is stored.*; use another --db$"):
            work.sweep(planned, build=other_federation)
    assert work.stored().keys() == {"local 3 0", "local 3 1"}
    assert work.sweep(local_runs(0, clients=4), build=other_federation).counts == {"done": 1}, "another one"


def test_what_others_ran_on_other_clients_does_not_keep_ones_own_from_being_made(work: Scripted) -> None:
    assert work.sweep(local_runs(0)).counts == {"done": 1}
    with create_engine(work.url).begin() as connection:
        row = {"id": 1, "name": "theirs", "source": "", "hash": "h", "imported": now(), "sample": "{}"}
        connection.execute(insert(ImportedBundle).values(**row, state="unverified"))
        connection.execute(update(Run).values(bundle_id=1))
    assert work.sweep(local_runs(1), build=other_federation).counts == {"done": 1}


SIX = expand(grid(methods=("local",), seeds=tuple(range(6))))


def test_what_is_made_again_may_be_on_other_clients(work: Scripted) -> None:
    planned = expand(grid(methods=("local",), seeds=(0,)))
    work.sweep(planned)
    with create_engine(work.url).begin() as connection:
        connection.execute(text("UPDATE runs SET partition_hash = 'earlier', source_hash = 'earlier'"))
    with pytest.raises(RequestError, match=r"made on other clients \(earlier\)"):
        work.sweep(expand(grid(methods=("local",), seeds=(1,))))
    assert work.sweep(planned, rerun="changed").counts == {"done": 1}
    assert work.stored()["local 3 0"]["partition_hash"] == "p"


def begun(work: Scripted) -> set[str]:
    return {path.name for path in (work.folder / "attempts").iterdir()}


def test_a_failure_does_not_replace_the_run_that_was_to_be_redone(
    work: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = SIX[:2]
    work.sweep(planned)
    before = stored_numbers(work.url)
    real = fingerprint.code("local")
    monkeypatch.setattr(fingerprint, "code", lambda *_: replace(real, source="edited"))
    result = work.sweep(planned, {"local 3 0": ["raise"]}, rerun="changed")
    assert (result.counts, result.failed) == ({"done": 2}, 1)
    assert stored_numbers(work.url) == before
    assert {key: row["source_hash"] for key, row in work.stored().items()} == {
        "local 3 0": real.source,
        "local 3 1": "edited",
    }


def test_rerun_redoes_exactly_one_level(work: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:

    planned = expand(grid(methods=("local", "fedavg", "fedprox"), seeds=(0, 1)))
    work.sweep(planned[:5], {"local 3 1": ["raise"]})
    # local gets a new version, fedavg other sources; one run of fedprox is missing.
    real = fingerprint.code
    monkeypatch.setattr(METHODS.named("local"), "numerics", METHODS.named("local").numerics + 1)
    real.cache_clear()
    other = {"fedavg": "other sources"}

    def code(method: str, *others: str) -> Code:
        new_code = real(method)
        return replace(new_code, source=other.get(method, new_code.source))

    monkeypatch.setattr(fingerprint, "code", code)
    plan = work.plan(planned)
    assert plan.counts == {"stale": 1, "done": 3, "failed": 1, "missing": 1}
    names = {
        level: {f"{step.planned.method} {step.spec.seed}" for step in work.plan(planned, level).to_run}
        for level in (None, "stale", "failed", "changed")
    }
    assert names == {
        None: {"local 0", "local 1", "fedprox 1"},
        "stale": {"local 0"},
        "failed": {"local 1"},
        "changed": {"fedavg 0", "fedavg 1"},
    }
    starts = {key: len(work.attempts(key)) for key in begun(work)}
    assert work.sweep(planned, rerun="changed").ran == 2
    again = {key: len(work.attempts(key)) - number for key, number in starts.items()}
    assert {key for key, number in again.items() if number} == {"fedavg 3 0", "fedavg 3 1"}
    assert work.plan(planned, "changed").to_run == []
    assert work.sweep(planned, rerun="failed").ran == 1
    assert work.sweep(planned, rerun="stale").counts == {"done": 5, "missing": 1}
    real.cache_clear()


def saved(home: Path) -> dict[str, float]:
    """What the only checkpoint says of the run: the round that it follows and the seconds until then."""
    (path,) = (home / "checkpoints").glob("*.pt")
    state = torch.load(path, weights_only=True)
    return {"round": state["round"], "seconds": state["total"]}


@pytest.mark.parametrize(
    ("word", "state", "stays"),
    [
        pytest.param("hang", "failed", True, marks=pytest.mark.slow),
        ("signal 9", "failed", True),
        ("exit 3", "failed", True),
        ("unready", "failed", True),
        ("disk", "failed", True),
        pytest.param("oom", "oom", True, marks=pytest.mark.slow),
        ("raise", "failed", False),
        ("leave", "failed", False),
        ("done", "done", False),
    ],
)
def test_what_was_saved_stays_until_the_run_or_its_method_ends_it(
    tmp_path: Path, word: str, state: str, stays: bool
) -> None:
    planned = expand(grid(methods=("local",), seeds=(0,)))
    saved, half, other = files(tmp_path, planned[0].spec.hash)
    outcome = Scripted(tmp_path).sweep(planned, {"*": [word]}, limits=Limits(timeout=5))
    assert (outcome.counts, saved.exists()) == ({state: 1}, stays)
    assert (half.exists(), other.exists()) == (False, True)


def test_what_another_sweep_has_done_needs_nothing_saved(tmp_path: Path) -> None:
    planned = expand(grid(methods=("local",), seeds=(0, 1)))
    work = Scripted(tmp_path)
    before = work.plan(planned)
    work.sweep(planned[:1])
    saved, half, other = files(tmp_path, planned[0].spec.hash)
    assert work.sweep(planned, plan=before).ran == 1
    assert [path.exists() for path in (saved, half, other)] == [False, False, True]


def files(home: Path, spec_hash: str) -> tuple[Path, Path, Path]:
    """What was saved of a run, what a killed worker left half-written of it, and that of another run."""
    folder = home / "checkpoints"
    folder.mkdir(exist_ok=True)
    paths = (folder / f"{spec_hash}.pt", folder / f"{spec_hash}.4711.tmp", folder / "other.4711.tmp")
    for file in paths:
        file.write_text("rounds of days")
    return paths
