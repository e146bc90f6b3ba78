"""What is tried again, how often, and what is stored in the end."""

from pathlib import Path

import pytest
from fake_runs import cpu, grid
from scripted import Scripted

from bench.engine.execute import run
from bench.engine.result import RunResult
from bench.federation.build import build
from bench.grids import expand
from bench.resolve import resolve
from bench.sweep import pool, worker
from bench.sweep.devices import Slots
from bench.sweep.retries import Attempt, after_memory, noted
from bench.sweep.worker import Order

LOCAL = expand(grid(methods=("local",), seeds=(0, 1, 2), clients=(3,)))


@pytest.fixture
def work(tmp_path: Path) -> Scripted:
    return Scripted(tmp_path)


def overlaps(work: Scripted, attempt: dict[str, float], ended: float, other: str) -> bool:
    return work.attempts(other)[0]["began"] < ended and work.ended(other) > attempt["began"]


def test_out_of_memory_is_tried_alone_then_in_smaller_blocks(work: Scripted) -> None:
    script = {"local 3 0": ["oom", "oom", "done 0.3"], "local 3 1": ["done 0.5"], "local 3 2": ["done 0.2"]}
    result = work.sweep(LOCAL, script)
    assert (result.counts, result.failed, result.exit_code) == ({"done": 3}, 0, 0)
    tries = work.attempts("local 3 0")
    assert [each["shrink"] for each in tries] == [1, 1, 2]
    for other in ("local 3 1", "local 3 2"):
        assert not overlaps(work, tries[1], tries[2]["began"], other), "the second attempt is alone"
        assert not overlaps(work, tries[2], work.ended("local 3 0"), other), "and so is the third"
    assert len({each["pid"] for each in tries}) == 3, "a fresh process each time"
    assert work.stored()["local 3 0"]["reason"] == ""
    assert work.logs() == set()


@pytest.mark.slow
def test_a_run_that_never_fits_is_stored_with_its_peak_and_what_was_tried(work: Scripted) -> None:
    result = work.sweep(LOCAL[:2], {"local 3 0": ["oom"]})
    assert (result.counts, result.exit_code) == ({"oom": 1, "done": 1}, 1)
    # Three clients: blocks of all, of a half and of a quarter of them; the last is one client at most.
    assert [each["shrink"] for each in work.attempts("local 3 0")] == [1, 1, 2, 4]
    row = work.stored()["local 3 0"]
    assert row["peak_memory"] > 10 * 2**20
    assert row["reason"] == (
        f"MemoryError: no more; peak {row['peak_memory'] / 2**30:.2f} GiB; "
        "tried beside other runs, alone on the device, in blocks of 1/2, in blocks of 1/4"
    )
    # The next sweep tries it again, from the start.
    assert work.sweep(LOCAL[:2]).counts == {"done": 2}
    assert len(work.attempts("local 3 0")) == 5


def test_where_workers_say_how_many_clients_a_block_had_one_client_is_tried_once(work: Scripted) -> None:
    work.sweep(LOCAL[:1], {"*": ["oom 2"]}, slots=cpu(1))  # three clients: at first a block of two and one
    assert [each["shrink"] for each in work.attempts("local 3 0")] == [1, 2]
    reason = work.stored()["local 3 0"]["reason"]
    assert reason.endswith("tried alone on the device, in blocks of 1 client")


def test_a_run_that_was_alone_already_is_not_tried_alone_again(work: Scripted) -> None:
    work.sweep(LOCAL[:1], {"*": ["oom"]}, slots=cpu(1))
    assert [each["shrink"] for each in work.attempts("local 3 0")] == [1, 2, 4]


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


def test_a_kill_by_the_system_for_want_of_memory_is_out_of_memory(
    work: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = iter(range(1000))
    monkeypatch.setattr(pool, "kills_for_memory", lambda: next(kills))
    result = work.sweep(LOCAL[:2], {"local 3 0": ["signal 9", "signal 9", "done"]})
    assert result.counts == {"done": 2}
    assert [each["shrink"] for each in work.attempts("local 3 0")] == [1, 1, 2]
    assert work.sweep(expand(grid(methods=("local",), seeds=(7,))), {"*": ["signal 9"]}).counts == {"oom": 1}
    row = work.stored()["local 3 7"]
    assert row["reason"].startswith("the system killed the worker for want of memory; peak unknown; tried")
    # Another signal is no want of memory, whatever the counter says.
    work.sweep(expand(grid(methods=("local",), seeds=(8,))), {"*": ["signal 15"]})
    assert work.stored()["local 3 8"]["state"] == "failed"


@pytest.mark.parametrize("number", [9, 11])
def test_a_killed_worker_is_tried_three_times_more(work: Scripted, number: int) -> None:
    script = {"local 3 0": [f"signal {number}"] * 3 + ["done"], "local 3 1": [f"signal {number}"]}
    result = work.sweep(LOCAL, script)
    assert (result.counts, result.failed) == ({"done": 2, "failed": 1}, 1)
    assert len(work.attempts("local 3 0")) == 4
    assert len(work.attempts("local 3 1")) == 4
    row = work.stored()["local 3 1"]
    assert row["reason"] == f"the worker process died (killed by signal {number}), 4 times"


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("raise", "ValueError: seed 0"),
        ("exit 3", "the worker process died (exit code 3)"),
        ("leave", "SystemExit: left"),
    ],
)
def test_a_failure_of_a_method_is_kept_with_its_log_and_not_retried(
    work: Scripted, word: str, reason: str
) -> None:
    result = work.sweep(LOCAL, {"local 3 0": [word]})
    assert (result.counts, result.exit_code) == ({"failed": 1, "done": 2}, 1)
    assert len(work.attempts("local 3 0")) == 1
    row = work.stored()["local 3 0"]
    assert row["reason"] == reason
    assert work.logs() == {row["spec_hash"]}, "only failed runs leave a log"
    log = (work.folder / "logs" / f"{row['spec_hash']}.log").read_text()
    assert log.startswith("output of attempt 1\n")
    assert row["traceback"].endswith(f"log: logs/{row['spec_hash']}.log in BENCH_HOME\n")
    if word == "raise":
        for text in (log, row["traceback"]):
            assert "raise ValueError" in text
    # Done at last: the log goes.
    assert work.sweep(LOCAL).counts == {"done": 3}
    assert work.logs() == set()


