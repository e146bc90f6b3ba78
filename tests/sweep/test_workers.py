"""Worker processes: what happens in them, how their ends become outcomes, and what is left of them."""

import errno
import gc
import io
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from fake_execute import WhileTakenUp, chatty, faulty, frozen, instant, scripted, unreadable
from fake_runs import (
    any_federation,
    cpu,
    grid,
    plan_for,
)
from processes import workers_below
from rich.console import Console
from scripted import Scripted

from bench.engine.execute import run
from bench.engine.result import RunResult
from bench.errors import NoDataError, NotApplicableError, RequestError
from bench.federation.build import build
from bench.grids import expand
from bench.resolve import resolve
from bench.spec import RunSpec
from bench.sweep import fingerprint, workers
from bench.sweep.run import Outcome, sweep
from bench.sweep.show import PlainLines
from bench.sweep.workers import Checkpoints, Execute, LocalWorkers, Lost, Order, WorkerProcess, choose, cores

PLANNED = expand(grid(methods=("local",), seeds=(0, 1, 2)))


def order(*roots: Path) -> Order:
    spec = PLANNED[0].spec
    assert spec is not None
    return Order(spec, tuple(map(str, roots)), "cpu", 1)


@contextmanager
def one(execute: Execute, timeout: float | None = None) -> Iterator[LocalWorkers]:
    workers = LocalWorkers(1, execute, timeout)
    try:
        yield workers
    finally:
        workers.stop()
    assert not workers_below(os.getpid())


def swept(tmp_path: Path, signals: str, silence: float = 300.0) -> tuple[Outcome, list[str]]:
    """A sweep of three runs, one after the other; whoever takes up a run gets the next of some signals."""
    (tmp_path / "script").write_text(signals)
    out, url = io.StringIO(), f"sqlite:///{tmp_path / 'bench.db'}"
    outcome = sweep(
        plan_for(url, PLANNED),
        url,
        (),
        cpu(1),
        PlainLines(Console(file=out)),
        WhileTakenUp(tmp_path / "script"),
        any_federation,
        make_workers=partial(LocalWorkers, silence=silence),
    )
    assert not workers_below(os.getpid())
    return outcome, out.getvalue().splitlines()


def test_a_run_whose_worker_is_killed_while_it_takes_it_up_is_made_again(tmp_path: Path) -> None:
    outcome, lines = swept(tmp_path, "9 11")
    assert outcome == Outcome({"done": 3}, 3)
    assert [line.split("; ")[0].split(": ")[1] for line in lines if "trying again" in line] == [
        "the worker process died (killed by signal 9)",
        "the worker process died (killed by signal 11)",
    ]


def test_a_run_whose_worker_dies_whenever_it_takes_it_up_fails_and_others_go_on(tmp_path: Path) -> None:
    outcome, _ = swept(tmp_path, "9 9 9 9")
    assert outcome.counts == {"failed": 1, "done": 2}


@pytest.mark.slow
def test_a_worker_that_falls_silent_while_it_takes_up_a_run_gives_up_its_slot(tmp_path: Path) -> None:
    began = time.monotonic()
    outcome, lines = swept(tmp_path, str(int(signal.SIGSTOP)), silence=30.0)
    assert outcome == Outcome({"done": 3}, 3)
    assert time.monotonic() - began > 30
    assert sum("did not take it up within 30 s; trying again" in line for line in lines) == 1


