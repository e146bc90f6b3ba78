"""Executing an order: its federation, its checkpoint, its blocks, and what comes of exceptions."""

import errno
import os
from functools import partial
from pathlib import Path

import pytest
import torch

from bench.engine.execute import run
from bench.engine.result import RunResult
from bench.engine.states import FAILURES
from bench.errors import NoDataError, NotApplicableError
from bench.federation.build import build
from bench.resolve import resolve
from bench.spec import RunSpec
from bench.sweep import fingerprint
from bench.sweep.execution import execute, run_checkpoint
from bench.sweep.order import Checkpoints, Order, attempt


def majority() -> RunSpec:
    return resolve("cora", "non-overlapping", 3, "majority", 0)


def test_the_outcome_says_which_code_made_it() -> None:
    spec = resolve("cora", "non-overlapping", 3, "majority", 0)
    result = attempt(execute, Order(spec, (), "cpu", 1))
    assert result.state == "done", result.traceback
    assert result.code == fingerprint.code("majority")


def test_a_checkpoint_is_of_one_kind_of_device_and_so_many_threads(tmp_path: Path) -> None:
    spec = resolve("cora", "non-overlapping", 3, "local", 0)
    federation = build(*spec.federation_key)

    def identity(device: str, threads: int) -> str:
        wanted = Order(spec, (), device, threads, 1, Checkpoints(tmp_path, 1.0))
        checkpoint = run_checkpoint(spec, federation, wanted)
        assert checkpoint is not None
        return checkpoint.identity

    assert identity("cuda:0", 1) == identity("cuda:1", 1), "one GPU or the other"
    assert len({identity("cpu", 1), identity("cpu", 2), identity("cuda:0", 1)}) == 3


def test_a_gpu_is_ready_before_its_run_and_multiplies_whole_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run begins by resetting the memory statistics of its GPU, which an unused one has not; TF32 cuts
    the factors of convolutions to ten bits.
    """
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    is_ready = []
    monkeypatch.setattr(torch.cuda, "init", lambda: is_ready.append(True))

    def run(*_: object) -> RunResult:
        assert is_ready
        assert not torch.backends.cudnn.allow_tf32
        return RunResult("done")

    assert execute(Order(majority(), (), "cuda:0", 1), run=run).state == "done"
    is_ready.clear()
    result = execute(Order(majority(), (), "cpu", 1), run=lambda *_: RunResult("done"))
    assert (result.state, is_ready) == ("done", [])


@pytest.mark.parametrize(
    ("place", "error", "state", "raised"),
    [
        ("run", NoDataError("x"), "no_data", False),
        ("run", NotApplicableError("x"), "not_applicable", False),
        ("run", RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "oom", False),
        ("run", ValueError("x"), "failed", True),
        ("run", SystemExit("x"), "failed", True),
        ("run", OSError(errno.EIO, "x"), "failed", False),
        ("run", MemoryError("x"), "oom", False),
        ("build", ValueError("x"), "failed", False),
    ],
)
def test_only_what_the_run_itself_raises_is_its_methods_doing(
    place: str, error: BaseException, state: str, raised: bool
) -> None:
    def boom(*_: object, **__: object) -> None:
        raise error

    result = attempt(partial(execute, **{place: boom}), Order(majority(), (), "cpu", 1))
    assert (result.state, result.raised) == (state, raised)
    assert ("in boom" in result.traceback) == (state in FAILURES)
    assert "\n" not in result.reason


@pytest.mark.parametrize("other", ["federation_hash", "source"])
def test_no_run_is_made_on_other_clients_or_by_other_sources_than_the_sweeps(other: str) -> None:
    code = fingerprint.code("majority").source
    here = {"federation_hash": build(*majority().federation_key).hash, "source": code}
    results = [
        attempt(execute, Order(majority(), (), "cpu", 1, **wanted)) for wanted in (here, {other: "0" * 64})
    ]
    assert [(result.state, result.raised) for result in results] == [("done", False), ("failed", False)]


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
        result = attempt(execute, wanted)
    assert (result.state, result.raised) == ("failed", False)
    assert str(saved) in result.reason
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

    usual = run(spec, build(*spec.federation_key))
    for shrink in (1, 2, 4, 8):
        result = attempt(partial(execute, run=spied), Order(spec, (), "cpu", 1, shrink))
        assert result.state == "done", result.traceback
        for key, counts in usual.correct.items():
            assert (result.correct[key] == counts).all()
    assert sizes == [None, 2, 1, 1], "five clients in one block; halves, quarters, and one at least"
