"""Sweeps as processes of their own: starting, watching and counting what they leave."""

import time
from collections.abc import Callable

import psutil


def wait_for(what: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


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
