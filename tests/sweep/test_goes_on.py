"""What was saved of a run: a killed one goes on from there, and ends as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from fake_runs import grid
from processes import alive, below, wait_for
from scripted import Scripted

from bench.grids import expand
from bench.store import open_store
from bench.sweep.limits import Limits

ROUNDS = 60


def command(home: Path, *more: str) -> list[str]:
    words = f"sweep -d cora -m fedpub -k 3 --jobs 1 --set protocol.rounds={ROUNDS}".split()
    database = ["--db", f"sqlite:///{home / 'runs.db'}"]
    return [sys.executable, "-c", "from bench.cli.main import main; main()", *words, *database, *more]


def run(home: Path, *more: str) -> None:
    subprocess.run(command(home, *more), check=True, env={**os.environ, "BENCH_HOME": str(home)})


def saved(home: Path) -> dict[str, float]:
    """What the only checkpoint says of the run: the round that it follows and the seconds until then."""
    (path,) = (home / "checkpoints").glob("*.pt")
    state = torch.load(path, weights_only=True)
    return {"round": state["round"], "seconds": state["total"]}


@pytest.mark.slow
def test_a_killed_sweep_goes_on_bit_equal(tmp_path: Path) -> None:
    killed, straight = tmp_path / "killed", tmp_path / "straight"
    process = subprocess.Popen(
        command(killed, "--checkpoint-minutes", "1e-9"), env={**os.environ, "BENCH_HOME": str(killed)}
    )
    wait_for(lambda: list((killed / "checkpoints").glob("*.pt")))
    workers = below(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: not alive(workers))
    kept = saved(killed)
    assert 0 <= kept["round"] < ROUNDS - 1
    run(killed)
    run(straight)
    assert not list((killed / "checkpoints").iterdir())
    with (
        open_store(f"sqlite:///{killed / 'runs.db'}", create=False) as one,
        open_store(f"sqlite:///{straight / 'runs.db'}", create=False) as other,
    ):
        assert one.runs()["seconds_total"][0] > kept["seconds"]
        assert one.client_results([1]).equals(other.client_results([1]))
        for stage in ("received", "trained"):
            assert np.array_equal(one.curve(1, stage, "val"), other.curve(1, stage, "val"))


def test_minutes_that_are_not_positive_are_refused(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as error:
        run(tmp_path, "--checkpoint-minutes", "0")
    assert error.value.returncode == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("word", "state", "stays"),
    [
        pytest.param("hang", "failed", True, marks=pytest.mark.slow),
        ("signal 9", "failed", True),
        ("exit 3", "failed", True),
        ("unready", "failed", True),
        ("disk", "failed", True),
        pytest.param("oom", "oom", True, marks=pytest.mark.slow),
        ("raise", "failed", False),
        ("leave", "failed", False),
        ("done", "done", False),
    ],
)
def test_what_was_saved_stays_until_the_run_or_its_method_ends_it(
    tmp_path: Path, word: str, state: str, stays: bool
) -> None:
    planned = expand(grid(methods=("local",), seeds=(0,)))
    assert planned[0].spec is not None
    saved, half, other = files(tmp_path, planned[0].spec.hash)
    outcome = Scripted(tmp_path).sweep(planned, {"*": [word]}, limits=Limits(timeout=5))
    assert (outcome.counts, saved.exists()) == ({state: 1}, stays)
    assert (half.exists(), other.exists()) == (False, True)


def test_what_another_sweep_has_done_needs_nothing_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = expand(grid(methods=("local",), seeds=(0, 1)))
    work = Scripted(tmp_path)
    before = work.plan(planned)
    work.sweep(planned[:1])
    assert planned[0].spec is not None
    saved, half, other = files(tmp_path, planned[0].spec.hash)
    monkeypatch.setattr(work, "plan", lambda *_: before)
    assert work.sweep(planned).ran == 1
    assert [each.exists() for each in (saved, half, other)] == [False, False, True]


def files(home: Path, spec_hash: str) -> tuple[Path, Path, Path]:
    """What was saved of a run, what a killed worker left half-written of it, and that of another run."""
    folder = home / "checkpoints"
    folder.mkdir(exist_ok=True)
    found = (folder / f"{spec_hash}.pt", folder / f"{spec_hash}.4711.tmp", folder / "other.4711.tmp")
    for each in found:
        each.write_text("rounds of days")
    return found
