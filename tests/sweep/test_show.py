"""Plans, runs as they end and the commands that make them, as people and programs see them."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import pytest
from fake_database import FakeDatabase
from fake_execute import outcome
from fake_runs import (
    grid,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from bench import engine
from bench.cli.main import main
from bench.engine.methods import METHODS
from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.grids import Filters, Planned, ad_hoc, expand
from bench.resolve import parse_overrides, resolve
from bench.spec import RunSpec
from bench.store.queries import Stored, Timing
from bench.sweep import fingerprint, show
from bench.sweep.plan import make_plan
from bench.sweep.show import Bar, cell, command

NAME = "cora/non-overlapping/10/fedprox"


def database() -> FakeDatabase:
    """FedProx with three seeds, two of them at another mu as well, and another method beside."""
    fake = FakeDatabase()
    for seed in (0, 4, 1):
        fake.add("fedprox", seed, [1], spec=resolve("cora", "non-overlapping", 10, "fedprox", seed))
    for seed in (0, 1):
        spec = resolve("cora", "non-overlapping", 10, "fedprox", seed, {"method.mu": 0.5})
        fake.add("fedprox", seed, None, state="failed", spec=spec)
    fake.add("local", 0, [1], spec=resolve("cora", "non-overlapping", 10, "local", 0))
    return fake


def planned(command: str) -> set[str]:
    """Spec hashes of what a ``bench sweep`` line runs."""
    words = shlex.split(command)[2:]
    given: dict[str, list[str]] = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        given.setdefault(option, []).append(value)
    filters = Filters(
        tuple(given["-d"]),
        tuple(given["-s"]),
        tuple(map(int, given["-k"])),
        tuple(given["-m"]),
        tuple(map(int, given["--seed"])),
    )
    runs = expand(ad_hoc(filters), filters, parse_overrides(given.get("--set", [])))
    return {run.spec.hash for run in runs if run.spec}


def test_the_commands_make_exactly_the_runs_of_the_cell() -> None:
    runs = database().runs().assign(origin="")
    parts = cell(runs, NAME)
    assert [(part.seeds, part.states) for part in parts] == [
        ((0, 1, 4), {"done": 3}),
        ((0, 1), {"failed": 2}),
    ]
    wanted = set(runs.loc[runs["method"] == "fedprox", "spec_hash"])
    assert planned(parts[0].command) | planned(parts[1].command) == wanted
    assert planned(parts[0].command).isdisjoint(planned(parts[1].command))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cora", "expected a run's id or DATASET/SCENARIO/CLIENTS/METHOD"),
        ("cora/non-overlapping/10/fedproxx", f"did you mean '{NAME}'"),
    ],
)
def test_names_that_are_no_cell(name: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        cell(database().runs().assign(origin=""), name)


@pytest.mark.slow
def test_cells_that_come_with_the_suite_have_commands_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    with pytest.raises(SystemExit) as end:
        main(["runs", "show", "cora/non-overlapping/10/fedavg"])
    assert end.value.code == 0
    first = capsys.readouterr().out.splitlines()[:2]
    assert "done (cora)" in first[0]
    assert first[1].startswith("  bench sweep -d cora -s non-overlapping -k 10 -m fedavg --seed 0 --seed 1")


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


def have(dataset: str) -> str:
    return ""


def stored(state: str, method: int = 1, numerics: int = engine.NUMERICS, source: str | None = None) -> Stored:
    source = fingerprint.code("local").source if source is None else source
    return Stored(1, state, "because", method, numerics, source)


@pytest.fixture(autouse=True)
def older_code_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed code is of the second version, so that there can be runs of a first one."""
    monkeypatch.setattr(engine, "NUMERICS", engine.NUMERICS + 1)
    monkeypatch.setattr(METHODS.named("local"), "numerics", 2)
    fingerprint.code.cache_clear()
    yield
    fingerprint.code.cache_clear()


