"""A run that was stopped goes on as if nothing had happened."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy_federations import make_spec, random_federation

from bench.engine.checkpoint import FORMAT, Checkpoint
from bench.engine.execute import run
from bench.engine.methods import METHODS
from bench.engine.result import RunResult
from bench.engine.run import Run
from bench.federation.types import Federation
from bench.spec import Attack, Newcomers, RunSpec

ROUNDS = 7

Straight = Callable[[RunSpec], RunResult]


@pytest.fixture(scope="module")
def federation() -> Federation:
    return random_federation((24, 40, 9, 31), seed=3)


@pytest.fixture(scope="module")
def straight(federation: Federation) -> Straight:
    """What comes of a spec's run that nothing stops."""
    results: dict[str, RunResult] = {}

    def made(spec: RunSpec) -> RunResult:
        if spec.hash not in results:
            results[spec.hash] = run(spec, federation)
        return results[spec.hash]

    return made


def equal(one: RunResult, other: RunResult) -> bool:
    """Whether two results have the same numbers, seconds and memory aside."""
    assert one.state == other.state == "done", (one.reason, other.reason)
    return (
        all(np.array_equal(one.correct[key], other.correct[key]) for key in one.correct)
        and one.confusion.keys() == other.confusion.keys() != set()
        and all(np.array_equal(one.confusion[key], other.confusion[key]) for key in one.confusion)
        and np.array_equal(one.loss, other.loss, equal_nan=True)
        and (one.bytes_up, one.bytes_down) == (other.bytes_up, other.bytes_down)
        and one.artefacts.keys() == other.artefacts.keys()
        and all(np.array_equal(one.artefacts[key], other.artefacts[key]) for key in one.artefacts)
    )


class Stopped(Exception):
    """What ends a run in the middle."""


def stopped_after(round: int, spec: RunSpec, federation: Federation, checkpoint: Checkpoint) -> None:
    """Run as ``run`` does with a checkpoint every round, and stop while the next one is under way."""

    def step(self: Run, number: int, real: Callable[[Run, int], None] = Run.step) -> None:
        real(self, number)
        if number == round + 1:
            raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "step", step)
        with pytest.raises(Stopped):
            run(spec, federation, checkpoint=checkpoint)


@pytest.mark.parametrize("method", ["fedavg", "fedpub", "fedsheafhn", "fggp", "flow_stateful"])
@pytest.mark.parametrize("round", [0, 4, ROUNDS - 2])
def test_a_stopped_run_ends_bit_equal(
    method: str, round: int, federation: Federation, straight: Straight, tmp_path: Path
) -> None:
    spec = make_spec(method, federation, rounds=ROUNDS)
    checkpoint = Checkpoint(tmp_path / "run.npz", "same", minutes=0.0)
    stopped_after(round, spec, federation, checkpoint)
    began = []

    def step(self: Run, number: int, real: Callable[[Run, int], None] = Run.step) -> None:
        began.append(number)
        real(self, number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "step", step)
        resumed = run(spec, federation, checkpoint=checkpoint)
    assert began == list(range(round + 1, ROUNDS))  # nothing is done twice
    assert equal(resumed, straight(spec))


def test_under_attack_and_with_newcomers(federation: Federation, tmp_path: Path) -> None:
    usual = make_spec("fedsheafhn", federation, rounds=ROUNDS)
    for name, spec in (
        ("attack", usual.model_copy(update={"attack": Attack(ratio=0.5)})),
        ("newcomers", usual.model_copy(update={"newcomers": Newcomers(ratio=0.25)})),
    ):
        checkpoint = Checkpoint(tmp_path / f"{name}.npz", "same", minutes=0.0)
        stopped_after(4, spec, federation, checkpoint)
        assert equal(run(spec, federation, checkpoint=checkpoint), run(spec, federation))


def test_seconds_add_up_over_both_parts(federation: Federation, tmp_path: Path) -> None:
    spec = make_spec("fedavg", federation, rounds=ROUNDS)
    checkpoint = Checkpoint(tmp_path / "run.npz", "same")
    first = Run(spec, federation)
    first.warm_up()
    first.step(0)
    first.watch.seconds["client"] = 500.0
    checkpoint.save(first, 0, 1000.0)
    seconds = run(spec, federation, checkpoint=checkpoint).seconds
    assert 1000 < seconds["total"] < 1100
    assert 500 < seconds["client"] < 600


