"""A run that was stopped goes on as if nothing had happened."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy_federations import begun, copied, furthest, make_spec, random_federation

from bench.engine.checkpoint import Checkpoint
from bench.engine.execute import run
from bench.engine.result import RunResult
from bench.engine.run import Run
from bench.spec import RunSpec

ROUNDS = 5

FEDERATION = random_federation((24, 40, 9, 31), seed=3)


@cache
def straight(canonical: str) -> RunResult:
    """What comes of a spec's run that nothing stops."""
    return run(RunSpec.model_validate_json(canonical), FEDERATION)


def same_arrays(arrays: Mapping[Any, Any], others: Mapping[Any, Any]) -> bool:
    same = (np.array_equal(value, others[name], equal_nan=True) for name, value in arrays.items())
    return arrays.keys() == others.keys() and all(same)


def equal(one: RunResult, other: RunResult) -> bool:
    """Whether two results have the same numbers, seconds and memory aside."""
    assert one.state == other.state == "done", (one.reason, other.reason)
    assert one.confusion
    names = ("correct", "confusion", "artefacts")
    return (
        all(same_arrays(getattr(one, name), getattr(other, name)) for name in names)
        and np.array_equal(one.loss, other.loss, equal_nan=True)
        and (one.bytes_up, one.bytes_down) == (other.bytes_up, other.bytes_down)
    )


class Stopped(Exception):
    """What ends a run in the middle."""


@contextmanager
def watched_rounds(last: int = ROUNDS) -> Iterator[list[int]]:
    """The rounds that are begun meanwhile. A run is stopped at the end of the ``last``."""
    began: list[int] = []

    def step(self: Run, number: int, real: Callable[[Run, int], None] = Run.step) -> None:
        began.append(number)
        real(self, number)
        if number == last:
            raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "step", step)
        yield began


def stopped_after(round: int, spec: RunSpec, path: Path) -> Checkpoint:
    """Save a run every round, and stop it while the one after ``round`` is under way."""
    checkpoint = Checkpoint(path / "run.npz", "same", minutes=0.0)
    with watched_rounds(round + 1), pytest.raises(Stopped):
        run(spec, FEDERATION, checkpoint=checkpoint)
    return checkpoint


LESS_USUAL = ({"attack.ratio": 0.5}, {"newcomers.ratio": 0.25}, {"protocol.participation": 0.5})
CASES: list[tuple[str, int, dict[str, float]]] = [
    *((name, 0, {}) for name in ("fedavg", "fedsheafhn")),
    *((name, ROUNDS - 2, {}) for name in ("fedavg", "fedpub", "fedsheafhn", "fggp", "flow_stateful")),
    *(("fedsheafhn", 2, settings) for settings in LESS_USUAL),
    ("fedavg", 2, {"protocol.participation": 0.5}),
]
"""A method, the round after which its run is stopped, and settings."""


@pytest.mark.parametrize(("method", "round", "settings"), CASES)
def test_a_stopped_run_ends_bit_equal(
    method: str,
    round: int,
    settings: dict[str, float],
    tmp_path: Path,
) -> None:
    spec = make_spec(method, FEDERATION, rounds=ROUNDS).with_settings(settings)
    checkpoint = stopped_after(round, spec, tmp_path)
    with watched_rounds() as began:
        resumed = run(spec, FEDERATION, checkpoint=checkpoint)
    assert began == list(range(round + 1, ROUNDS))  # nothing is done twice
    assert equal(resumed, straight(spec.canonical()))


def test_seconds_add_up_over_both_parts(tmp_path: Path) -> None:
    spec = make_spec("fedavg", FEDERATION, rounds=ROUNDS)
    checkpoint = Checkpoint(tmp_path / "run.npz", "same")
    first = begun("fedavg", FEDERATION, 1, rounds=ROUNDS)
    first.watch.seconds["client"] = 500.0
    checkpoint.save(first, 0, 1000.0)
    seconds = run(spec, FEDERATION, checkpoint=checkpoint).seconds
    assert 1000 < seconds["total"] < 1100
    assert 500 < seconds["client"] < 600


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[: len(content) // 3],
    "empty": lambda content: b"",
    "one byte": flipped,
    "text": lambda content: b"not a checkpoint",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_starts_the_run_anew(damage: str, tmp_path: Path) -> None:
    spec = make_spec("fedavg", FEDERATION, rounds=ROUNDS)
    checkpoint = stopped_after(3, spec, tmp_path)
    checkpoint.path.write_bytes(DAMAGES[damage](checkpoint.path.read_bytes()))
    with pytest.warns(UserWarning, match="damaged"):
        result = run(spec, FEDERATION, checkpoint=checkpoint)
    assert equal(result, straight(spec.canonical()))


def test_what_a_killed_process_left_half_written_goes_with_the_next_save(tmp_path: Path) -> None:
    half, other = tmp_path / "run.4711.tmp", tmp_path / "other.4711.tmp"
    for path in (half, other):
        path.write_text("half")
    checkpoint = Checkpoint(tmp_path / "run.npz", "same", minutes=0.0)
    run(make_spec("fedavg", FEDERATION, rounds=2), FEDERATION, checkpoint=checkpoint)
    assert {path.name for path in tmp_path.iterdir()} == {"run.npz", "other.4711.tmp"}


@pytest.mark.filterwarnings("ignore:.*is not used")
def test_a_file_that_would_execute_something_is_not_read(tmp_path: Path) -> None:
    marker = tmp_path / "executed"

    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(marker),)

    path = tmp_path / "run.npz"
    for what in (Hostile(), 3):
        content = io.BytesIO()
        torch.save({"identity": "same", "own": what}, content)
        path.write_bytes(content.getvalue() + hashlib.sha256(content.getvalue()).digest())
        state = Checkpoint(path, "same").load()
        assert not marker.exists()
        assert state is None if what != 3 else state is not None  # what else is such a file is read


