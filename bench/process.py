"""Names by which others tell whether a process still runs, and processes that end with their parent."""

from __future__ import annotations

import os
import socket
import threading
from multiprocessing import connection, parent_process

import psutil


def name() -> str:
    """This process: ``HOST:PID:STARTED``."""
    return f"{socket.gethostname()}:{os.getpid()}:{_start_time(os.getpid()):.2f}"


def runs(name: str) -> bool | None:
    """Whether the process whose name begins so runs; None where only another host or user can tell."""
    host, pid, started = name.split(":")[:3]
    if host != socket.gethostname():
        return None
    try:
        is_there = psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE  # nobody asked how it ended
        return is_there and abs(_start_time(int(pid)) - float(started)) < 1
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return None


def _start_time(pid: int) -> float:
    """Seconds from the boot to a process's start: on Linux a clock that is set moves both of the times."""
    return float(psutil.Process(pid).create_time() - psutil.boot_time())


def end_with_parent() -> None:
    """Let this process, which another one of Python's has started, end when that one does, however it ends:
    killed, it tells nobody.
    """
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
