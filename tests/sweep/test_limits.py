"""When a sweep stops by itself, what it holds back, and what it redoes."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runs import cpu, grid, stored_numbers
from scripted import Scripted

from bench.engine.methods import METHODS
from bench.engine.result import Code, RunResult
from bench.errors import RequestError
from bench.grids import expand
from bench.resolve import resolve
from bench.store import Context, open_store
from bench.sweep import fingerprint
from bench.sweep.limits import Limits, checked
from bench.sweep.pauses import Pauses
from bench.sweep.plan import Step

LOCAL = expand(grid(methods=("local",), seeds=tuple(range(6))))


@pytest.fixture
def work(tmp_path: Path) -> Scripted:
    return Scripted(tmp_path)


def begun(work: Scripted) -> set[str]:
    return {path.name for path in (work.folder / "attempts").iterdir()}


def test_the_first_failure_stops_the_sweep_and_what_runs_is_kept(work: Scripted) -> None:
    script = {"local 3 0": ["raise"], "local 3 1": ["done 0.5"]}
    result = work.sweep(LOCAL, script, limits=checked(True, None, None, None))
    assert result.counts == {"failed": 1, "done": 1, "missing": 4}
    assert (result.left, result.exit_code) == ({"stopped after 1 failed": 4}, 1)
    assert begun(work) == {"local 3 0", "local 3 1"}
    assert "4 left: stopped after 1 failed" in work.lines


def test_so_many_failures_stop_the_sweep(work: Scripted) -> None:
    script = {f"local 3 {seed}": ["raise"] for seed in (0, 2, 3, 5)}
    result = work.sweep(LOCAL, script, cpu(1), checked(False, 3, None, None))
    assert result.counts == {"failed": 3, "done": 1, "missing": 2}
    assert result.left == {"stopped after 3 failed": 2}


def test_a_run_that_hangs_is_stopped_and_the_rest_goes_on(work: Scripted) -> None:
    began = time.monotonic()
    result = work.sweep(LOCAL, {"local 3 1": ["hang"]}, limits=Limits(timeout=2))
    assert time.monotonic() - began < 30
    assert result.counts == {"failed": 1, "done": 5}
    assert len(work.attempts("local 3 1")) == 1
    row = work.stored()["local 3 1"]
    assert row["reason"] == "timed out after 2 s"
    assert row["seconds_total"] == 2
    assert work.logs() == {row["spec_hash"]}


def known_to_take(work: Scripted, seconds: float) -> None:
    """One run of the kind is stored with this time."""
    spec = resolve("cora", "non-overlapping", 3, "local", 99)
    from fake_execute import outcome

    result: RunResult = outcome(spec.canonical())
    result.seconds["total"] = seconds
    from datetime import datetime

    code = fingerprint.code("local")
    with open_store(work.url, create=True) as store:
        context = Context(datetime(2026, 1, 1), {}, "0", code.method_numerics, code.engine_numerics)
        store.save(spec, result, context)


def test_nothing_starts_that_would_end_after_the_budget(work: Scripted) -> None:
    known_to_take(work, 3600)
    both = expand(grid(methods=("local", "fedavg"), seeds=(0, 1)))
    result = work.sweep(both, limits=Limits(budget=1800))
    # Runs of fedavg, whose time is unknown, may start; local is known to take an hour.
    assert result.counts == {"missing": 2, "done": 2}
    assert begun(work) == {"fedavg 3 0", "fedavg 3 1"}
    assert (result.left, result.exit_code) == ({"not to be done within the budget of 0.5 h": 2}, 0)
    assert work.sweep(both, limits=Limits(budget=7200)).counts == {"done": 4}


def test_nothing_starts_once_the_budget_is_used_up(work: Scripted) -> None:
    result = work.sweep(LOCAL, {"*": ["done 1.5"]}, limits=Limits(budget=2.5))
    done = result.counts["done"]
    assert 2 <= done < 6
    assert result.left == {f"not to be done within the budget of {2.5 / 3600:g} h": 6 - done}


def test_a_method_that_fails_alike_in_its_first_three_cells_is_held_back(work: Scripted) -> None:
    planned = expand(grid(methods=("local", "fedavg"), seeds=(0, 1), clients=(3, 4, 5, 6)))
    script = {f"local {clients} {seed}": ["raise"] for clients in (3, 4, 5, 6) for seed in (0, 1)}
    result = work.sweep(planned, script, cpu(1))
    assert result.counts == {"failed": 3, "done": 8, "missing": 5}
    assert result.exit_code == 1
    ((reason, count),) = result.left.items()
    assert count == 5
    why = "its first 3 cells failed alike: ValueError in fake_execute.py:"
    assert reason.startswith(f"local is held back: {why}")
    assert {row["clients"] for key, row in work.stored().items() if key.startswith("local")} == {3, 4, 5}
    assert any(line.startswith("5 left: local is held back") for line in work.lines)
    # Mended, everything is done.
    assert work.sweep(planned).counts == {"done": 16}


@pytest.mark.parametrize(
    "script",
    [
        {"local 3 0": ["done"]},
        {"local 4 0": ["raise other"]},
        {"local 5 0": ["exit 3"]},
    ],
    ids=["one success", "another exception", "no exception"],
)
def test_other_failures_hold_nothing_back(work: Scripted, script: dict[str, list[str]]) -> None:
    planned = expand(grid(methods=("local",), seeds=(0,), clients=(3, 4, 5)))
    raising = {f"local {clients} 0": ["raise"] for clients in (3, 4, 5)}
    result = work.sweep(planned, {**raising, **script}, cpu(1))
    assert result.left == {}
    assert result.ran == 3


@pytest.mark.parametrize(
    ("word", "limit"), [("exit 3", None), ("hang", 1.0), ("unready", None), ("disk", None)]
)
def test_what_no_run_has_raised_holds_nothing_back(work: Scripted, word: str, limit: float | None) -> None:
    planned = expand(grid(methods=("local",), seeds=(0,), clients=(3, 4, 5, 6)))
    script = {f"local {clients} 0": [word] for clients in (3, 4, 5)}
    result = work.sweep(planned, script, cpu(1), Limits(timeout=limit))
    assert (result.counts, result.left) == ({"failed": 3, "done": 1}, {})


def test_a_failure_does_not_replace_the_run_that_was_to_be_redone(
    work: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = LOCAL[:2]
    work.sweep(planned)
    before = stored_numbers(work.url)
    real = fingerprint.code("local")
    monkeypatch.setattr(fingerprint, "code", lambda *_: replace(real, source="edited"))
    result = work.sweep(planned, {"local 3 0": ["raise"]}, rerun="changed")
    assert (result.counts, result.failed, result.exit_code) == ({"done": 2}, 1, 1)
    assert stored_numbers(work.url) == before
    assert {key: row["source_hash"] for key, row in work.stored().items()} == {
        "local 3 0": real.source,
        "local 3 1": "edited",
    }


def failed(line: int, kind: str = "ValueError") -> RunResult:
    frames = f'  File "/a/b.py", line 1, in run\n    run()\n  File "/a/c.py", line {line}, in go\n    go()\n'
    text = f"{frames}{kind}: x\n"
    return RunResult("failed", f"{kind}: x", text, raised=True)


def test_three_seeds_of_one_cell_are_one_cell_and_the_place_counts() -> None:
    def steps(clients: int, seed: int = 0) -> Step:
        return Step(expand(grid(methods=("local",), seeds=(seed,), clients=(clients,)))[0], "missing")

    pauses = Pauses()
    assert [pauses.ended(steps(3, seed), failed(1)) for seed in range(5)] == [None] * 5
    assert pauses.ended(steps(4), failed(1)) is None
    assert pauses.ended(steps(5), failed(2)) is None, "another place"
    assert pauses.ended(steps(6), failed(2)) is None
    assert pauses.ended(steps(7), failed(2, "KeyError")) is None, "another type"
    assert pauses.ended(steps(8), failed(2, "KeyError")) is None
    assert pauses.ended(steps(9), failed(2, "KeyError")) == (
        "its first 3 cells failed alike: KeyError in c.py:2"
    )
    cleared = Pauses()
    cleared.ended(steps(2), RunResult("diverged"))
    assert [cleared.ended(steps(clients), failed(1)) for clients in range(3, 9)] == [None] * 6
    short = Pauses()
    short.ended(steps(2), RunResult("oom"))
    assert [short.ended(steps(clients), failed(1)) is None for clients in (3, 4, 5)] == [True, True, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((False, 0, None, None), "--max-failures expects more than 0, got 0"),
        ((False, None, -1.5, None), "--timeout expects more than 0, got -1.5"),
        ((False, None, float("nan"), None), "--timeout expects more than 0, got nan"),
        ((False, None, None, 0.0), "--budget-hours expects more than 0, got 0"),
        ((True, 3, None, None), "--fail-fast and --max-failures exclude each other"),
    ],
)
def test_limits_that_make_no_sense(options: tuple[bool, int, float, float], message: str) -> None:
    with pytest.raises(RequestError) as caught:
        checked(*options)
    assert message in str(caught.value)


def test_limits_from_options() -> None:
    assert checked(True, None, 5, 0.5) == Limits(1, 5, 1800)
    assert checked(False, 7, None, None) == Limits(7, None, None)


def test_rerun_redoes_exactly_one_level(work: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:

    planned = expand(grid(methods=("local", "fedavg", "fedprox"), seeds=(0, 1)))
    work.sweep(planned[:5], {"local 3 1": ["raise"]})
    # local gets a new version, fedavg other sources; one run of fedprox is missing.
    real = fingerprint.code
    monkeypatch.setattr(METHODS.named("local"), "numerics", METHODS.named("local").numerics + 1)
    real.cache_clear()
    other = {"fedavg": "other sources"}

    def code(method: str, model: str) -> Code:
        found = real(method)
        return replace(found, source=other.get(method, found.source))

    monkeypatch.setattr(fingerprint, "code", code)
    plan = work.plan(planned)
    assert plan.counts == {"stale": 1, "done": 3, "failed": 1, "missing": 1}
    names = {
        level: {f"{step.planned.method} {step.planned.seed}" for step in work.plan(planned, level).to_run}
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
