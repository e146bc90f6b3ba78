"""What a sweep says of itself to other processes, and how people see it."""

import json
import os
import socket
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_runs import grid
from processes import Folder, wait_for
from scripted import Scripted

from bench import process
from bench.cli.runs import status
from bench.errors import RequestError
from bench.grids import expand
from bench.store.store import now
from bench.sweep import status as status_files
from bench.sweep.status import SILENCE, Board, sweeps, written


@pytest.mark.slow
def test_a_running_sweep_is_seen_from_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    status()
    assert capsys.readouterr().out == "no sweep is running\n"
    folder = Folder(tmp_path)
    process = folder.start(seconds=2.0)
    wait_for(lambda: sweeps(tmp_path) and sweeps(tmp_path)[0]["counts"].get("done", 0) >= 3)
    (sweep,) = sweeps(tmp_path)
    status()
    text = capsys.readouterr().out
    status(as_json=True)
    assert [entry["pid"] for entry in json.loads(capsys.readouterr().out)] == [process.pid]
    assert (sweep["pid"], sweep["total"], sweep["jobs"]) == (process.pid, 12, 2)
    assert sweep["database"] == str(tmp_path / "bench.db")
    assert sum(sweep["counts"].values()) + len(sweep["running"]) + sweep["left"] == 12
    assert 1 <= len(sweep["running"]) <= 2
    for run in sweep["running"]:
        assert run["device"] == "cpu"
        # Runs take half a second by their own account: that is what is expected of the next.
        assert run["expected_end"] is not None
    assert f"sweep {process.pid} on" in text
    assert "of 12 runs ended" in text
    assert "  cpu: " in text
    watching = subprocess.run(
        _bench("runs", "status", "--watch"),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert watching.stdout.endswith("no sweep is running\n")
    assert watching.stdout.count("of 12 runs ended") >= 2
    process.communicate(timeout=60)
    assert sweeps(tmp_path) == []


def _bench(*words: str) -> list[str]:
    return [sys.executable, "-c", "import sys; from bench.cli.main import main; main(sys.argv[1:])", *words]


def test_what_is_left_by_dead_sweeps_is_ignored_and_removed(tmp_path: Path) -> None:
    folder = tmp_path / "sweeps"
    folder.mkdir()
    mine = process.name()
    place, pid, began = mine.split(":")
    live = {
        "pid": os.getpid(),
        "process": mine,
        "host": socket.gethostname(),
        "started": "2026-01-02T00:00:00",
        "database": "/x",
        "running": [],
    }
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    files = {
        "1.json": live,
        "2.json": {**live, "process": f"{place}:{ended.pid}:{began}"},
        "3.json": {**live, "process": f"{place}:{pid}:{float(began) - 100}"},
        "4.json": {**live, "process": f"else{mine}", "started": "2026-01-01T00:00:00"},
        "5.json": "half a",
        "6.tmp": "",
        "7.json": {**live, "process": f"else{mine}", "started": "2026-01-03T00:00:00"},
    }
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text)
    for name, seconds in (("1.json", 2 * SILENCE), ("4.json", SILENCE / 2), ("7.json", 2 * SILENCE)):
        os.utime(folder / name, (time.time() - seconds,) * 2)
    assert [sweep["started"][:10] for sweep in sweeps(tmp_path)] == ["2026-01-01", "2026-01-02"]
    assert len(list(folder.iterdir())) == 7, "looking removes nothing"
    with Board(tmp_path, "sqlite:////x", 1, 1):
        assert {path.name for path in folder.iterdir()} == {"1.json", "4.json"}


def idle(*seconds: float, running: tuple[float, ...] = ()) -> Any:
    """Stands for a scheduler: runs that wait and take so long each, and runs that end in so many."""
    estimator = SimpleNamespace(seconds=lambda spec: spec.seconds)

    def run(wanted: float) -> Any:
        return SimpleNamespace(
            step=SimpleNamespace(name="a", spec=SimpleNamespace(hash="h", seconds=wanted)),
            device="cpu",
            attempt=SimpleNamespace(number=1),
            started=now(),
        )

    return list(map(run, running)), list(map(run, seconds)), estimator