@pytest.mark.parametrize(
    ("seconds", "slots", "expected", "time"),
    [
        ((3600.0, 10.0), 2, 3600.0, "60 min on 2 at a time"),
        ((3600.0, 10.0), 1, 3610.0, "60 min on 1 at a time"),
        ((3600.0,), 2, 3600.0, "60 min on 2 at a time"),
        ((50.0, 20.0, 50.0), 2, 60.0, "1 min on 2 at a time"),
        ((50.0, 20.0, 50.0), 8, 50.0, "50 s on 8 at a time"),
    ],
)
def test_more_slots_than_runs_shorten_nothing(
    seconds: tuple[float, ...], slots: int, expected: float, time: str
) -> None:
    """Beside every run is one whose data are not at hand, which takes no slot."""
    methods = ("local", "fedavg", "fedprox")[: len(seconds)]
    history = []
    for method, each in zip(methods, seconds, strict=True):
        canonical = resolve("cora", "non-overlapping", 3, method, 0).canonical()
        history.append(Timing("cora", "non-overlapping", 3, method, canonical, each))
    planned = expand(grid(("cora", "citeseer"), methods, seeds=(0,)))
    plan = make_plan(planned, {}, lambda dataset: "no" * (dataset != "cora")).timed(history, "cpu")
    runs = len(seconds)
    assert show.to_do(plan, slots) == (
        f"{runs} to run, time {time}; {runs} more need data that the sweep tries to download"
    )
    assert show.took(plan, slots, 5.0, whole=True) == f"took 5 s, expected {time.partition(' on')[0]}"
    assert show.took(plan, slots, 5.0, whole=False) == "took 5 s"
    tree = show.as_json(plan, slots, None)
    assert tree["seconds"] == pytest.approx(expected)
    assert tree["device_hours"] == pytest.approx(sum(seconds) / 3600)


def test_the_table_and_the_json_name_every_cell() -> None:
    planned = [
        *expand(grid()),
        Planned("cora", "overlapping", 30, "flow", 0, None, "method 'flow' is missing"),
    ]
    plan = make_plan(planned, {}, have)
    out = io.StringIO()
    Console(file=out, width=120).print(show.table(plan))
    rows = [line.split() for line in out.getvalue().splitlines() if "cora" in line]
    assert [row[3:6] for row in rows] == [
        ["local", "2", "missing"],
        ["fedavg", "2", "missing"],
        ["flow", "1", "not"],
    ]
    tree = show.as_json(plan, 2, None)
    assert tree["counts"] == {"missing": 4, "not_implemented": 1}
    assert tree["to_run"] == 4
    assert [run["spec_hash"] is None for run in tree["runs"]] == [False] * 4 + [True]


@settings(max_examples=60, deadline=None)
@given(
    method=st.sampled_from(["local", "fedavg", "fedprox", "majority"]),
    clients=st.integers(1, 99),
    seed=st.integers(0, 2**31),
    overrides=st.fixed_dictionaries(
        {},
        optional={
            "protocol.rounds": st.integers(1, 500),
            "protocol.evaluate": st.sampled_from(["round", "epoch"]),
            "protocol.split": st.sampled_from([[40.0, 30.0, 30.0], [20, 40, 40.0], [33.3, 33.3, 33.4]]),
            "client.learning_rate": st.floats(1e-6, 10),
            "client.optimizer": st.sampled_from(["adam", "sgd"]),
            "client.dropout": st.floats(0, 0.99),
        },
    ),
    mu=st.floats(0, 1),
)
def test_the_printed_command_makes_the_same_spec(
    method: str, clients: int, seed: int, overrides: dict[str, object], mu: float
) -> None:
    own = {"method.mu": mu} if method == "fedprox" else {}
    spec = resolve("cora", "overlapping", clients, method, seed, {**overrides, **own})
    words = shlex.split(command(spec))
    assert words[:2] == ["bench", "sweep"]
    options = list(zip(words[2::2], words[3::2], strict=True))
    named = dict(options)
    again: RunSpec = resolve(
        named["-d"],
        named["-s"],
        int(named["-k"]),
        named["-m"],
        int(named["--seed"]),
        parse_overrides([value for option, value in options if option == "--set"]),
    )
    assert again.hash == spec.hash


