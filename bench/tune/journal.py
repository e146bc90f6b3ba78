"""Optuna's journal, where ``optuna-dashboard`` reads the trials, too, and who may write to it."""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock, Timeout
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from bench.errors import RequestError
from bench.tune.tuning import Tuning

JOURNAL = "journal.log"


class KernelLock(JournalFileOpenLock):
    """The journal's lock. Unlike the library's own it ends with its process, however that ends: nobody
    waits for a tuner that was killed while it wrote.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder / JOURNAL))
        self._lock = FileLock(folder / "writing.lock")

    def acquire(self) -> bool:
        """Wait for it."""
        self._lock.acquire()
        return True

    def release(self) -> None:
        """Give it back."""
        self._lock.release()


def journal(folder: Path) -> BaseStorage:
    """The journal in a folder, made where there is none.

    What a full disk or a crash left of a last line is cut off: it was never acted upon.

    Raises:
        RequestError: it cannot be written.
    """
    path = folder / JOURNAL
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writing = KernelLock(folder)
        writing.acquire()
        try:
            with path.open("ab"):
                _mend(path)
        finally:
            writing.release()
    except OSError as error:
        raise RequestError(f"tuning: expected to write {path}: {error.strerror}") from None
    return JournalStorage(JournalFileBackend(str(path), writing))


def _mend(path: Path) -> None:
    text = path.read_bytes()
    whole = text.rfind(b"\n") + 1
    if whole < len(text):
        os.truncate(path, whole)


def lock(folder: Path, tuning: Tuning) -> FileLock:
    """The study's lock, taken; the system gives it back when the process ends, however it ends.

    Raises:
        RequestError: another process tunes the study, or the folder cannot be written.
    """
    taken = FileLock(folder / f"{tuning.name.replace(' ', '-')}.lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken.acquire(blocking=False)
    except Timeout:
        raise RequestError(
            f"{tuning.title}: expected to be its only tuner, but another bench tune is at it; wait for it"
        ) from None
    except OSError as error:
        raise RequestError(f"tuning: expected to write {folder}: {error.strerror}") from None
    return taken
