"""Whether a process that has left its name still runs, and what ends with its parent."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import psutil
import pytest

from bench.runner import claims
from bench.runner.claims import still_runs, this_process


def named(pid: int, later: float = 0.0) -> str:
    place, _, began = this_process().split(":")
    return f"{place}:{pid}:{float(began) + later}"


def test_this_one_runs_and_one_of_its_number_before_it_does_not() -> None:
    assert still_runs(f"{this_process()}:more") is True
    assert still_runs(named(os.getpid(), later=-100)) is False


def test_one_that_was_killed_and_not_waited_for_runs_no_more() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        began = psutil.Process(other.pid).create_time() - psutil.boot_time()
        name = f"{socket.gethostname()}:{other.pid}:{began}"
        assert still_runs(name) is True
        other.kill()
        while psutil.Process(other.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        assert still_runs(name) is False


def test_what_cannot_be_seen_may_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """On another host, or of another user."""
    name = this_process()
    assert still_runs(f"else{name}") is None

    def hidden(pid: int) -> psutil.Process:
        raise psutil.AccessDenied(pid)

    monkeypatch.setattr(claims.psutil, "Process", hidden)
    assert still_runs(name) is None


POOL = """
import os, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from bench.runner.workers import end_with_parent

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
