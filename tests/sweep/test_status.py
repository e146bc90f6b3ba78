"""What a sweep says of itself to other processes, and how people see it."""

import json
import os
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fake_execute import outcome
from fake_runs import grid
from processes import wait_for
from scripted import Scripted
from stored_runs import save

from bench.cli.runs import status
from bench.errors import RequestError
from bench.grids import expand
from bench.store import open_store
from bench.store.store import now
from bench.sweep import status as status_text
from bench.sweep.claims import Claims
from bench.sweep.status import sweeps


def test_a_running_sweep_is_seen_and_watched_to_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = Scripted(tmp_path)
    status(db=work.url)
    assert capsys.readouterr().out == "no sweep is running\n"
    planned = expand(grid(methods=("local",), seeds=tuple(range(6))))
    thread = threading.Thread(target=work.sweep, args=(planned, {"*": ["done 2"]}))
    thread.start()
    wait_for(lambda: sweeps(work.url) and sweeps(work.url)[0]["counts"].get("done", 0) >= 1)
    status(db=work.url, as_json=True)
    (sweep,) = json.loads(capsys.readouterr().out)
    assert (sweep["pid"], sweep["total"], sweep["jobs"]) == (os.getpid(), 6, 2)
    assert sweep["database"] == str(tmp_path / "bench.db")
    assert sweep["running"]
    assert {run["device"] for run in sweep["running"]} == {"cpu"}
    assert sweep["ends"] is not None, "runs take half a second by their own account"
    status(db=work.url, watch=True)
    watched = capsys.readouterr().out
    thread.join()
    assert f"sweep {os.getpid()} on" in watched
    assert "of 6 runs ended" in watched
    assert "  cpu: " in watched
    assert watched.endswith("no sweep is running\n")


def test_sweeps_of_other_machines_are_seen_and_dead_ones_are_not(tmp_path: Path) -> None:
    """What a run claims is running until it is stored."""
    work = Scripted(tmp_path)
    first, second = expand(grid(methods=("local",), seeds=(0, 1)))

    def progress() -> dict[str, Any]:
        counts = {"done": 3}
        return {"jobs": 2, "total": 7, "counts": counts, "left": 2, "ends": None, "unknown_times": 4}

    with open_store(work.url, create=True) as store:
        here, elsewhere, dead = (Claims(store) for _ in range(3))
        expired = Claims(store, lease=0)
        elsewhere.owner = f"else{elsewhere.owner}"
        host, pid, started, token = dead.owner.split(":")
        dead.owner = f"{host}:{pid}:{float(started) - 100}:{token}"
        for claims, spec_hash in ((here, first.spec.hash), (elsewhere, "b"), (dead, "c"), (expired, "d")):
            assert claims.take(spec_hash, f"run {spec_hash[0]}", "cpu", progress)
        assert here.take(second.spec.hash, "second", "cuda:1", progress)
        seen = {sweep["host"]: sweep for sweep in sweeps(work.url)}
        assert seen.keys() == {host, f"else{host}"}
        assert [run["device"] for run in seen[host]["running"]] == ["cpu", "cuda:1"]
        assert (seen[host]["total"], seen[host]["counts"], seen[host]["ends"]) == (7, {"done": 3}, None)
        here.drop(first.spec.hash)
        assert [run["run"] for sweep in sweeps(work.url) for run in sweep["running"]] == ["second", "run b"]
        save(store, second.spec, outcome(second.spec), started=now())
        elsewhere.__exit__()
        assert [sweep["running"] for sweep in sweeps(work.url)] == [[]]


def test_how_a_sweep_is_described() -> None:
    """Times are half a minute from the next, so that a busy machine changes no line."""
    present = now()

    def ago(seconds: float) -> str:
        return (present - timedelta(seconds=seconds)).isoformat(timespec="seconds")

    sweep = {
        "pid": 7,
        "host": "here",
        "database": "/b.db",
        "started": ago(600),
        "total": 20,
        "counts": {"done": 9, "failed": 1},
        "left": 8,
        "running": [{"run": "a", "device": "cuda:0", "since": ago(180)}],
        "ends": ago(-3010),
        "unknown_times": 2,
    }
    assert status_text.text([sweep]).splitlines() == [
        "sweep 7 on here into /b.db, for 10 min",
        "10 of 20 runs ended: 9 done, 1 failed",
        "1 running, 8 waiting; ends in 50 min, without 2 runs whose time is unknown",
        "  cuda:0: a, for 3 min",
    ]


def test_watching_is_for_people() -> None:
    with pytest.raises(RequestError, match="--watch"):
        status(watch=True, as_json=True)