def test_another_code_or_spec_starts_anew(tmp_path: Path) -> None:
    spec = make_spec("fedavg", FEDERATION, rounds=ROUNDS)
    old = stopped_after(3, spec, tmp_path)
    it = Run(spec, FEDERATION)
    before = copied(it.own)
    with pytest.warns(UserWarning, match="round 3"):
        assert Checkpoint(old.path, "new code").resume(it) is None
    assert furthest(before, it.own) == 0


def test_a_full_disk_leaves_the_old_file_and_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make_spec("fedavg", FEDERATION, rounds=ROUNDS)
    checkpoint = stopped_after(2, spec, tmp_path)
    kept = checkpoint.path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match=r"run\.npz is not saved: .*No space left"):
        result = run(spec, FEDERATION, checkpoint=checkpoint)
    assert equal(result, straight(spec.canonical()))
    assert checkpoint.path.read_bytes() == kept
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


def test_nothing_is_saved_before_its_time(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "run.npz", "same", minutes=60.0)
    run(make_spec("fedavg", FEDERATION, rounds=ROUNDS), FEDERATION, checkpoint=checkpoint)
    assert not checkpoint.path.exists()


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = {folders!r}
from toy_federations import make_spec, random_federation
from bench.engine.checkpoint import Checkpoint
from bench.engine.execute import run
federation = random_federation((24, 40, 9, 31), seed=3)
spec = make_spec(sys.argv[1], federation, rounds=300)
print("ready", flush=True)
run(spec, federation, checkpoint=Checkpoint(Path(sys.argv[2]), "same", minutes=0.0))
print("ended", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fedavg", "fedpub", "fedsheafhn"])
def test_killed_at_any_moment(method: str, tmp_path: Path) -> None:
    """A process that is killed three times, wherever it is then: in a round or while writing."""
    path = tmp_path / "run.npz"
    script = SCRIPT.format(folders=[str(Path(__file__).parents[1])])
    for wait in np.random.default_rng(1).uniform(0.0, 0.2, 3):
        before = path.stat().st_mtime_ns if path.exists() else 0
        process = subprocess.Popen(
            [sys.executable, "-c", script, method, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        while not path.exists() or path.stat().st_mtime_ns == before:
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        left, _ = process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert left == ""
    spec = make_spec(method, FEDERATION, rounds=300)
    checkpoint = Checkpoint(path, "same")
    saved = checkpoint.load()
    assert saved is not None
    assert 0 <= saved["round"] < 299
    assert equal(run(spec, FEDERATION, checkpoint=checkpoint), straight(spec.canonical()))


def kept_as(value: Any, folder: Path) -> Any:
    """What an attribute of a method with this value is after its run is saved and taken up again."""
    checkpoint = Checkpoint(folder / "run.npz", "same")
    saved, resumed = begun("fedavg", FEDERATION, rounds=ROUNDS), begun("fedavg", FEDERATION, rounds=ROUNDS)
    saved.method.state = value  # type: ignore[attr-defined]
    resumed.method.state = None  # type: ignore[attr-defined]
    checkpoint.save(saved, 0, 0.0)
    assert checkpoint.resume(resumed) is not None
    return resumed.method.state  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "value",
    [np.int64(3), np.float64(-0.0), np.float32(0.1), np.bool_(True), np.complex128(1 - 2j)],
    ids=lambda value: type(value).__name__,
)
def test_a_number_of_numpy_comes_back_with_its_type_and_bits(value: np.generic, tmp_path: Path) -> None:
    for number in (kept_as(value, tmp_path), *kept_as({value: [value]}, tmp_path)):
        assert type(number) is type(value)
        assert number.dtype == value.dtype
        assert number.tobytes() == value.tobytes()


@pytest.mark.parametrize("value", [object(), np.datetime64("2026-01-02"), {"a": [print]}, {1, 2}])
def test_what_cannot_be_kept_is_refused_by_name(value: object, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="attribute 'state' of fedavg"):
        kept_as(value, tmp_path)
    assert not list(tmp_path.iterdir())
