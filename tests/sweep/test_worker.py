"""What a worker process takes up, and what it does when the disk under its log is full."""

import errno
import gc
import os
from concurrent.futures import wait
from pathlib import Path

import pytest
from fake_execute import chatty, faulty, frozen
from fake_runs import grid

from bench.federation.build import build
from bench.grids import expand
from bench.resolve import resolve
from bench.spec import RunSpec
from bench.sweep import fingerprint, worker
from bench.sweep.pool import Workers
from bench.sweep.worker import Checkpoints, Order


def order(seed: int = 0) -> Order:
    spec = expand(grid(methods=("local",), seeds=(seed,)))[0].spec
    assert spec is not None
    return Order(spec.canonical(), (), "cpu", 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_under_its_log_fails_no_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert worker.attempt(chatty, order(), Path("/dev/full"), True).state == "done"
    failed = worker.attempt(faulty, order(), Path("/dev/full"), True)
    assert (failed.state, failed.reason) == ("failed", "ValueError: first line")
    print("seen again")
    assert "seen again" in capfd.readouterr().out


def test_the_outcome_says_which_code_made_it() -> None:
    spec = resolve("cora", "non-overlapping", 3, "majority", 0)
    made = worker.attempt(worker.execute, Order(spec.canonical(), (), "cpu", 1), None, True)
    assert made.state == "done", made.traceback
    assert made.code == fingerprint.code("majority")


def test_a_checkpoint_is_of_one_kind_of_device_and_so_many_threads(tmp_path: Path) -> None:
    spec = resolve("cora", "non-overlapping", 3, "local", 0)
    federation = build(*spec.federation_key)

    def identity(device: str, threads: int) -> str:
        wanted = Order(spec.canonical(), (), device, threads, 1, Checkpoints(tmp_path, 1.0))
        made = worker._checkpoint(spec, federation, wanted)
        assert made is not None
        return made.identity

    assert identity("cuda:0", 1) == identity("cuda:1", 1), "one GPU or the other"
    assert len({identity("cpu", 1), identity("cpu", 2), identity("cuda:0", 1)}) == 3


def majority() -> RunSpec:
    return resolve("cora", "non-overlapping", 3, "majority", 0)


@pytest.mark.parametrize(
    ("place", "error", "state", "raised"),
    [
        ("bench.engine.execute.run", ValueError("x"), "failed", True),
        ("bench.engine.execute.run", SystemExit("x"), "failed", True),
        ("bench.engine.execute.run", OSError(errno.EIO, "x"), "failed", False),
        ("bench.engine.execute.run", MemoryError("x"), "oom", False),
        ("bench.federation.build.build", ValueError("x"), "failed", False),
        ("bench.sweep.worker._checkpoint", ValueError("x"), "failed", False),
    ],
)
def test_only_what_the_run_itself_raises_is_its_methods_doing(
    place: str, error: BaseException, state: str, raised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boom(*_: object, **__: object) -> None:
        raise error

    worker._federation.cache_clear()  # it is built anew
    monkeypatch.setattr(place, boom)
    made = worker.attempt(worker.execute, Order(majority().canonical(), (), "cpu", 1), None, True)
    assert (made.state, made.raised) == (state, raised)
    assert "in boom" in made.traceback


def test_no_run_is_made_on_other_clients() -> None:
    here = build(*majority().federation_key).hash
    made = [
        worker.attempt(
            worker.execute, Order(majority().canonical(), (), "cpu", 1, clients=clients), None, True
        )
        for clients in (here, "0" * 64)
    ]
    assert [each.state for each in made] == ["done", "failed"]
    assert "00000000" in made[1].reason
    assert here[:8] in made[1].reason
    assert not made[1].raised


def test_what_cannot_be_read_now_stays_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails for a moment fails the run, and costs none of the rounds that it holds."""
    spec = resolve("cora", "non-overlapping", 3, "local", 0, {"protocol.rounds": 2})
    wanted = Order(spec.canonical(), (), "cpu", 1, 1, Checkpoints(tmp_path, 1e-9))
    saved = wanted.checkpoints.path(spec.hash) if wanted.checkpoints else tmp_path
    saved.write_text("rounds of days")
    real = Path.read_bytes

    def stale(path: Path) -> bytes:
        if path == saved:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", stale)
        made = worker.attempt(worker.execute, wanted, None, True)
    assert (made.state, made.raised) == ("failed", False)
    assert str(saved) in made.reason
    assert saved.read_text() == "rounds of days"


def test_garbage_collection_passes_by_what_a_worker_has_imported_and_by_nobody_elses() -> None:
    wanted = Order(majority().canonical(), (), "cpu", 1)
    before = gc.get_freeze_count()
    assert frozen(wanted).bytes_up == before
    workers = Workers(1, frozen, 60.0)
    try:
        future = workers.start(0, wanted, None, True)
        wait([future])
        assert future.result().bytes_up > 10_000
    finally:
        workers.stop()