def test_a_command_names_nothing_that_is_the_default() -> None:
    assert command(resolve("cora", "overlapping", 5, "local", 1)) == (
        "bench sweep -d cora -s overlapping -k 5 -m local --seed 1"
    )


@pytest.mark.parametrize("method", ["local", "fedavg"])  # of which one deploys what is received
def test_a_finished_run_is_summed_up_in_a_line(method: str) -> None:
    from bench.sweep.show import line

    step = make_plan(expand(grid(methods=(method,), seeds=(0,))), {}, have).steps[0]
    result = outcome(step.spec)
    for stage, split in result.correct:
        result.correct[stage, split][:] = 0
    # Best validation is in row 1; of three clients with five samples, 5, 4 and 0 are right there.
    result.correct["trained", "val"][:] = [[0, 1, 1], [1, 1, 1]]
    result.correct["trained", "test"] = result.correct["trained", "test"].copy()
    result.correct["trained", "test"][:] = [[5, 5, 5], [5, 4, 0]]
    assert line(step, result) == f"{method} cora non-overlapping 3 seed 0: done 0.5 s, test 60.0 %"
    failed = RunResult("not_applicable", "no such thing")
    assert line(step, failed).endswith("seed 0: not applicable: no such thing")


def test_a_dry_run_says_what_is_exact_compatible_and_stale_and_what_it_costs() -> None:
    planned = expand(grid(methods=("local", "fedavg"), seeds=(0, 1, 2)))
    by_name = {plan.names[3:]: plan.spec.hash for plan in planned if plan.spec}
    here = fingerprint.code("fedavg")
    rows = {
        ("local", 0): stored("done", 2),
        ("local", 1): stored("done", 1),
        ("local", 2): stored("failed", 2),
        ("fedavg", 0): Stored(2, "done", "", here.method_numerics, here.engine_numerics, "other"),
        ("fedavg", 1): Stored(3, "diverged", "", here.method_numerics, here.engine_numerics, here.source),
    }
    states = {by_name[name]: row for name, row in rows.items()}
    states[by_name["local", 0]] = Stored(
        1, "done", "", 2, here.engine_numerics, fingerprint.code("local").source
    )
    spec = planned[0].spec
    assert spec is not None
    history = [Timing("cora", "non-overlapping", 3, "local", spec.canonical(), 120.0)]
    plan = make_plan(planned, states, have).timed(history, "cpu")
    assert {level: row["runs"] for level, row in show.levels(plan).items()} == {
        "exact": 2,
        "compatible": 1,
        "stale": 1,
    }
    assert show.level_lines(plan) == [
        "compatible: 1 run (the code's sources differ, its numerics version does not), time unknown to make "
        "again; kept unless --rerun changed asks for them",
        "stale: 1 run (method numerics 1, now 2), 2 min to make again; made again by a sweep; --rerun stale "
        "makes only them",
    ]
    out = io.StringIO()
    Console(file=out, width=120).print(show.table(plan), show.methods(plan))
    text = " ".join(out.getvalue().split())
    assert "local 1 done, 1 failed, 1 stale 4 min" in text
    assert "fedavg 1 changed, 1 diverged, 1 missing unknown" in text
    # To run: local stale and failed at 2 min each, and one of fedavg whose time nobody knows.
    assert "local 2 2 min 4 min" in text
    assert "fedavg 1 1 run unknown" in text
    assert show.cost(plan, 2000.0) == "0.07 device-hours and 1 run unknown; about 6.0 kB of disk"
    assert show.cost(plan, None).endswith("; disk unknown, nothing is stored yet")
    tree = show.as_json(plan, 2, 2000.0)
    assert (tree["seconds"], tree["device_hours"], tree["bytes"]) == (120.0, pytest.approx(1 / 15), 6000)
