"""Names by which others tell whether a process still runs, and processes that end with their parent."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from multiprocessing import connection, parent_process
from pathlib import Path

import psutil

BOOT = Path("/proc/sys/kernel/random/boot_id")
NUMBERS = Path("/proc/self/ns/pid")
"""The namespace of process numbers: a container may have its own, beside others of its host's name."""


def place() -> str:
    """The host, and a hash over its boot and over whose process numbers these are, where the system says."""
    boot = BOOT.read_text() if BOOT.exists() else ""
    numbers = NUMBERS.stat().st_ino if NUMBERS.exists() else 0
    digest = hashlib.sha256(f"{boot}{numbers}".encode()).hexdigest()
    return f"{socket.gethostname()}-{digest[:8]}"


def name() -> str:
    """This process: ``PLACE:PID:STARTED``."""
    return f"{place()}:{os.getpid()}:{_start_time(os.getpid()):.2f}"


def runs(name: str) -> bool | None:
    """Whether the process whose name begins so runs; None where only another place or user can tell."""
    machine, *numbers = name.split(":")
    if machine != place():
        return None
    pid, start = int(numbers[0]), float(numbers[1])
    try:
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:  # nobody has asked how it ended
            return False
        if abs(_start_time(pid) - start) < 1:
            return True
    except psutil.AccessDenied:
        return None
    except psutil.NoSuchProcess:
        return None if _is_hidden(pid) else False
    return False if BOOT.exists() else None  # elsewhere a clock that is set moves one of the times alone


def _is_hidden(pid: int) -> bool:
    """Whether there is such a process of another user, which the system does not show."""
    if os.name != "posix":  # there os.kill ends a process whatever the signal
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        pass
    return False


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
