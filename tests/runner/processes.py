"""Sweeps as processes of their own: starting, watching and counting what they leave."""

import time
from collections.abc import Callable
from contextlib import suppress

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


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that are there and no zombies."""
    found = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE and process.is_running():
                found.append(process)
    return found


def workers_below(pid: int) -> list[psutil.Process]:
    """The pool's processes below one that can still run something."""
    found = []
    for process in below(pid):
        with suppress(psutil.NoSuchProcess):  # a zombie's command is gone, too
            if "spawn_main" in " ".join(process.cmdline()):
                found.append(process)
    return found
