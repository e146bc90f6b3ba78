"""What a sweep decides on numbers alone: packing, retries, holding back, limits, and what may be asked."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.cli.main import main
from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.resolve import resolve
from bench.spec import RunSpec
from bench.sweep.policy import (
    Attempt,
    Demand,
    Device,
    Pauses,
    Placement,
    after_memory,
    check,
    noted,
    place,
)

demands = st.builds(Demand, st.none() | st.integers(0, 120), st.booleans())


machines = st.lists(
    st.tuples(st.integers(1, 4), st.none() | st.integers(1, 100)), min_size=1, max_size=3
).map(lambda sizes: [Device(f"d{i}", slots, memory) for i, (slots, memory) in enumerate(sizes)])


def simulate(waiting: list[Demand], devices: list[Device], ends: st.DataObject) -> list[tuple[int, str]]:
    """Run everything, one arbitrary run ending at a time; checks the state after every start."""
    by_name = {device.name: device for device in devices}
    left = list(range(len(waiting)))
    running: defaultdict[str, list[int]] = defaultdict(list)
    starts: list[tuple[int, str]] = []
    while left or any(running.values()):
        while True:
            at_work = {name: [waiting[run] for run in runs] for name, runs in running.items()}
            choice = place([waiting[run] for run in left], at_work, devices)
            if choice is None:
                break
            run, device = left.pop(choice[0]), by_name[choice[1]]
            running[device.name].append(run)
            starts.append((run, device.name))
            beside = [waiting[other] for other in running[device.name]]
            assert len(beside) <= device.slots
            if len(beside) > 1:
                assert not any(demand.alone for demand in beside)
                if device.memory is not None:
                    assert all(demand.memory is not None for demand in beside), "not measured yet: alone"
                    assert sum(demand.memory or 0 for demand in beside) <= device.memory
        busy = [name for name, runs in running.items() if runs]
        assert busy, "something waits and nothing runs"
        name = ends.draw(st.sampled_from(busy))
        running[name].pop(ends.draw(st.integers(0, len(running[name]) - 1)))
    return starts


@settings(max_examples=300, deadline=None)
@given(st.lists(demands, max_size=14), machines, st.data())
def test_everything_is_started_once_within_slots_and_memory(
    waiting: list[Demand], devices: list[Device], data: st.DataObject
) -> None:
    starts = simulate(waiting, devices, data)
    assert sorted(run for run, _ in starts) == list(range(len(waiting)))


@settings(max_examples=200, deadline=None)
@given(st.lists(demands, max_size=12), st.integers(1, 4), st.none() | st.integers(1, 100), st.data())
def test_on_one_device_runs_start_in_order(
    waiting: list[Demand], slots: int, memory: int | None, data: st.DataObject
) -> None:
    starts = simulate(waiting, [Device("d", slots, memory)], data)
    assert [run for run, _ in starts] == list(range(len(waiting)))


@settings(max_examples=200, deadline=None)
@given(demands, machines, st.integers(0, 2**32))
def test_a_run_that_fits_nowhere_yet_is_overtaken_only_for_as_long_as_its_device_drains(
    big: Demand, devices: list[Device], seed: int
) -> None:
    # Small runs keep coming for ever and end in any order, but none lasts for ever: each ends before as
    # many others as there are slots have ended. The one in front must start after a bounded time.
    import random

    chance = random.Random(seed)
    small, slots = Demand(1), sum(device.slots for device in devices)
    running: list[tuple[int, str]] = []  # when each was started, and where
    for moment in range(slots * slots + slots + 1):
        while True:
            at_work = {
                device.name: [small for _, name in running if name == device.name] for device in devices
            }
            choice = place([small if moment == 0 else big, *[small] * 5], at_work, devices)
            if choice is None:
                break
            if moment > 0 and choice[0] == 0:
                return
            running.append((moment, choice[1]))
        old = [run for run in running if moment - run[0] >= slots]
        running.remove(chance.choice(old or running))
    raise AssertionError("it never started")


def test_runs_go_to_the_device_with_the_fewest_and_fill_its_memory() -> None:
    devices = [Device("a", 3, 100), Device("b", 3, 50)]
    assert place([Demand(40)], {}, devices) == (0, "a")
    assert place([Demand(40)], {"a": [Demand(40)]}, devices) == (0, "b")
    assert place([Demand(40)], {"a": [Demand(40)], "b": [Demand(40)]}, devices) == (0, "a")
    assert place([Demand(40)], {"a": [Demand(40)] * 2, "b": [Demand(40)]}, devices) is None
    # What was never measured waits for an empty device; later ones may use the other device meanwhile.
    busy = {"a": [Demand(10)], "b": [Demand(10)] * 2}
    assert place([Demand(None), Demand(10)], busy, devices) == (1, "b")
    assert place([Demand(None)], {"b": [Demand(10)]}, devices) == (0, "a")
    assert place([Demand(101), Demand(1)], {"a": [Demand(10)], "b": []}, devices) == (0, "b")
    # Without known memory slots alone decide.
    assert place([Demand(None)], {"cpu": [Demand(None)]}, [Device("cpu", 2)]) == (0, "cpu")
    assert place([Demand(None, alone=True)], {"cpu": [Demand(None)]}, [Device("cpu", 2)]) is None
    assert place([Demand(None)], {"cpu": [Demand(None, alone=True)]}, [Device("cpu", 2)]) is None


def test_blocks_are_halved_until_one_client() -> None:
    for clients in (1, 2, 3, 10, 100):
        attempt: Attempt | None = Attempt(alone=True)
        shrinks = []
        while attempt is not None:
            shrinks.append(attempt.shrink)
            attempt = after_memory(attempt, clients)
        assert shrinks == [2**i for i in range(len(shrinks))]
        assert clients // shrinks[-1] <= 1
        assert len(shrinks) == 1 or clients // shrinks[-2] > 0


@pytest.mark.parametrize("silent", [range(0), range(1, 9)], ids=["all say", "the first one says"])
def test_no_block_is_tried_twice(silent: range) -> None:
    usual = 25  # of 50 clients
    attempt, blocks = Attempt(alone=True), []
    again: Attempt | None = attempt
    while again is not None:
        blocks.append(max(1, usual // again.shrink))
        known = 0 if len(blocks) - 1 in silent else blocks[-1]
        attempt = noted(again, RunResult("oom", block=known))
        again = after_memory(attempt, 50)
    assert blocks == [25, 12, 6, 3, 1]
    assert attempt.tried == (
        "alone on the device",
        "in blocks of 12 clients",
        "in blocks of 6 clients",
        "in blocks of 3 clients",
        "in blocks of 1 client",
    )


def failed(line: int, kind: str = "ValueError") -> RunResult:
    frames = f'  File "/a/b.py", line 1, in run\n    run()\n  File "/a/c.py", line {line}, in go\n    go()\n'
    text = f"{frames}{kind}: x\n"
    return RunResult("failed", f"{kind}: x", text, raised=True)


def test_three_seeds_of_one_cell_are_one_cell_and_the_place_counts() -> None:
    def spec(clients: int, seed: int = 0) -> RunSpec:
        return resolve("cora", "non-overlapping", clients, "local", seed)

    pauses = Pauses()
    assert [pauses.ended(spec(3, seed), failed(1)) for seed in range(5)] == [None] * 5
    assert pauses.ended(spec(4), failed(1)) is None
    assert pauses.ended(spec(5), failed(2)) is None, "another place"
    assert pauses.ended(spec(6), failed(2)) is None
    assert pauses.ended(spec(7), failed(2, "KeyError")) is None, "another type"
    assert pauses.ended(spec(8), failed(2, "KeyError")) is None
    assert pauses.ended(spec(9), failed(2, "KeyError")) == (
        "its first 3 cells failed alike: KeyError in c.py:2"
    )
    cleared = Pauses()
    cleared.ended(spec(2), RunResult("diverged"))
    assert [cleared.ended(spec(clients), failed(1)) for clients in range(3, 9)] == [None] * 6
    short = Pauses()
    short.ended(spec(2), RunResult("oom"))
    assert [short.ended(spec(clients), failed(1)) is None for clients in (3, 4, 5)] == [True, True, False]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--address", "auto"], "--address goes with --backend ray"),
        (["--slurm", "partition=gpu"], "--slurm goes with --backend slurm"),
        (
            ["--backend", "slurm", "--address", "auto"],
            "--address goes with --backend ray, got --backend slurm",
        ),
        (["--backend", "ray", "--devices", "cuda:1"], "--devices expects cpu or cuda with --backend ray"),
        (["--backend", "slurm", "--jobs", "0"], 'value "0" for --jobs'),
        (["--backend", "slurm", "--slurm", "partition"], "'partition'"),
        (["--backend", "slurm", "--slurm", "=3"], "'=3'"),
        (["--backend", "slurm", "--slurm", "mem_gb="], "'mem_gb='"),
        (["--backend", "rya"], "rya"),
    ],
)
def test_what_does_not_go_together_is_refused_with_and_without_the_extras(
    options: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "-d", "cora", "-m", "local", *options])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("engine", ["ray", "slurm"])
def test_a_missing_extra_is_named(engine: Literal["ray", "slurm"]) -> None:
    with pytest.raises(RequestError, match=re.escape(f"pip install 'pfl-bench[{engine}]'")) as caught:
        check(Placement(backend=engine), lambda name: None)
    assert "\n" not in str(caught.value)
