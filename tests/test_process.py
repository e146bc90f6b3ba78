"""Whether a process that has left its name still runs, and what ends with its parent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bench import process


def named(pid: int, later: float = 0.0) -> str:
    place, _, began = process.name().split(":")
    return f"{place}:{pid}:{float(began) + later}"


def test_this_one_runs_and_one_of_its_number_before_it_does_not() -> None:
    assert process.runs(f"{process.name()}:more") is True
    if process.BOOT.exists():
        assert process.runs(named(os.getpid(), later=-100)) is False


def test_one_that_was_killed_and_not_waited_for_runs_no_more() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        began = psutil.Process(other.pid).create_time() - psutil.boot_time()
        name = f"{process.place()}:{other.pid}:{began}"
        assert process.runs(name) is True
        other.kill()
        while psutil.Process(other.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        assert process.runs(name) is False


@pytest.mark.parametrize("error", [psutil.NoSuchProcess, psutil.AccessDenied])
def test_another_user_s_that_the_system_hides_may_run(
    error: type[psutil.Error], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on machines that show everybody but their own processes: numbers without names, or none at all."""
    name = process.name()

    def hidden(pid: int) -> psutil.Process:
        raise error(pid)

    def not_ours(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(process.psutil, "Process", hidden)
    monkeypatch.setattr(process.os, "kill", not_ours)
    assert process.runs(name) is None


def test_where_a_clock_that_is_set_moves_the_times_apart_another_time_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "BOOT", tmp_path / "no such file")  # as on macOS
    assert process.runs(process.name()) is True
    assert process.runs(named(os.getpid(), later=5)) is None
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert process.runs(named(ended.pid)) is False


POOL = """
import os, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from bench.process import end_with_parent

pool = ProcessPoolExecutor(1, get_context("spawn"), end_with_parent)
print(pool.submit(os.getpid).result(), flush=True)
pool.submit(time.sleep, 600).result()
"""


def test_a_process_at_work_ends_when_its_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", POOL], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        child.wait(timeout=60)
    assert not child.is_running()