def test_numbers_do_not_depend_on_the_blocks_of_a_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    monkeypatch.delenv("BENCH_DATA", raising=False)
    spec = resolve("cora", "non-overlapping", 5, "fedavg", 0, {"protocol.rounds": 2})
    sizes: list[int | None] = []

    def spied(spec_, federation, device, block_size=None, checkpoint=None):
        sizes.append(block_size)
        return run(spec_, federation, device, block_size, checkpoint)

    monkeypatch.setattr("bench.engine.execute.run", spied)
    usual = run(spec, build(*spec.federation_key))
    for shrink in (1, 2, 4, 8):
        result = worker.attempt(worker.execute, Order(spec.canonical(), (), "cpu", 1, shrink), None, True)
        assert result.state == "done", result.traceback
        for key, counts in usual.correct.items():
            assert (result.correct[key] == counts).all()
    assert sizes == [None, 2, 1, 1], "five clients in one block; halves, quarters, and one at least"


def test_a_run_out_of_memory_says_how_many_clients_a_block_had(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int | None] = []

    def full(spec_, federation, device, block_size, checkpoint):
        given.append(block_size)
        raise MemoryError

    monkeypatch.setattr("bench.engine.execute.run", full)
    spec = resolve("cora", "non-overlapping", 5, "fedavg", 0)
    said = [
        worker.attempt(worker.execute, Order(spec.canonical(), (), "cpu", 1, shrink), None, True)
        for shrink in (1, 2, 4)
    ]
    assert [(each.state, each.block) for each in said] == [("oom", 5), ("oom", 2), ("oom", 1)]
    assert given == [None, 2, 1]


@pytest.mark.slow
def test_packing_by_measured_memory(work: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    # Devices are mere names to a scripted run.
    monkeypatch.setattr("bench.sweep.writer.describe", lambda device, threads: {"device": device})
    gib = 2**30
    slots = Slots(("cuda:0",) * 4, 1, {"cuda:0": 10 * gib})
    assert slots.shared[0].memory == 7.5 * gib, "four contexts of 640 MiB"
    planned = expand(grid(methods=("local",), seeds=tuple(range(6))))
    # A peak of 2 GiB counts 2.5: after the first, which is alone, three at a time.
    script = {"local 3 0": ["gib 2 1"], "*": ["gib 2 4"]}
    assert work.sweep(planned, script, slots).counts == {"done": 6}
    spans = {
        seed: (work.attempts(f"local 3 {seed}")[0]["began"], work.ended(f"local 3 {seed}"))
        for seed in range(6)
    }
    assert all(spans[0][1] < begin for seed, (begin, _) in spans.items() if seed), "never measured: alone"
    at_once = [sum(begin <= moment < end for begin, end in spans.values()) for moment, _ in spans.values()]
    assert max(at_once) == 3
    # What was stored is known to the next sweep: nobody is alone, and four need more than there is.
    later = expand(grid(methods=("local",), seeds=tuple(range(10, 16))))
    work.sweep(later, {"*": ["gib 2 9"]}, slots)
    begins = sorted(work.attempts(f"local 3 {seed}")[0]["began"] for seed in range(10, 16))
    first_end = min(work.ended(f"local 3 {seed}") for seed in range(10, 16))
    assert sum(begin < first_end for begin in begins) == 3


def test_a_run_that_fails_on_a_gpu_leaves_its_process_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some errors every later call of the process to its device fails."""
    # Devices are mere names to a scripted run.
    monkeypatch.setattr("bench.sweep.writer.describe", lambda device, threads: {"device": device})
    planned = expand(grid(methods=("local",), seeds=(0, 1, 2)))
    script = {"local 3 0": ["raise"]}
    for device, processes in (("cuda:0", 2), ("cpu", 1)):
        (tmp_path / device).mkdir()
        work = Scripted(tmp_path / device)
        assert work.sweep(planned, script, Slots((device,), 1)).counts == {"done": 2, "failed": 1}
        first, *others = [work.attempts(f"local 3 {seed}")[0]["pid"] for seed in range(3)]
        assert len({first, *others}) == processes