def signed(content: bytes) -> bytes:
    """A file that says of itself that it is whole."""
    return content + hashlib.sha256(content).digest()


def _changed(what: str) -> Callable[[bytes], bytes]:
    def flipped(content: bytes) -> bytes:
        middle = len(content) // 2
        return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]

    return {
        "truncated": lambda content: content[: len(content) // 3],
        "empty": lambda content: b"",
        "one byte": flipped,
        "text": lambda content: b"not a checkpoint",
    }[what]


@pytest.mark.parametrize("damage", ["truncated", "empty", "one byte", "text"])
def test_a_damaged_file_starts_the_run_anew(
    damage: str, federation: Federation, straight: Straight, tmp_path: Path
) -> None:
    spec = make_spec("fedavg", federation, rounds=ROUNDS)
    checkpoint = Checkpoint(tmp_path / "run.npz", "same", minutes=0.0)
    stopped_after(3, spec, federation, checkpoint)
    checkpoint.path.write_bytes(_changed(damage)(checkpoint.path.read_bytes()))
    assert checkpoint.load() is None
    assert equal(run(spec, federation, checkpoint=checkpoint), straight(spec))


@pytest.mark.slow
def test_whatever_bit_is_flipped(tmp_path: Path) -> None:
    """Such a file is not taken up, whatever the bit belongs to."""
    small = random_federation((6, 7), seed=1)
    it = Run(make_spec("fedavg", small, rounds=2, client={"hidden": 2}), small)
    it.warm_up()
    it.step(0)
    checkpoint = Checkpoint(tmp_path / "run.npz", "same")
    checkpoint.save(it, 0, 1.0)
    whole = checkpoint.path.read_bytes()
    saved = checkpoint.load()
    assert saved is not None
    rng = np.random.default_rng(0)
    # All of the ends, which say what the rest is and whether it is whole, and some of the rest.
    places = [*range(256), *range(len(whole) - 256, len(whole)), *rng.integers(0, len(whole), 500).tolist()]
    for place in places:
        content = bytearray(whole)
        content[place] ^= 1 << int(rng.integers(8))
        checkpoint.path.write_bytes(content)
        assert checkpoint.load() is None, place
    checkpoint.path.write_bytes(whole)
    again = checkpoint.load()
    assert again is not None
    assert again["round"] == saved["round"]
    assert again["own"][0] == saved["own"][0]


@pytest.mark.parametrize("place", [0, 1, 31, 32, 33])
def test_a_file_that_lost_its_end_is_not_taken_up(place: int, tmp_path: Path) -> None:
    small = random_federation((6, 7), seed=1)
    it = Run(make_spec("fedavg", small, rounds=2, client={"hidden": 2}), small)
    it.warm_up()
    checkpoint = Checkpoint(tmp_path / "run.npz", "same")
    checkpoint.save(it, 0, 1.0)
    whole = checkpoint.path.read_bytes()
    checkpoint.path.write_bytes(whole[: len(whole) - place])
    assert (checkpoint.load() is None) == (place > 0)


def test_a_file_that_cannot_be_read_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "run.npz", "same")
    assert checkpoint.load() is None
    checkpoint.path.mkdir()
    with pytest.raises(IsADirectoryError):
        checkpoint.load()


def test_a_file_that_memory_does_not_hold_is_not_taken_for_a_damaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    checkpoint = Checkpoint(tmp_path / "run.npz", "same")
    checkpoint.path.write_text("rounds of days")
    assert checkpoint.load() is None
    checkpoint.path.write_bytes(signed(b"rounds of days"))
    assert checkpoint.load() is None
    monkeypatch.setattr(torch, "load", full)
    with pytest.raises(MemoryError):
        checkpoint.load()


def test_what_a_killed_process_left_half_written_goes_with_the_next_save(
    federation: Federation, tmp_path: Path
) -> None:
    half, other = tmp_path / "run.4711.tmp", tmp_path / "other.4711.tmp"
    for path in (half, other):
        path.write_text("half")
    run(
        make_spec("fedavg", federation, rounds=2),
        federation,
        checkpoint=Checkpoint(tmp_path / "run.npz", "same", minutes=0.0),
    )
    assert {path.name for path in tmp_path.iterdir()} == {"run.npz", "other.4711.tmp"}


