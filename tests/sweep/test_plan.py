"""What a plan says of stored runs, and the command that makes a run again."""

import io
import shlex

import pytest
from fake_execute import outcome
from fake_runs import grid
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from bench import engine, registry
from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.grids import Planned, expand
from bench.resolve import parse_overrides, resolve
from bench.spec import RunSpec
from bench.store.queries import Stored, Timing
from bench.sweep import devices, fingerprint, show
from bench.sweep.command import command
from bench.sweep.devices import choose, cores
from bench.sweep.plan import Plan, make_plan


def have(dataset: str) -> str:
    return ""


def stored(state: str, method: int = 1, numerics: int = engine.NUMERICS, source: str | None = None) -> Stored:
    source = fingerprint.code("local").source if source is None else source
    return Stored(1, state, "because", method, numerics, source)


def status(old: Stored | None, lacking=have) -> tuple[str, bool, bool]:
    planned = expand(grid(methods=("local",), seeds=(0,)))
    assert planned[0].spec is not None
    plan = make_plan(planned, {planned[0].spec.hash: old} if old else {}, [], lacking)
    return plan.steps[0].status, plan.steps[0].to_run, plan.steps[0].changed


@pytest.fixture(autouse=True)
def older_code_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed code is of the second version, so that there can be runs of a first one."""
    monkeypatch.setattr(engine, "NUMERICS", engine.NUMERICS + 1)
    monkeypatch.setattr(registry.method("local"), "numerics", 2)
    fingerprint.code.cache_clear()
    yield
    fingerprint.code.cache_clear()


def test_status_of_stored_runs() -> None:
    now = {"method": 2, "numerics": engine.NUMERICS}
    assert status(None) == ("missing", True, False)
    assert status(stored("done", **now)) == ("done", False, False)
    assert status(stored("done", **now, source="other")) == ("done", False, True)
    assert status(stored("diverged", **now)) == ("diverged", False, False)
    assert status(stored("not_applicable", **now)) == ("not_applicable", False, False)
    assert status(stored("failed", **now)) == ("failed", True, False)
    assert status(stored("oom", **now)) == ("oom", True, False)
    assert status(stored("no_data", **now)) == ("missing", True, False)
    assert status(stored("done", **{**now, "method": 1})) == ("stale", True, False)
    assert status(stored("done", **{**now, "numerics": engine.NUMERICS - 1})) == ("stale", True, False)
    assert status(stored("diverged", **{**now, "method": 1})) == ("stale", True, False)
    assert status(stored("done", **{**now, "method": 3})) == ("done", False, False), "newer is not stale"


def test_data_that_is_not_at_hand() -> None:
    now = {"method": 2, "numerics": engine.NUMERICS}
    assert status(None, lambda dataset: f"no {dataset}") == ("no_data", True, False)
    assert status(stored("done", **now), lambda dataset: "no") == ("done", False, False)


def test_times_are_scaled_by_rounds_and_epochs_of_like_runs_only() -> None:
    def timing(rounds: int, epochs: int, seconds: float, method: str = "local", clients: int = 3) -> Timing:
        overrides = {"protocol.rounds": rounds, "protocol.local_epochs": epochs}
        spec = resolve("cora", "non-overlapping", clients, method, 9, overrides)
        return Timing("cora", "non-overlapping", clients, method, spec.canonical(), seconds)

    # Seconds per local epoch: 0.5, 1 and 3; the median is 1.
    history = [timing(10, 2, 10.0), timing(5, 1, 5.0), timing(2, 1, 6.0), timing(1, 1, 99.0, clients=4)]
    overrides = {"protocol.rounds": 20, "protocol.local_epochs": 2}
    plan = make_plan(expand(grid(), overrides=overrides), {}, history, have)
    times = {step.planned.names[3:]: step.seconds for step in plan.steps}
    assert times == {("local", 0): 40.0, ("local", 1): 40.0, ("fedavg", 0): None, ("fedavg", 1): None}
    assert (plan.seconds, plan.unknown_times) == (80.0, 2)
    assert show.to_do(plan, 2) == "4 to run, time 40 s on 2 at a time and 2 runs whose time is unknown"
    waiting = make_plan(
        expand(grid(datasets=("cora", "citeseer"))), {}, [], lambda name: "no" * (name != "cora")
    )
    assert len(waiting.to_run) == 8
    assert show.to_do(waiting, 2) == (
        "4 to run, time unknown, no like run is stored; 4 more need data that the sweep tries to download"
    )


def test_the_table_and_the_json_name_every_cell() -> None:
    planned = [
        *expand(grid()),
        Planned("cora", "overlapping", 30, "flow", 0, None, "method 'flow' is missing"),
    ]
    plan = make_plan(planned, {}, [], have)
    out = io.StringIO()
    Console(file=out, width=120).print(show.table(plan))
    rows = [line.split() for line in out.getvalue().splitlines() if "cora" in line]
    assert [row[3:6] for row in rows] == [
        ["local", "2", "missing"],
        ["fedavg", "2", "missing"],
        ["flow", "1", "not"],
    ]
    tree = show.as_json(plan, 2)
    assert tree["counts"] == {"missing": 4, "not_implemented": 1}
    assert tree["to_run"] == 4
    assert [run["spec_hash"] is None for run in tree["runs"]] == [False] * 4 + [True]


def test_runs_of_one_spec_are_done_once() -> None:
    plan = make_plan(expand(grid(methods=("fedavg", "fedavg_ft"), seeds=(0,))), {}, [], have)
    assert len(plan.steps) == 2
    assert [step.planned.method for step in plan.to_run] == ["fedavg"]
    assert Plan(()).to_run == []


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


def test_a_slot_a_core_and_threads_that_do_not_follow_from_the_number_of_runs() -> None:
    assert len(choose("cpu", None, None, runs=1000).devices) == cores()
    assert choose("cpu", None, None, runs=1).devices == ("cpu",)
    assert {choose("cpu", jobs, None, runs).threads for jobs in (None, 1, 9) for runs in (1, 1000)} == {1}
    assert choose("cpu", 1, 2, runs=4).threads == 2
    for device, jobs, threads in (("gpu", None, None), ("cuda:77", None, None), ("cpu", 0, 1), ("cpu", 1, 0)):
        with pytest.raises(RequestError, match=r"--device|--jobs|--threads"):
            choose(device, jobs, threads, runs=4)


def test_fingerprint_differs_by_method_file() -> None:
    sources = {name: fingerprint.code(name).source for name in ("local", "fedprox", "majority")}
    assert len(set(sources.values())) == 3


def test_a_finished_run_is_summed_up_in_a_line() -> None:
    from bench.sweep.progress import line

    step = make_plan(expand(grid(methods=("local",), seeds=(0,))), {}, [], have).steps[0]
    result = outcome("x")
    for stage, split in result.correct:
        result.correct[stage, split][:] = 0
    # Best validation is in row 1; of three clients with five samples, 5, 4 and 0 are right there.
    result.correct["trained", "val"][:] = [[0, 1, 1], [1, 1, 1]]
    result.correct["trained", "test"] = result.correct["trained", "test"].copy()
    result.correct["trained", "test"][:] = [[5, 5, 5], [5, 4, 0]]
    assert line(step, result) == "local cora non-overlapping 3 seed 0: done 0.5 s, test 60.0 %"
    failed = RunResult("not_applicable", "no such thing")
    assert line(step, failed).endswith("seed 0: not applicable: no such thing")


def test_slots_on_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_visible", lambda: ["cuda:0", "cuda:1"])
    assert choose(None, None, None, runs=9).devices == ("cuda:0", "cuda:1")
    assert choose(None, 3, None, runs=9).devices == ("cuda:0", "cuda:1", "cuda:0")
    assert choose("cuda:1", None, None, runs=9).devices == ("cuda:1",)
    assert choose("cuda", None, None, runs=1).devices == ("cuda:0",)
    assert set(choose("cpu", None, None, runs=9).devices) == {"cpu"}
    monkeypatch.setattr(devices, "_visible", list)
    assert set(choose(None, None, None, runs=9).devices) == {"cpu"}
    with pytest.raises(RequestError, match="there is cpu"):
        choose("cuda", None, None, runs=9)
