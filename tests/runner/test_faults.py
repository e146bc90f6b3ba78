"""The fault table: sweeps of real runs by the command line, each with one fault, beside an undisturbed one.

After each the finished runs are those of the undisturbed sweep, bit by bit and once each, the database is
sound and no process is left.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from processes import wait_for, workers_below
from wall_clock import WallClock, clock

from bench.engine.checkpoint import ARRAYS
from bench.runner.run import HELD_BACK

__all__ = ["clock"]

pytestmark = pytest.mark.slow

KILLS = 20
RUNS = 12
SWEEP = [
    *("sweep", "-d", "cora", "-k", "3", "-m", "fedavg", "-m", "fedpub", "-m", "fedsheafhn", "--seed", "0-3"),
    *("--set", "protocol.rounds=15", "--set", "client.hidden=16", "--jobs", "2"),
    *("--checkpoint-minutes", "1e-9"),  # after every round
]
BENCH = (sys.executable, "-c", "from bench.cli.main import main; main()")
METHODS = Path(__file__).with_name("faulty_methods.py")

Numbers = dict[str, tuple[list[Any], list[Any]]]
Settled = Callable[..., None]


@dataclass
class Home:
    """A ``BENCH_HOME`` of its own, the sweeps that are started in it and what they leave."""

    folder: Path
    more_environment: dict[str, str] = field(default_factory=dict)

    @property
    def database(self) -> Path:
        return self.folder / "bench.db"

    @property
    def environment(self) -> dict[str, str]:
        own = {"BENCH_HOME": str(self.folder), "BENCH_PLUGINS": str(METHODS)}
        return {**os.environ, **own, **self.more_environment}

    def start(self, *more: str) -> subprocess.Popen[str]:
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "output").open("a") as output:
            return subprocess.Popen(
                [*BENCH, *SWEEP, *more],
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def sweep(self, *more: str) -> int:
        """The exit code of a sweep that is left alone."""
        return self.start(*more).wait(timeout=600)

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()

    def processes(self) -> list[psutil.Process]:
        """Every process that was started for this home and is still there."""
        lines = []
        for process in psutil.process_iter():
            try:
                mine = process.environ().get("BENCH_HOME") == str(self.folder)
                if mine and process.status() != psutil.STATUS_ZOMBIE:
                    lines.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return lines

    def makings(self) -> Counter[str]:
        """How often each run was made to its end, by what the sweeps have said."""
        return Counter(re.findall(r"(\w+ cora .* seed \d+): done \d", self.output))

    def checkpoints(self) -> list[Path]:
        return sorted((self.folder / "checkpoints").glob("*.pt"))

    def stored(self) -> int:
        return len(numbers(self.database)) if self.database.exists() else 0


def numbers(database: Path) -> Numbers:
    """Every accuracy and curve of every finished run, by spec hash, read without the suite."""
    with sqlite3.connect(database) as raw:
        if not raw.execute("SELECT 1 FROM sqlite_master WHERE name = 'curves'").fetchone():
            return {}
        return {
            spec: (
                raw.execute(
                    "SELECT client, stage, split, rule, metric, value, samples FROM client_results "
                    "WHERE run_id = ? ORDER BY client, stage, split, rule, metric",
                    (run,),
                ).fetchall(),
                raw.execute(
                    "SELECT stage, split, rows, clients, data FROM curves "
                    "WHERE run_id = ? ORDER BY stage, split",
                    (run,),
                ).fetchall(),
            )
            for run, spec in raw.execute("SELECT id, spec_hash FROM runs WHERE state = 'done'").fetchall()
        }


def states(database: Path, methods: str = "%") -> dict[str, int]:
    """Stored runs by state, of the methods that are like a pattern."""
    with sqlite3.connect(database) as raw:
        query = "SELECT state, COUNT(*) FROM runs WHERE method LIKE ? GROUP BY state"
        return dict(raw.execute(query, (methods,)).fetchall())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Numbers:
    home = Home(tmp_path_factory.mktemp("undisturbed"))
    assert home.sweep() == 0, home.output
    wanted = numbers(home.database)
    assert len(wanted) == RUNS
    assert all(results and curves for results, curves in wanted.values())
    return wanted


@pytest.fixture
def settled(undisturbed: Numbers) -> Settled:
    """Checks what the homes of a fault hold in the end."""

    def settle(*homes: Home) -> None:
        for home in homes:
            wait_for(lambda home=home: not home.processes())  # a process needs a moment to end
            with sqlite3.connect(home.database) as raw:
                assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
            stored = numbers(home.database)
            assert stored.keys() == undisturbed.keys(), "none is lost"
            assert stored == undisturbed, "bit by bit"
            assert set(home.makings().values()) == {1}, home.output

    return settle


def finish(home: Home) -> None:
    """Sweeps until nothing is left to do."""
    assert any(home.sweep() == 0 for _ in range(4)), home.output


def kill_when_saved(home: Home) -> None:
    """A sweep that is killed once there are checkpoints."""
    process = home.start()
    wait_for(home.checkpoints)
    process.kill()
    process.wait()
    wait_for(lambda: not home.processes())


@pytest.mark.parametrize("moment", ["at random moments", "while it takes up a run"])
def test_workers_killed(tmp_path: Path, settled: Settled, moment: str) -> None:
    """A worker needs a second or more to start and take up the run that was handed to it."""
    chance = random.Random(moment)
    killed: list[int] = []
    homes: list[Home] = []
    while len(killed) < KILLS:
        homes.append(Home(tmp_path / str(len(homes))))
        process = homes[-1].start()
        while process.poll() is None:
            if moment == "at random moments":
                time.sleep(chance.uniform(0.5, 4.0))
                workers = workers_below(process.pid)
            else:
                time.sleep(0.02)
                workers = [worker for worker in workers_below(process.pid) if worker.pid not in killed]
                time.sleep(chance.uniform(0.0, 1.0) if workers else 0.0)
            if workers and len(killed) < KILLS:
                worker = chance.choice(workers)
                worker.kill()
                killed.append(worker.pid)
        finish(homes[-1])  # a run that was killed four times is left to the next sweep
    settled(*homes)


def test_sweeps_killed(tmp_path: Path, settled: Settled) -> None:
    chance = random.Random(22)
    killed = 0
    homes: list[Home] = []
    while killed < KILLS:
        homes.append(Home(tmp_path / str(len(homes))))
        process = homes[-1].start()
        while killed < KILLS and homes[-1].stored() < RUNS:
            time.sleep(chance.uniform(1.0, 8.0))
            process.send_signal(signal.SIGKILL)
            if process.wait() == 0:  # it was over before
                break
            killed += 1
            wait_for(lambda: not homes[-1].processes(), 10)
            process = homes[-1].start()
        process.wait(timeout=600)
        finish(homes[-1])
    settled(*homes)


def test_a_killed_sweep_goes_on_from_where_it_was_saved(tmp_path: Path, settled: Settled) -> None:
    home = Home(tmp_path / "home")
    kill_when_saved(home)
    with torch.serialization.safe_globals(ARRAYS):
        before = {path.stem: torch.load(path, weights_only=True)["seconds"] for path in home.checkpoints()}
    assert before
    assert home.sweep() == 0, home.output
    assert not home.checkpoints()
    with sqlite3.connect(home.database) as raw:
        seconds = dict(raw.execute("SELECT spec_hash, seconds_total FROM runs").fetchall())
    assert all(seconds[spec] > kept for spec, kept in before.items()), "what was saved counts"
    settled(home)


def test_two_sweeps_at_once(tmp_path: Path, settled: Settled) -> None:
    home = Home(tmp_path / "home")
    assert [process.wait(timeout=600) for process in (home.start(), home.start())] == [0, 0]
    assert home.makings().total() == RUNS  # not: done in another sweep
    settled(home)


def test_a_database_locked_for_thirty_seconds(tmp_path: Path, settled: Settled) -> None:
    home = Home(tmp_path / "home")
    process = home.start()
    wait_for(home.stored)
    with sqlite3.connect(home.database, isolation_level=None) as raw:
        raw.execute("BEGIN IMMEDIATE")
        time.sleep(30)
        raw.execute("ROLLBACK")
    assert process.wait(timeout=600) == 0, home.output
    settled(home)


def test_a_full_disk(tmp_path: Path, settled: Settled) -> None:
    """A file system of its own that is too small until a file on it is removed."""
    home = Home(tmp_path / "home")
    home.folder.mkdir()
    script = """
        mount -t tmpfs -o size=128m none "$BENCH_HOME" || exit 77
        head -c 133700000 /dev/zero >"$BENCH_HOME/ballast"
        "$@" >"$BENCH_KEPT/full" 2>&1; echo $? >"$BENCH_KEPT/code"
        rm "$BENCH_HOME/ballast"
        "$@" >"$BENCH_KEPT/room" 2>&1 || exit 1
        cat "$BENCH_KEPT/full" "$BENCH_KEPT/room" >"$BENCH_KEPT/output"
        cp "$BENCH_HOME"/bench.db* "$BENCH_KEPT"
    """
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", *BENCH, *SWEEP]
    if shutil.which("unshare") is None:
        pytest.skip("no unshare: no file system of its own to fill")
    kept = Home(tmp_path / "kept")
    kept.folder.mkdir()
    environment = {**home.environment, "BENCH_KEPT": str(kept.folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    if "ermitted" in done.stderr or done.returncode == 77:
        pytest.skip(f"may not mount a file system to fill: {done.stderr.strip()}")
    outputs = {path.name: path.read_text() for path in kept.folder.iterdir() if path.name in ("full", "room")}
    assert done.returncode == 0, (done.stderr, outputs)
    said = (kept.folder / "full").read_text().splitlines()[-1]
    assert (kept.folder / "code").read_text() == "2\n"
    assert "full" in said
    settled(kept)


def test_a_damaged_checkpoint(tmp_path: Path, settled: Settled) -> None:
    home = Home(tmp_path / "home")
    chance = random.Random(23)
    damaged = 0
    while damaged < 3:
        kill_when_saved(home)
        for path in home.checkpoints():
            content = bytearray(path.read_bytes())
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            path.write_bytes(content)
            damaged += 1
    assert home.sweep() == 0, home.output
    assert not home.checkpoints()
    settled(home)


def test_a_clock_that_is_set_back(tmp_path: Path, clock: WallClock, settled: Settled) -> None:
    """By hours: while two sweeps share the runs, while a killed worker's run is tried again, and while a
    method hangs for longer than a run may take.
    """
    home = Home(tmp_path / "home", clock.environment)
    both = [home.start("-m", "hangs", "--timeout-seconds", "30") for _ in range(2)]
    wait_for(home.stored)
    clock.set_back(3.0)
    workers_below(both[0].pid)[0].kill()
    clock.set_back(8.0)
    wait_for(lambda: "trying again" in home.output)
    wait_for(lambda: "hangs" in claimed(home), 300)
    time.sleep(10.0)  # it has been taken up, and has twenty seconds left
    clock.set_back(15.0)
    for process in both:
        process.wait(timeout=200)
    assert states(home.database, "hangs")["failed"] in (HELD_BACK, 4), home.output
    with sqlite3.connect(home.database) as raw:
        starts = [datetime.fromisoformat(row[0]) for row in raw.execute("SELECT started FROM runs")]
    assert max(starts) - min(starts) > timedelta(hours=7), "the sweeps have read the clock"
    settled(home)


def claimed(home: Home) -> str:
    """The runs that the sweeps of a home are at, and those before; by the claims, whatever their clock."""
    with sqlite3.connect(home.database) as raw:
        return "; ".join(row[0] for row in raw.execute("SELECT run FROM claims"))


def test_methods_that_go_wrong(tmp_path: Path, settled: Settled) -> None:
    home = Home(tmp_path / "home")
    faulty = {"raises": "failed", "diverges": "diverged", "allocates": "oom", "hangs": "failed"}
    chosen = [word for method in faulty for word in ("-m", method)]
    assert home.sweep(*chosen, "--timeout-seconds", "30") == 1
    by_method = {method: states(home.database, method) for method in faulty}
    assert {method: set(ended) for method, ended in by_method.items()} == {
        method: {state} for method, state in faulty.items()
    }
    counts = {method: sum(ended.values()) for method, ended in by_method.items()}
    assert counts["diverges"] == counts["allocates"] == 4
    assert {counts["raises"], counts["hangs"]} <= {HELD_BACK, 4}, "held back unless it had begun"
    settled(home)