def test_a_file_that_would_execute_something_is_not_read(federation: Federation, tmp_path: Path) -> None:
    marker = tmp_path / "executed"

    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(marker),)

    path = tmp_path / "run.npz"
    for what in (Hostile(), 3):
        content = io.BytesIO()
        torch.save({"format": FORMAT, "identity": "same", "own": what}, content)
        path.write_bytes(signed(content.getvalue()))
        state = Checkpoint(path, "same").load()
        assert not marker.exists()
        assert state is None if what != 3 else state is not None  # what else is such a file is read


def test_another_code_or_spec_starts_anew(federation: Federation, tmp_path: Path) -> None:
    spec = make_spec("fedavg", federation, rounds=ROUNDS)
    path = tmp_path / "run.npz"
    stopped_after(3, spec, federation, Checkpoint(path, "old code", minutes=0.0))
    it = Run(spec, federation)
    before = {name: value.clone() for name, value in it.own.items()}
    assert Checkpoint(path, "new code").resume(it) is None
    assert all(torch.equal(value, it.own[name]) for name, value in before.items())


def test_a_full_disk_leaves_the_old_file_and_the_run(
    federation: Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = make_spec("fedavg", federation, rounds=ROUNDS)
    checkpoint = Checkpoint(tmp_path / "run.npz", "same", minutes=0.0)
    stopped_after(2, spec, federation, checkpoint)
    kept = checkpoint.path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match=r"no checkpoint after round \d+: .*No space left"):
        result = run(spec, federation, checkpoint=checkpoint)
    assert equal(result, run(spec, federation))
    assert checkpoint.path.read_bytes() == kept
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


def test_nothing_is_saved_before_its_time(federation: Federation, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "run.npz", "same", minutes=60.0)
    run(make_spec("fedavg", federation, rounds=ROUNDS), federation, checkpoint=checkpoint)
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
def test_killed_at_any_moment(method: str, federation: Federation, tmp_path: Path) -> None:
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
    spec = make_spec(method, federation, rounds=300)
    checkpoint = Checkpoint(path, "same")
    saved = checkpoint.load()
    assert saved is not None
    assert 0 <= saved["round"] < 299
    assert equal(run(spec, federation, checkpoint=checkpoint), run(spec, federation))


def test_what_a_method_derives_from_its_data_is_left_to_it(federation: Federation, tmp_path: Path) -> None:
    """Clients and graphs that a method holds are set up with the run, never read from a file."""
    it = Run(make_spec("fggp", federation, rounds=ROUNDS), federation)
    it.warm_up()
    it.step(0)
    checkpoint = Checkpoint(tmp_path / "run.npz", "same")
    checkpoint.save(it, 0, 0.0)
    loaded = checkpoint.load()
    assert loaded is not None
    kept = set(loaded["method"])
    assert {"model", "prototypes"} <= kept
    assert kept.isdisjoint({"task", "hyper"})


