"""What a plan says of stored runs, and the command that makes a run again."""

import io
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fake_execute import outcome
from fake_runs import grid
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from bench import engine, registry
from bench.engine.methods import METHODS
from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.grids import Planned, expand
from bench.resolve import parse_overrides, resolve
from bench.spec import RunSpec
from bench.store.queries import Stored, Timing
from bench.sweep import devices, fingerprint, show
from bench.sweep.command import command
from bench.sweep.devices import choose, cores
from bench.sweep.estimate import Estimator
from bench.sweep.plan import Plan, Status, make_plan, serves


def have(dataset: str) -> str:
    return ""


def stored(state: str, method: int = 1, numerics: int = engine.NUMERICS, source: str | None = None) -> Stored:
    source = fingerprint.code("local").source if source is None else source
    return Stored(1, state, "because", method, numerics, source)


def status(old: Stored | None, lacking=have) -> tuple[str, bool, bool]:
    planned = expand(grid(methods=("local",), seeds=(0,)))
    assert planned[0].spec is not None
    plan = make_plan(planned, {planned[0].spec.hash: old} if old else {}, lacking)
    return plan.steps[0].status, plan.steps[0].to_run, plan.steps[0].changed


@pytest.fixture(autouse=True)
def older_code_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed code is of the second version, so that there can be runs of a first one."""
    monkeypatch.setattr(engine, "NUMERICS", engine.NUMERICS + 1)
    monkeypatch.setattr(METHODS.named("local"), "numerics", 2)
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
    plan = make_plan(expand(grid(), overrides=overrides), {}, have).timed(history, "cpu")
    times = {step.planned.names[3:]: step.seconds for step in plan.steps}
    assert times == {("local", 0): 40.0, ("local", 1): 40.0, ("fedavg", 0): None, ("fedavg", 1): None}
    assert (plan.seconds, plan.unknown_times) == (80.0, 2)
    assert show.to_do(plan, 2) == "4 to run, time 40 s on 2 at a time and 2 runs whose time is unknown"
    assert show.cost(plan, None).startswith("0.02 device-hours and 2 runs unknown;")
    assert show.as_json(plan, 2, None)["seconds"] == 40.0
    nobody_knows = make_plan(expand(grid()), {}, have)
    assert show.cost(nobody_knows, None).startswith("device-hours unknown;")
    tree = show.as_json(nobody_knows, 2, None)
    assert (tree["seconds"], tree["device_hours"], tree["unknown_times"]) == (None, None, 4)
    assert show.as_json(Plan(()), 2, None)["seconds"] == 0.0
    waiting = make_plan(expand(grid(datasets=("cora", "citeseer"))), {}, lambda name: "no" * (name != "cora"))
    assert len(waiting.to_run) == 8
    assert show.to_do(waiting, 2) == (
        "4 to run, time unknown, no like run is stored; 4 more need data that the sweep tries to download"
    )


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


def test_runs_of_one_spec_are_done_once() -> None:
    plan = make_plan(expand(grid(methods=("fedavg", "fedavg_ft"), seeds=(0,))), {}, have)
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


@pytest.fixture
def hashed_anew() -> Iterator[None]:
    caches = (fingerprint.code, fingerprint._source, fingerprint._shared)
    for each in caches:
        each.cache_clear()
    yield
    for each in caches:
        each.cache_clear()


@pytest.mark.usefixtures("hashed_anew")
@pytest.mark.parametrize(
    ("edited", "changed"),
    [
        ("pfedgraph.py", {"pfedgraph"}),
        ("_neighbourhoods.py", {"fedsage", "fedsage_plus"}),  # what a method's file imports
        ("fedavg.py", {"fedavg", "fedper", "fedprox", "fedsage", "fedsage_plus"}),
        ("hypernetwork.py", {"fedavg", "fedper", "fedprox", "fedsage", "fedsage_plus", "local", "pfedgraph"}),
    ],
)
def test_fingerprint_covers_what_a_method_imports(
    edited: str, changed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("fedavg", "fedper", "fedprox", "fedsage", "fedsage_plus", "local", "pfedgraph")
    before = {name: fingerprint.code(name).source for name in names}
    real = fingerprint._hash
    monkeypatch.setattr(fingerprint, "_hash", lambda file: "x" if file.name == edited else real(file))
    assert {fingerprint.code(name).source for name in names} == set(before.values()), "read once"
    for each in (fingerprint.code, fingerprint._source, fingerprint._shared):
        each.cache_clear()
    assert {name for name in names if fingerprint.code(name).source != before[name]} == changed


@pytest.mark.usefixtures("hashed_anew")
def test_a_file_that_is_edited_later_is_not_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.py"
    text = "from bench.methods.local import Local\n\n\nclass Mine(Local):\n    name = 'mine'\n"
    file.write_text(text)
    monkeypatch.setenv(registry.PLUGINS, str(file))
    registry.forget()
    try:
        fingerprint.code("local")  # whichever is asked for first
        file.write_text(text + "    numerics = 5\n")
        late = fingerprint.code("mine")
        for each in (fingerprint.code, fingerprint._source):
            each.cache_clear()
        assert fingerprint.code("mine").source != late.source
    finally:
        monkeypatch.delenv(registry.PLUGINS)
        registry.forget()


@pytest.mark.usefixtures("hashed_anew")
def test_the_sources_of_a_run_are_those_of_a_client_model_of_ones_own_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "wider.py"
    text = "from bench.nn.gcn import GCN\n\n\nclass Wider(GCN):\n    name = 'wider'\n"
    sources = []
    monkeypatch.setenv(registry.PLUGINS, str(file))
    try:
        for edited in (text, text + "    batches = True\n"):
            file.write_text(edited)
            registry.forget()
            for each in (fingerprint.code, fingerprint._source):
                each.cache_clear()
            sources.append({model: fingerprint.code("local", model).source for model in ("gcn", "wider")})
    finally:
        monkeypatch.delenv(registry.PLUGINS)
        registry.forget()
    first, second = sources
    assert first["gcn"] == second["gcn"] == fingerprint.code("local").source
    assert len({first["gcn"], first["wider"], second["wider"]}) == 3


@pytest.mark.parametrize("state", ["done", "diverged", "not_applicable", "failed", "no_data"])
@pytest.mark.parametrize("asked", ["missing", "failed", "no_data", "stale", "done"])
def test_when_a_run_of_another_sweep_serves(asked: Status, state: str) -> None:
    step = replace(make_plan(expand(grid(methods=("local",), seeds=(0,))), {}, have).steps[0], status=asked)
    settled = state in ("done", "diverged", "not_applicable")
    now = {"method": 2, "numerics": engine.NUMERICS}
    assert serves(stored(state, **now), step) == settled
    assert serves(stored(state, **now, source="other"), step) == (settled and asked not in ("stale", "done"))
    assert not serves(stored(state, method=1, numerics=engine.NUMERICS), step)
    assert not serves(stored(state, method=2, numerics=engine.NUMERICS - 1), step)


@pytest.mark.parametrize("method", ["local", "fedavg"])  # of which one deploys what is received
def test_a_finished_run_is_summed_up_in_a_line(method: str) -> None:
    from bench.sweep.progress import line

    step = make_plan(expand(grid(methods=(method,), seeds=(0,))), {}, have).steps[0]
    result = outcome("x")
    for stage, split in result.correct:
        result.correct[stage, split][:] = 0
    # Best validation is in row 1; of three clients with five samples, 5, 4 and 0 are right there.
    result.correct["trained", "val"][:] = [[0, 1, 1], [1, 1, 1]]
    result.correct["trained", "test"] = result.correct["trained", "test"].copy()
    result.correct["trained", "test"][:] = [[5, 5, 5], [5, 4, 0]]
    assert line(step, result) == f"{method} cora non-overlapping 3 seed 0: done 0.5 s, test 60.0 %"
    failed = RunResult("not_applicable", "no such thing")
    assert line(step, failed).endswith("seed 0: not applicable: no such thing")


def test_slots_on_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    gib = 2**30
    monkeypatch.setattr(devices, "_visible", lambda: {"cuda:0": 80 * gib, "cuda:1": 40 * gib})
    monkeypatch.setattr(devices, "cores", lambda: 6)
    assert choose(None, None, None, runs=99).devices == ("cuda:0", "cuda:1") * 3, "as many as cores"
    assert choose("cuda:1", None, None, runs=99).devices == ("cuda:1",) * 4, "at most four each"
    assert choose(None, 3, None, runs=9).devices == ("cuda:0", "cuda:1", "cuda:0")
    assert choose("cuda:1,cuda:0", 2, None, runs=9).devices == ("cuda:1", "cuda:0")
    assert choose("cuda", None, None, runs=1).devices == ("cuda:0",)
    assert set(choose("cpu", None, None, runs=9).devices) == {"cpu"}
    shared = choose(None, 5, None, runs=9).shared
    assert [(each.name, each.slots, each.memory) for each in shared] == [
        ("cuda:0", 3, (80 - 3 * 0.625) * gib),
        ("cuda:1", 2, (40 - 2 * 0.625) * gib),
    ]
    assert [each.memory for each in choose("cpu", 2, None, runs=9).shared] == [None]
    for wrong, message in (
        ("cuda:0,cuda:0", "every device once"),
        ("cpu,cuda:0", "--devices expects cpu, cuda or GPUs"),
        ("cuda:2", "unknown device 'cuda:2': did you mean 'cuda:"),
    ):
        with pytest.raises(RequestError, match=message):
            choose(wrong, None, None, runs=9)
    monkeypatch.setattr(devices, "_visible", dict)
    assert set(choose(None, None, None, runs=9).devices) == {"cpu"}
    with pytest.raises(RequestError, match="there is cpu"):
        choose("cuda", None, None, runs=9)


def test_memory_to_set_aside_is_the_greatest_peak_on_a_gpu_and_a_quarter() -> None:
    def timing(seed: int, device: str, peak: int) -> Timing:
        spec = resolve("cora", "non-overlapping", 3, "local", seed)
        return Timing("cora", "non-overlapping", 3, "local", spec.canonical(), 1.0, device, peak)

    wanted = resolve("cora", "non-overlapping", 3, "local", 7)
    history = [timing(0, "cpu", 10**9), timing(1, "cuda:0", 400), timing(2, "cuda:1", 800)]
    assert Estimator(history[:1], "cuda").memory(wanted) is None, "what a CPU took says nothing"
    estimator = Estimator(history, "cuda")
    assert estimator.memory(wanted) == 1000
    assert estimator.memory(resolve("cora", "non-overlapping", 4, "local", 7)) is None
    estimator.add(wanted, 5.0, "cuda:0", 1600)
    assert estimator.memory(wanted) == 2000
    # 1 s twice and 5 s: the median run takes 1 s, whatever its seed.
    assert estimator.seconds(wanted) == pytest.approx(1.0)


def test_times_are_of_the_sort_of_device_that_runs_go_to() -> None:
    """Else a laptop's history would tell what a GPU takes, and the other way round."""
    specs = [resolve("cora", "non-overlapping", 3, "local", seed) for seed in range(3)]
    history = [
        Timing("cora", "non-overlapping", 3, "local", spec.canonical(), seconds, device)
        for spec, seconds, device in zip(specs, (90.0, 6.0, 8.0), ("cpu", "cuda:0", "cuda:1"), strict=True)
    ]
    plan = make_plan(expand(grid(methods=("local",), seeds=(7,))), {}, have)
    assert plan.timed(history, "cpu").seconds == pytest.approx(90)
    assert plan.timed(history, "cuda").seconds == pytest.approx(7)
    assert plan.timed(history[:1], "cuda").unknown_times == 1, "a probe is to measure it"
    estimator = Estimator(history[:1], "cuda")
    estimator.add(specs[1], 6.0, "cpu", 0)
    assert estimator.seconds(specs[0]) is None


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
    assert {level: found["runs"] for level, found in show.levels(plan).items()} == {
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