def test_sweeps_on_two_hosts_with_one_process_number_are_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boards = []
    for host in ("one.lab", "two.lab"):
        monkeypatch.setattr(socket, "gethostname", lambda host=host: host)
        boards.append(Board(tmp_path, f"sqlite:////{host}", 1, 1).__enter__())
        boards[-1].show(*idle())
    assert sorted((sweep["host"], sweep["pid"]) for sweep in sweeps(tmp_path)) == [
        ("one.lab", os.getpid()),
        ("two.lab", os.getpid()),
    ]
    boards[0].__exit__()
    assert [sweep["host"] for sweep in sweeps(tmp_path)] == ["two.lab"]
    boards[1].__exit__()
    assert list((tmp_path / "sweeps").iterdir()) == []


def test_sweeps_in_two_containers_of_one_host_name_are_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their processes may well have one number, and neither sees the other's."""
    with Board(tmp_path, "sqlite:////here", 1, 1) as here:
        here.show(*idle())
        monkeypatch.setattr(process, "NUMBERS", tmp_path)
        with Board(tmp_path, "sqlite:////there", 1, 1) as there:
            there.show(*idle())
            assert sorted(sweep["database"] for sweep in sweeps(tmp_path)) == ["/here", "/there"]


def test_a_sweep_in_which_nothing_happens_is_seen_from_other_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Board(tmp_path, "sqlite:////x", 1, 1, silence=4.0) as board:
        board.show(*idle())
        monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
        (path,) = (tmp_path / "sweeps").iterdir()
        os.utime(path, (0, 0))
        wait_for(lambda: len(sweeps(tmp_path)) == 1, 20)
    assert list((tmp_path / "sweeps").iterdir()) == []


@pytest.mark.parametrize(
    ("running", "waiting", "seconds"),
    [
        ((), (3600.0, 10.0), 3600),  # the second slot does not shorten the one long run
        ((), (30.0, 20.0, 10.0), 30),
        ((), (30.0, 30.0, 30.0), 45),
        ((600.0,), (10.0,), 600),
        ((60.0, 60.0), (60.0,), 90),
        ((10.0,), (600.0,), 600),
    ],
)
def test_when_a_sweep_ends(
    tmp_path: Path, running: tuple[float, ...], waiting: tuple[float, ...], seconds: float
) -> None:
    with Board(tmp_path, "sqlite:////x", 3, 2) as board:
        board.show(*idle(*waiting, running=running))
        (sweep,) = sweeps(tmp_path)
    left = (datetime.fromisoformat(sweep["ends"]) - now()).total_seconds()
    assert seconds - 10 < left <= seconds


def test_how_a_sweep_is_described() -> None:
    """Times are half a minute from the next, so that a busy machine changes no line."""
    present = now()

    def ago(seconds: float) -> str:
        return written(present - timedelta(seconds=seconds))

    sweep = {
        "pid": 7,
        "host": "here",
        "database": "/b.db",
        "started": ago(600),
        "total": 20,
        "counts": {"done": 9, "failed": 1},
        "left": 8,
        "running": [
            {"run": "a", "device": "cuda:0", "attempt": 1, "since": ago(180), "expected_end": ago(-120)},
            {"run": "b", "device": "cuda:1", "attempt": 2, "since": ago(180), "expected_end": ago(3)},
        ],
        "failures": [{"run": "c", "state": "failed", "reason": "why", "when": ago(120)}],
        "ends": ago(-3010),
        "unknown_times": 2,
    }
    lines = status_files.text([sweep]).splitlines()
    assert lines == [
        "sweep 7 on here into /b.db, for 10 min",
        "10 of 20 runs ended: 9 done, 1 failed",
        "2 running, 8 waiting; ends in 50 min, without 2 runs whose time is unknown",
        "  cuda:0: a, for 3 min, ends in 2 min",
        "  cuda:1: b, for 3 min, ends any moment, attempt 2",
        "  failed 2 min ago: c: why",
    ]


def test_a_home_that_cannot_be_written_costs_the_status_only(tmp_path: Path) -> None:
    work = Scripted(tmp_path)
    (tmp_path / "sweeps").write_text("in the way")
    assert work.sweep(expand(grid(methods=("local",), seeds=(0,)))).counts == {"done": 1}


def test_watching_is_for_people() -> None:
    with pytest.raises(RequestError, match="--watch"):
        status(watch=True, as_json=True)
