"""Sweeps as processes of their own: starting, watching and counting what they leave."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from fake_runs import stored_numbers

from bench.sweep.workers import SILENCE

SCRIPT = Path(__file__).with_name("sweep_script.py")


def wait_for(what: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


@dataclass
class Folder:
    """A database and the log of every start of a run, shared by the sweeps of one test."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def database(self) -> str:
        return f"sqlite:///{self.path / 'bench.db'}"

    def start(self, seconds: float = 0.15, seeds: int = 6, silence: float = SILENCE) -> subprocess.Popen[str]:
        """A sweep of twice as many runs as seeds."""
        (self.path / "log").mkdir(exist_ok=True)
        arguments = [self.database, str(self.path / "log"), str(seconds), str(seeds), str(silence)]
        return subprocess.Popen(
            [sys.executable, "-u", str(SCRIPT), *arguments],
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def starts(self) -> int:
        log = self.path / "log"
        return len(list(log.iterdir())) if log.exists() else 0

    def kept(self) -> int:
        return len(stored_numbers(self.database)) if (self.path / "bench.db").exists() else 0


def below(pid: int) -> list[psutil.Process]:
    """Every process below one, which may be gone already."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.is_running()
    except psutil.NoSuchProcess:
        return False


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [process for process in processes if is_alive(process)]


def is_worker(process: psutil.Process) -> bool:
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # a zombie's command is gone, too
        return False


def workers_below(pid: int) -> list[psutil.Process]:
    """The pool's processes below one that can still run something."""
    return [process for process in below(pid) if is_worker(process)]
