"""Executing an order: its federation, its checkpoint, its blocks, and what comes of exceptions."""

import errno
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy_federations import tiny_federation

from bench.engine.checkpoint import Checkpoint
from bench.engine.result import RunResult
from bench.engine.states import FAILURES
from bench.errors import NoDataError, NotApplicableError
from bench.federation.build import build
from bench.federation.types import Federation
from bench.resolve import resolve
from bench.runner import fingerprint
from bench.runner.execution import build_all, execute
from bench.runner.workers import Order, attempt

MAJORITY = resolve("cora", "non-overlapping", 3, "majority", 0)
LOCAL = resolve("cora", "non-overlapping", 3, "local", 0, {"protocol.rounds": 2})


def test_a_checkpoint_is_of_one_kind_of_device_and_so_many_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Checkpoint] = []

    def identity(device: str, threads: int) -> str:
        def run(*arguments: Any) -> RunResult:
            taken.append(arguments[4])
            return RunResult("done")

        execute(Order(LOCAL, (), device, threads, checkpoint=tmp_path), run=run)
        return taken[-1].identity

    monkeypatch.setattr(torch.cuda, "init", lambda: None)
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

    assert execute(Order(MAJORITY, (), "cuda:0", 1), run=run).state == "done"
    is_ready.clear()
    result = execute(Order(MAJORITY, (), "cpu", 1), run=lambda *_: RunResult("done"))
    assert (result.state, is_ready) == ("done", [])


@pytest.mark.parametrize(
    ("place", "error", "state"),
    [
        ("run", NoDataError("x"), "no_data"),
        ("run", NotApplicableError("x"), "not_applicable"),
        ("run", RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "oom"),
        ("run", ValueError("x\ny"), "failed"),
        ("build", ValueError("x"), "failed"),
    ],
)
def test_every_exception_is_a_state(place: str, error: BaseException, state: str) -> None:
    def boom(*_: object, **__: object) -> None:
        raise error

    result = attempt(partial(execute, **{place: boom}), Order(MAJORITY, (), "cpu", 1))
    assert result.state == state
    assert ("in boom" in result.traceback) == (state in FAILURES)
    assert "\n" not in result.reason


@pytest.mark.parametrize("is_other", [False, True])
def test_no_run_is_made_on_other_clients_than_the_sweeps(is_other: bool) -> None:
    """A federation's file that cannot be read is built again."""
    wanted = "0" * 64 if is_other else build(*MAJORITY.federation_key).hash
    order = Order(MAJORITY, (), "cpu", 1, federation=Path("gone"), federation_hash=wanted)
    result = attempt(execute, order)
    assert result.state == ("failed" if is_other else "done")
    assert result.code == (None if is_other else fingerprint.code("majority"))


def test_what_cannot_be_read_now_stays_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails for a moment fails the run, and costs none of the rounds that it holds."""
    saved = tmp_path / "saved.pt"
    saved.write_text("rounds of days")
    real = Path.read_bytes

    def stale(path: Path) -> bytes:
        if path == saved:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", stale)
        result = attempt(execute, Order(LOCAL, (), "cpu", 1, checkpoint=saved, minutes=1e-9))
    assert result.state == "failed"
    assert str(saved) in result.reason
    assert saved.read_text() == "rounds of days"


def test_a_retry_is_made_in_smaller_blocks() -> None:
    spec = resolve("cora", "non-overlapping", 5, "fedavg", 0)
    sizes: list[int | None] = []

    def run(
        spec: object, federation: Federation, device: str, block_size: int | None, *_: object
    ) -> RunResult:
        sizes.append(block_size)
        return RunResult("done")

    for shrink in (1, 2, 4, 8):
        execute(Order(spec, (), "cpu", 1, shrink), run=run)
    assert sizes == [None, 2, 1, 1], "five clients in one block; halves, quarters, and one at least"


def test_every_distinct_federation_is_built_once_and_read_by_workers(tmp_path: Path) -> None:
    keys, read = [], []

    def build(*key: Any, roots: tuple[Path, ...]) -> Federation:
        keys.append(key)
        return tiny_federation()

    def run(spec: object, federation: Federation, *_: object) -> RunResult:
        read.append(federation)
        return RunResult("done")

    specs = [
        resolve("cora", "non-overlapping", clients, "local", seed) for clients in (3, 5) for seed in (0, 1)
    ]
    federations, missing_data = build_all(specs, (), build, tmp_path)
    assert keys == list(federations) == [specs[0].federation_key, specs[2].federation_key]
    assert missing_data == {}
    shared = federations[specs[0].federation_key]
    execute(Order(specs[0], (), "cpu", 1, federation=shared.file, federation_hash=shared.hash), run=run)
    for mine, client in zip(read[0].clients, tiny_federation().clients, strict=True):
        for name in ("ids", "labels", "roles", "edges"):
            assert np.array_equal(getattr(mine, name), getattr(client, name))
        assert np.array_equal(mine.dense(), client.dense())