def kept_as(value: Any, federation: Federation, folder: Path) -> Any:
    """What an attribute of a method with this value is after its run is saved and taken up again."""
    spec = make_spec("fedavg", federation, rounds=ROUNDS)
    checkpoint = Checkpoint(folder / "run.npz", "same")
    saved, resumed = Run(spec, federation), Run(spec, federation)
    for it in (saved, resumed):
        it.warm_up()
    saved.method.state = value  # type: ignore[attr-defined]
    resumed.method.state = None  # type: ignore[attr-defined]
    checkpoint.save(saved, 0, 0.0)
    assert checkpoint.resume(resumed) is not None
    return resumed.method.state  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "value",
    [
        np.int64(3),
        np.float64(-0.0),
        np.float32(0.1),
        np.bool_(True),
        np.complex128(1 - 2j),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_number_of_numpy_comes_back_with_its_type_and_bits(
    value: np.generic, federation: Federation, tmp_path: Path
) -> None:
    for number in (kept_as(value, federation, tmp_path), *kept_as({value: [value]}, federation, tmp_path)):
        assert type(number) is type(value)
        assert number.dtype == value.dtype
        assert number.tobytes() == value.tobytes()


@pytest.mark.parametrize("value", [object(), np.datetime64("2026-01-02"), {"a": [print]}, {1, 2}])
def test_what_cannot_be_kept_is_refused_by_name(
    value: object, federation: Federation, tmp_path: Path
) -> None:
    with pytest.raises(TypeError, match="attribute 'state' of fedavg"):
        kept_as(value, federation, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_number_of_another_precision_comes_back(federation: Federation, tmp_path: Path) -> None:
    bits = np.array([0, 1, -32768, 0x3F80, 0x7FC1, 0x7F80], np.int16)  # zeros, the least, 1, NaN, infinity
    for shape in ((6,), (2, 3)):
        value = torch.from_numpy(bits.reshape(shape)).view(torch.bfloat16)
        back = kept_as(value, federation, tmp_path)
        assert back.dtype == torch.bfloat16
        assert np.array_equal(back.view(torch.int16).numpy(), bits.reshape(shape))
    assert kept_as(torch.tensor(1.5, dtype=torch.bfloat16), federation, tmp_path).item() == 1.5


def test_a_conjugate_comes_back(federation: Federation, tmp_path: Path) -> None:
    view = torch.tensor([1 + 2j, -3 - 4j]).conj()  # a view that only says so
    assert kept_as(view, federation, tmp_path).tolist() == [1 - 2j, -3 + 4j]
    assert kept_as(view.imag, federation, tmp_path).tolist() == [-2.0, 4.0]


@pytest.mark.parametrize("coalesced", [True, False])
def test_a_list_of_entries_comes_back(coalesced: bool, federation: Federation, tmp_path: Path) -> None:
    """Entries in their order, doubled and zero ones too: sums over them must not change."""
    indices = [[0, 1, 2], [2, 0, 1]] if coalesced else [[1, 0, 1], [2, 0, 2]]
    values = torch.tensor([[0.1, 0.0], [-0.0, 2.0], [3.0, 4.0]], dtype=torch.bfloat16)
    value = torch.sparse_coo_tensor(
        torch.tensor(indices), values, (3, 4, 2), is_coalesced=coalesced, check_invariants=True
    )
    back = kept_as({"a": [value, value]}, federation, tmp_path)["a"][1]
    assert (back.layout, back.shape, back.is_coalesced()) == (torch.sparse_coo, (3, 4, 2), coalesced)
    assert back._indices().tolist() == indices
    assert torch.equal(back._values().view(torch.int16), values.view(torch.int16))


@pytest.mark.parametrize("integers", [torch.int32, torch.int64])
def test_compressed_rows_come_back(integers: torch.dtype, federation: Federation, tmp_path: Path) -> None:
    rows, columns = torch.tensor([0, 2, 2, 3], dtype=integers), torch.tensor([0, 3, 1], dtype=integers)
    value = torch.sparse_csr_tensor(
        rows, columns, torch.tensor([0.5, 0.0, -1.0]), (3, 4), check_invariants=True
    )
    back = kept_as(value, federation, tmp_path)
    assert (back.layout, back.shape) == (torch.sparse_csr, (3, 4))
    assert (back.crow_indices().dtype, back.col_indices().dtype) == (integers, integers)
    assert back.to_dense().tolist() == [[0.5, 0, 0, 0], [0, 0, 0, 0], [0, -1.0, 0, 0]]
    assert back.values().tolist() == [0.5, 0.0, -1.0]


def test_what_cannot_be_saved_costs_a_warning_and_not_the_run(
    federation: Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = METHODS.named("fedavg")
    real = method.broadcast

    def broadcast(self: Any) -> Any:
        self.blocks = object()
        return real(self)

    monkeypatch.setattr(method, "broadcast", broadcast)
    spec = make_spec("fedavg", federation, rounds=ROUNDS)
    checkpoint = Checkpoint(tmp_path / "run.npz", "same", minutes=0.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run(spec, federation, checkpoint=checkpoint)
    told = [str(one.message) for one in caught if "no checkpoint" in str(one.message)]
    assert len(told) == 1  # of seven rounds
    assert told[0].startswith("no checkpoint after round 0: TypeError: ")
    assert not list(tmp_path.iterdir())
    assert equal(result, run(spec, federation))
