"""Real signals to a real sweep: what is finished, what is stopped, what is stored and what is left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_runs import stored_numbers
from processes import Folder, alive, below, wait_for

from bench.store import open_store
from bench.sweep.status import sweeps


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = Folder(tmp_path_factory.mktemp("undisturbed"))
    assert folder.start().wait(timeout=120) == 0
    return dict(stored_numbers(folder.database))


def goes_on(folder: Folder, kept: int, undisturbed: dict[str, object]) -> None:
    """The same command again does exactly the rest, and nothing differs from an undisturbed sweep."""
    starts = folder.starts()
    out = folder.start().communicate(timeout=120)[0]
    assert f"{{'done': 12}} {12 - kept}" in out
    assert folder.starts() - starts == 12 - kept, "what was stored is not run again"
    assert stored_numbers(folder.database) == undisturbed
    with open_store(folder.database, create=False) as store:
        assert list(store.runs()["state"]) == ["done"] * 12


@pytest.mark.slow
def test_one_interrupt_finishes_and_stores_what_runs(tmp_path: Path, undisturbed: dict[str, object]) -> None:
    folder = Folder(tmp_path)
    process = folder.start(seconds=0.5)
    wait_for(lambda: folder.starts() >= 4)
    workers = below(process.pid)
    process.send_signal(signal.SIGINT)
    out = process.communicate(timeout=60)[0]
    assert "running to be finished and stored; Ctrl-C again stops now" in out
    kept = folder.kept()
    assert kept == folder.starts(), "every run that had begun is stored"
    assert 4 <= kept < 12
    assert f"{12 - kept} left: interrupted" in out
    assert "KeyboardInterrupt" in out
    wait_for(lambda: not alive(workers))  # a process needs a moment to end
    assert sweeps(tmp_path) == []
    goes_on(folder, kept, undisturbed)


@pytest.mark.parametrize("signals", [[signal.SIGINT] * 2, [signal.SIGTERM]], ids=["twice", "terminate"])
def test_two_interrupts_stop_at_once(tmp_path: Path, signals: list[signal.Signals]) -> None:
    folder = Folder(tmp_path)
    process = folder.start(seconds=120)
    wait_for(lambda: folder.starts() == 2)
    workers = below(process.pid)
    for number in signals:
        process.send_signal(number)
        time.sleep(0.5)
    assert process.wait(timeout=20) != 0
    wait_for(lambda: not alive(workers))  # a process needs a moment to end
    assert folder.kept() == 0
    assert list((tmp_path / "sweeps").iterdir()) == []


@pytest.mark.slow
def test_a_killed_sweep_leaves_no_process_and_goes_on(tmp_path: Path, undisturbed: dict[str, object]) -> None:
    folder = Folder(tmp_path)
    process = folder.start(seconds=0.5)
    wait_for(lambda: folder.starts() >= 5)
    workers = below(process.pid)
    process.kill()
    process.wait(timeout=30)
    wait_for(lambda: not alive(workers), 10)
    assert len(list((tmp_path / "sweeps").glob("*.json"))) == 1
    assert sweeps(tmp_path) == [], "what is left of it counts for nothing"
    kept = folder.kept()
    assert 1 <= kept < 12
    goes_on(folder, kept, undisturbed)
    assert list((tmp_path / "sweeps").iterdir()) == [], "and the next sweep removes it"


def test_workers_in_the_middle_of_a_run_end_with_a_killed_sweep(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    process = folder.start(seconds=120)
    wait_for(lambda: folder.starts() == 2)
    workers = below(process.pid)
    process.kill()
    process.wait(timeout=30)
    wait_for(lambda: not alive(workers), 10)
    assert folder.kept() == 0


@pytest.mark.slow
def test_the_command_line_ends_with_130_and_says_meanwhile_what_it_is_at(tmp_path: Path) -> None:
    environment = {**os.environ, "BENCH_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    environment.pop("BENCH_DATA", None)
    # As in sweep_script: interrupts may be ignored where the tests were started.
    bench = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from bench.cli.main import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", bench]
    seeds = [word for seed in range(40) for word in ("--seed", str(seed))]
    asked = ["sweep", "-d", "cora", "-m", "local", "-k", "3", *seeds, "--jobs", "1", "--devices", "cpu"]
    process = subprocess.Popen(
        [*command, *asked, "--set", "protocol.rounds=10"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: any(sweep["counts"].get("done", 0) >= 2 for sweep in sweeps(tmp_path)))
    shown = subprocess.run(
        [*command, "runs", "status", "--json"], env=environment, capture_output=True, text=True, check=True
    )
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    (sweep,) = json.loads(shown.stdout)
    assert (sweep["pid"], sweep["total"], sweep["jobs"]) == (process.pid, 40, 1)
    assert process.returncode == 130
    assert "Traceback" not in errors
    with open_store(f"sqlite:///{tmp_path / 'bench.db'}", create=False) as store:
        states = list(store.runs()["state"])
    assert 2 <= len(states) < 40
    assert set(states) == {"done"}
    assert f"{40 - len(states)} left: interrupted" in out
