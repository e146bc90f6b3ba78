"""Running a plan in worker processes: failures, deaths, resuming, and what is never written."""

import io
import json
import os
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_execute import by_other_code, faulty, instant, told
from fake_runs import (
    any_federation,
    cpu,
    grid,
    no_citeseer,
    plan_for,
    stored_numbers,
    too_many_clients,
)
from processes import workers_below
from rich.console import Console

from bench.engine.methods import METHODS
from bench.engine.result import RunResult
from bench.errors import NoDataError, NotApplicableError, RequestError
from bench.grids import Planned, expand
from bench.store import open_store
from bench.sweep import fingerprint, worker
from bench.sweep.devices import Slots
from bench.sweep.plan import make_plan
from bench.sweep.progress import Bar, PlainLines
from bench.sweep.run import Outcome, sweep


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'out' / 'bench.db'}"


def run(
    database: str,
    planned: list[Planned],
    execute=instant,
    build=any_federation,
    jobs: int = 2,
    out: io.StringIO | None = None,
) -> Outcome:
    reporter = PlainLines(Console(file=out or io.StringIO()))
    return sweep(plan_for(database, planned), database, (), cpu(jobs), reporter, execute, build)


def test_first_call_runs_everything_second_call_nothing(database: str) -> None:
    planned = expand(grid())
    out = io.StringIO()
    assert run(database, planned, out=out) == Outcome({"done": 4}, 4)
    lines = out.getvalue().splitlines()
    assert [line[:6] for line in lines] == ["[1/4] ", "[2/4] ", "[3/4] ", "[4/4] "]
    assert sorted(line.split("]")[1].split(":")[0] for line in lines) == [
        f" {method} cora non-overlapping 3 seed {seed}" for method in ("fedavg", "local") for seed in (0, 1)
    ]
    assert all("done 0.5 s, test " in line for line in lines)
    before = stored_numbers(database)
    assert set(before) == {plan.spec.hash for plan in planned if plan.spec}

    def never(*_: object) -> RunResult:
        raise AssertionError

    assert run(database, planned, execute=never, build=never) == Outcome({"done": 4}, 0)
    assert stored_numbers(database) == before


def test_one_run_for_methods_that_read_the_same_run(database: str) -> None:
    planned = expand(grid(methods=("fedavg", "fedavg_ft"), seeds=(0,)))
    assert run(database, planned) == Outcome({"done": 2}, 1)


def test_no_failure_ends_the_sweep(database: str) -> None:
    planned = expand(grid(methods=("local",), seeds=(0, 1, 2, 3, 4, 5, 10, 11, 12)))
    outcome = run(database, planned, execute=faulty)
    assert outcome.counts == {"failed": 4, "diverged": 1, "oom": 1, "done": 3}
    assert outcome.exit_code == 1
    with open_store(database, create=False) as store:
        runs = store.runs().set_index("seed")
        assert set(store.client_results(runs["id"])["run_id"]) == set(runs.loc[[10, 11, 12], "id"])
    assert runs.loc[0, "reason"] == "ValueError: first line"
    assert "second line" in runs.loc[0, "traceback"]
    assert "raise ValueError" in runs.loc[0, "traceback"]
    assert "exit code 3" in runs.loc[1, "reason"]
    assert "signal 9" in runs.loc[2, "reason"]
    assert runs.loc[3, "reason"] == "the loss is nan in round 4"
    # What failed is tried again; what was decided is not.
    again = run(database, planned, execute=instant)
    assert again == Outcome({"done": 8, "diverged": 1}, 5)
    assert again.exit_code == 0


def test_a_wrong_request_is_refused_before_anything_is_written(database: str, tmp_path: Path) -> None:
    planned = expand(grid(clients=(5, 20)))
    with pytest.raises(RequestError, match="at most 10, got 20"):
        run(database, planned, build=too_many_clients)
    assert not list(tmp_path.iterdir())