def test_what_is_silent_is_killed_and_lost(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(str(int(signal.SIGSTOP)))
    with one(WhileTakenUp(tmp_path / "script")) as workers:
        workers.silence = 0.5  # it need not have started by then: that is silence, too
        assert isinstance(workers.start(0, order(), None, True).result(timeout=60), Lost)
        assert not workers_below(os.getpid())


def test_a_worker_that_dies_between_two_runs_loses_none(tmp_path: Path) -> None:
    with one(instant) as workers:
        for _ in range(2):
            result = workers.start(0, order(), None, True).result()
            if isinstance(result, Lost):  # its death was seen when the next run was handed over
                result = workers.start(0, order(), None, True).result()
            assert isinstance(result, RunResult)
            assert result.state == "done"
            (process,) = workers_below(os.getpid())
            process.kill()


def test_what_cannot_be_read_has_failed_and_the_slot_goes_on() -> None:
    with one(unreadable) as workers:
        for _ in range(2):
            result = workers.start(0, order(), None, True).result()
            assert isinstance(result, RunResult)
            assert (result.state, result.reason.partition(":")[0]) == ("failed", "ValueError")


def test_a_process_that_cannot_be_started_loses_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    with one(instant) as workers:
        with monkeypatch.context() as patch:
            patch.setattr("bench.sweep.workers.WorkerProcess", none_left)
            assert isinstance(workers.start(0, order(), None, True).result(), Lost)
        assert isinstance(workers.start(0, order(), None, True).result(), RunResult)


def test_a_run_in_the_middle_ends_with_its_workers(tmp_path: Path) -> None:
    work = Scripted(tmp_path)
    (tmp_path / "attempts").mkdir()
    (tmp_path / "script.json").write_text('{"*": ["hang"]}')
    with one(scripted) as workers:
        future = workers.start(0, order(tmp_path), None, True)
        while not work.attempts("local 3 0"):
            time.sleep(0.05)
    assert isinstance(future.result(timeout=60), Lost)


def test_a_message_that_never_comes_is_waited_for_no_longer_than_asked() -> None:
    with closing_process() as process:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            process.receive(0.3)
        assert time.monotonic() - began < 5


@contextmanager
def closing_process() -> Iterator[WorkerProcess]:
    process = WorkerProcess()
    try:
        yield process
    finally:
        process.end()


def majority() -> RunSpec:
    return resolve("cora", "non-overlapping", 3, "majority", 0)


def test_garbage_collection_passes_by_what_a_worker_has_imported_and_by_nobody_elses() -> None:
    wanted = Order(majority(), (), "cpu", 1)
    before = gc.get_freeze_count()
    assert frozen(wanted).bytes_up <= before
    with one(frozen, 60.0) as workers:
        made = workers.start(0, wanted, None, True).result()
        assert isinstance(made, RunResult)
        assert made.bytes_up > 10_000


def local_order(seed: int = 0) -> Order:
    spec = expand(grid(methods=("local",), seeds=(seed,)))[0].spec
    assert spec is not None
    return Order(spec, (), "cpu", 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_under_its_log_fails_no_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert workers.attempt(chatty, local_order(), Path("/dev/full"), True).state == "done"
    failed = workers.attempt(faulty, local_order(), Path("/dev/full"), True)
    assert (failed.state, failed.reason) == ("failed", "ValueError: first line")
    print("seen again")
    assert "seen again" in capfd.readouterr().out


def test_the_outcome_says_which_code_made_it() -> None:
    spec = resolve("cora", "non-overlapping", 3, "majority", 0)
    made = workers.attempt(workers.execute, Order(spec, (), "cpu", 1), None, True)
    assert made.state == "done", made.traceback
    assert made.code == fingerprint.code("majority")


def test_a_checkpoint_is_of_one_kind_of_device_and_so_many_threads(tmp_path: Path) -> None:
    spec = resolve("cora", "non-overlapping", 3, "local", 0)
    federation = build(*spec.federation_key)

    def identity(device: str, threads: int) -> str:
        wanted = Order(spec, (), device, threads, 1, Checkpoints(tmp_path, 1.0))
        made = workers.run_checkpoint(spec, federation, wanted)
        assert made is not None
        return made.identity

    assert identity("cuda:0", 1) == identity("cuda:1", 1), "one GPU or the other"
    assert len({identity("cpu", 1), identity("cpu", 2), identity("cuda:0", 1)}) == 3


@pytest.mark.parametrize(
    ("place", "error", "state", "raised"),
    [
        ("bench.engine.execute.run", ValueError("x"), "failed", True),
        ("bench.engine.execute.run", SystemExit("x"), "failed", True),
        ("bench.engine.execute.run", OSError(errno.EIO, "x"), "failed", False),
        ("bench.engine.execute.run", MemoryError("x"), "oom", False),
        ("bench.federation.build.build", ValueError("x"), "failed", False),
        ("bench.sweep.workers.run_checkpoint", ValueError("x"), "failed", False),
    ],
)
def test_only_what_the_run_itself_raises_is_its_methods_doing(
    place: str, error: BaseException, state: str, raised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boom(*_: object, **__: object) -> None:
        raise error

    workers._federation.cache_clear()  # it is built anew
    monkeypatch.setattr(place, boom)
    made = workers.attempt(workers.execute, Order(majority(), (), "cpu", 1), None, True)
    assert (made.state, made.raised) == (state, raised)
    assert "in boom" in made.traceback


def test_no_run_is_made_on_other_clients() -> None:
    here = build(*majority().federation_key).hash
    made = [
        workers.attempt(workers.execute, Order(majority(), (), "cpu", 1, clients=clients), None, True)
        for clients in (here, "0" * 64)
    ]
    assert [each.state for each in made] == ["done", "failed"]
    assert "00000000" in made[1].reason
    assert here[:8] in made[1].reason
    assert not made[1].raised


def test_what_cannot_be_read_now_stays_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails for a moment fails the run, and costs none of the rounds that it holds."""
    spec = resolve("cora", "non-overlapping", 3, "local", 0, {"protocol.rounds": 2})
    wanted = Order(spec, (), "cpu", 1, 1, Checkpoints(tmp_path, 1e-9))
    saved = wanted.checkpoints.path(spec.hash) if wanted.checkpoints else tmp_path
    saved.write_text("rounds of days")
    real = Path.read_bytes

    def stale(path: Path) -> bytes:
        if path == saved:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", stale)
        made = workers.attempt(workers.execute, wanted, None, True)
    assert (made.state, made.raised) == ("failed", False)
    assert str(saved) in made.reason
    assert saved.read_text() == "rounds of days"


def test_numbers_do_not_depend_on_the_blocks_of_a_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    monkeypatch.delenv("BENCH_DATA", raising=False)
    spec = resolve("cora", "non-overlapping", 5, "fedavg", 0, {"protocol.rounds": 2})
    sizes: list[int | None] = []

    def spied(spec_, federation, device, block_size=None, *rest):
        sizes.append(block_size)
        return run(spec_, federation, device, block_size, *rest)

    monkeypatch.setattr("bench.engine.execute.run", spied)
    usual = run(spec, build(*spec.federation_key))
    for shrink in (1, 2, 4, 8):
        result = workers.attempt(workers.execute, Order(spec, (), "cpu", 1, shrink), None, True)
        assert result.state == "done", result.traceback
        for key, counts in usual.correct.items():
            assert (result.correct[key] == counts).all()
    assert sizes == [None, 2, 1, 1], "five clients in one block; halves, quarters, and one at least"


def test_a_run_out_of_memory_says_how_many_clients_a_block_had(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int | None] = []

    def full(spec_, federation, device, block_size, *_):
        given.append(block_size)
        raise MemoryError

    monkeypatch.setattr("bench.engine.execute.run", full)
    spec = resolve("cora", "non-overlapping", 5, "fedavg", 0)
    said = [
        workers.attempt(workers.execute, Order(spec, (), "cpu", 1, shrink), None, True)
        for shrink in (1, 2, 4)
    ]
    assert [(each.state, each.block) for each in said] == [("oom", 5), ("oom", 2), ("oom", 1)]
    assert given == [None, 2, 1]


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
    result = workers.attempt(workers.execute, workers.Order(spec, (), "cpu", 1), None, True)
    assert result.state == state
    assert ("boom" in result.traceback) == (state in ("oom", "failed"))
    assert "\n" not in result.reason


def test_a_slot_a_core_and_threads_that_do_not_follow_from_the_number_of_runs() -> None:
    assert len(choose("cpu", None, None, runs=1000).devices) == cores()
    assert choose("cpu", None, None, runs=1).devices == ("cpu",)
    assert {choose("cpu", jobs, None, runs).threads for jobs in (None, 1, 9) for runs in (1, 1000)} == {1}
    assert choose("cpu", 1, 2, runs=4).threads == 2
    for device, jobs, threads in (("gpu", None, None), ("cuda:77", None, None), ("cpu", 0, 1), ("cpu", 1, 0)):
        with pytest.raises(RequestError, match=r"--device|--jobs|--threads"):
            choose(device, jobs, threads, runs=4)


def test_slots_on_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    gib = 2**30
    monkeypatch.setattr(workers, "_visible", lambda: {"cuda:0": 80 * gib, "cuda:1": 40 * gib})
    monkeypatch.setattr(workers, "cores", lambda: 6)
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
    monkeypatch.setattr(workers, "_visible", dict)
    assert set(choose(None, None, None, runs=9).devices) == {"cpu"}
    with pytest.raises(RequestError, match="there is cpu"):
        choose("cuda", None, None, runs=9)