def test_missing_data_is_a_state_unless_there_is_nothing_else(database: str, tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match=r"citeseer\.x"):
        run(database, expand(grid(datasets=("citeseer",))), build=no_citeseer)
    assert not list(tmp_path.iterdir())
    outcome = run(database, expand(grid(datasets=("cora", "citeseer"))), build=no_citeseer)
    assert outcome == Outcome({"done": 4, "no_data": 4}, 4)
    assert outcome.exit_code == 0
    with open_store(database, create=False) as store:
        assert set(store.runs(state="no_data")["reason"]) == {"missing citeseer.x"}
    # Once the data are there, they are run.
    assert run(database, expand(grid(datasets=("cora", "citeseer")))) == Outcome({"done": 8}, 4)


def test_nothing_that_says_nothing_replaces_a_result(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data for an older run that is to be redone: the older one stays, and stays to be redone."""
    planned = expand(grid(datasets=("cora", "citeseer"), methods=("local",)))
    assert run(database, planned).counts == {"done": 4}
    before = stored_numbers(database)
    method = METHODS.named("local")
    monkeypatch.setattr(method, "numerics", method.numerics + 1)
    fingerprint.code.cache_clear()
    assert run(database, planned, build=no_citeseer).counts == {"done": 2, "stale": 2}
    assert stored_numbers(database) == before
    with open_store(database, create=False) as store:
        assert list(store.runs(state="done")["dataset"]).count("citeseer") == 2
    assert run(database, planned).counts == {"done": 4}
    with open_store(database, create=False) as store:
        assert set(store.runs()["method_numerics"]) == {method.numerics}
    fingerprint.code.cache_clear()


def test_what_made_a_run_is_what_its_worker_had(database: str) -> None:
    """Files may be edited while a sweep lasts; a new worker has what is there then."""
    assert run(database, expand(grid()), execute=by_other_code).counts == {"done": 4}
    with open_store(database, create=False) as store:
        made = store.runs()[["method_numerics", "engine_numerics", "source_hash"]]
    assert {tuple(row) for row in made.itertuples(index=False)} == {(7, 8, "edited")}


def test_workers_are_told_device_and_threads(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    plan = plan_for(database, expand(grid()))
    reporter = PlainLines(Console(file=io.StringIO()))
    assert sweep(plan, database, (), Slots(("cpu",), 2), reporter, told, any_federation).ran == 4
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ
    with open_store(database, create=False) as store:
        runs, environments = store.runs(), store.environments()
    assert set(runs["device"]) == {"cpu"}
    assert set(runs["peak_memory"]) == {2}, "the threads passed to the run"
    assert set(runs["bytes_up"]) == {2}, "OMP_NUM_THREADS of the worker"
    assert set(runs["bytes_down"]) == {1}, "an interrupt must reach the parent alone"
    assert json.loads(environments["description"][0])["threads"] == 2


class Interrupting(PlainLines):
    """Presses Ctrl-C when the second run is stored."""

    def finished(self, step, result) -> None:
        super().finished(step, result)
        if self._done == 2:
            raise KeyboardInterrupt


def test_an_interrupt_stops_the_workers_and_keeps_what_is_stored(database: str) -> None:
    planned = expand(grid(seeds=(0, 1, 2)))
    with pytest.raises(KeyboardInterrupt) as caught:
        sweep(
            plan_for(database, planned),
            database,
            (),
            cpu(2),
            Interrupting(Console(file=io.StringIO())),
            instant,
            any_federation,
        )
    assert not workers_below(os.getpid())
    assert caught.tb, "held until here: the workers must not wait for it to be collected"
    assert len(stored_numbers(database)) == 2
    assert run(database, planned) == Outcome({"done": 6}, 4)


def test_the_bar_prints_the_same_lines() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120)
    planned = expand(grid(methods=("local",), seeds=(0,)))
    step = make_plan(planned, {}, lambda dataset: "").steps[0]
    with Bar(terminal) as bar:
        bar.started(1)
        bar.finished(step, RunResult("failed", "reason [red]"))
    text = terminal.file.getvalue()
    assert "[1/1] local cora non-overlapping 3 seed 0: failed: reason [red]" in text
    assert "1/1" in text


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (NoDataError("x"), "no_data"),
        (NotApplicableError("x"), "not_applicable"),
        (MemoryError("x"), "oom"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 1 bytes"), "oom"),
        (ZeroDivisionError("x"), "failed"),
    ],
)
def test_exceptions_become_states(monkeypatch: pytest.MonkeyPatch, error: Exception, state: str) -> None:
    import bench.engine.execute

    def boom(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(bench.engine.execute, "run", boom)
    spec = expand(grid(methods=("local",), seeds=(0,)))[0].spec
    assert spec is not None
    result = worker.attempt(worker.execute, worker.Order(spec.canonical(), (), "cpu", 1), None, True)
    assert result.state == state
    assert ("boom" in result.traceback) == (state in ("oom", "failed"))
    assert "\n" not in result.reason


def test_a_real_run_through_a_real_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.federation.build import build

    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("BENCH_DATA", raising=False)
    database = f"sqlite:///{tmp_path / 'bench.db'}"
    planned = expand(grid(methods=("fedavg",), seeds=(0,)), overrides={"protocol.rounds": 2})
    assert run(database, planned, worker.execute, build, jobs=1) == Outcome({"done": 1}, 1)
    spec = planned[0].spec
    assert spec is not None
    federation = build(*spec.federation_key)
    with open_store(database, create=False) as store:
        row = store.runs().iloc[0]
        results = store.client_results([row["id"]], stage="trained", split="test", rule="last")
        assert store.curve(row["id"], "trained", "val").shape == (2, 3)
    assert row["partition_hash"] == federation.hash
    np.testing.assert_array_equal(results["samples"], [client.count(2) for client in federation.clients])


def test_a_run_on_other_clients_than_the_sweeps_is_not_made(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data changed after the sweep had read them, or another machine has others."""
    from bench.federation.build import build

    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("BENCH_DATA", raising=False)
    planned = expand(grid(methods=("majority",), seeds=(0,)))
    assert run(database, planned, worker.execute, any_federation, jobs=1).counts == {"failed": 1}
    assert planned[0].spec is not None
    here = build(*planned[0].spec.federation_key)
    with open_store(database, create=False) as store:
        assert store.runs()["reason"][0] == (
            "RequestError: expected the sweep's clients (p) on every machine, "
            f"the data of this one make others ({here.hash[:8]})"
        )


class Breaking:
    """Stands in for the library's pool: the first ``broken`` ones break with their first run."""

    made = 0
    broken = 1

    def __init__(self, **_: object) -> None:
        Breaking.made += 1
        self.active, self.number = True, Breaking.made

    def schedule(
        self, function: Callable[..., RunResult], args: list[Any], timeout: float | None
    ) -> Future[RunResult]:
        if not self.active:
            raise RuntimeError("Unexpected error within the Pool")
        future: Future[RunResult] = Future()
        if self.number <= self.broken:
            self.active = False
            future.set_exception(BrokenProcessPool("All workers expired"))
        else:
            future.set_result(function(*args))
        return future

    def close(self) -> None: ...

    def stop(self) -> None: ...

    def join(self) -> None: ...


@pytest.mark.parametrize(("broken", "counts"), [(1, {"done": 3}), (4, {"done": 2, "failed": 1})])
def test_a_broken_pool_is_replaced_three_times(
    database: str, monkeypatch: pytest.MonkeyPatch, broken: int, counts: dict[str, int]
) -> None:
    monkeypatch.setattr("bench.sweep.pool.ProcessPool", Breaking)
    monkeypatch.setattr(Breaking, "made", 0)
    monkeypatch.setattr(Breaking, "broken", broken)
    outcome = run(database, expand(grid(methods=("local",), seeds=(0, 1, 2))), execute=instant, jobs=1)
    assert outcome.counts == counts
    assert Breaking.made == broken + 1
    with open_store(database, create=False) as store:
        reasons = set(store.runs(state="failed")["reason"])
    why = "the worker process could not be reached (All workers expired), 4 times"
    assert reasons == ({why} if broken == 4 else set())
