"""Optuna's journal, where ``optuna-dashboard`` reads the trials, too, and who may write to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from bench.errors import RequestError
from bench.tune.tuning import Tuning

JOURNAL = "journal.log"


class KernelLock(JournalFileOpenLock):
    """The journal's lock. Unlike the library's own it ends with its process, however that ends: nobody
    waits for a tuner that was killed while it wrote. Who holds it finds whole lines: what a full disk or
    a crash left of the last one is cut off, for it was never acted upon.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder / JOURNAL))
        self._path = folder / JOURNAL
        self._lock = FileLock(folder / "writing.lock")

    def acquire(self) -> bool:
        """Wait for it."""
        self._lock.acquire()
        try:
            _mend(self._path)
        except OSError:
            self._lock.release()
            raise
        return True

    def release(self) -> None:
        """Give it back."""
        self._lock.release()


class Written(JournalFileBackend):
    """A journal that this process writes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder / JOURNAL), KernelLock(folder))
        self._path = folder / JOURNAL

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Add lines.

        Raises:
            RequestError: they cannot be written.
        """
        try:
            super().append_logs(logs)
        except OSError as error:
            raise RequestError(
                f"tuning: expected to write {self._path}: {error.strerror}; "
                "mend that, and the same command goes on"
            ) from None


def journal(folder: Path) -> BaseStorage:
    """The journal in a folder, made where there is none. What is done with it raises ``RequestError``
    where it can no longer be written.

    Raises:
        RequestError: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return JournalStorage(Written(folder))
    except OSError as error:
        raise RequestError(f"tuning: expected to write {folder / JOURNAL}: {error.strerror}") from None


def _mend(path: Path) -> None:
    with path.open("rb+") as file:
        if not file.seek(0, os.SEEK_END):
            return
        file.seek(-1, os.SEEK_END)
        if file.read() != b"\n":
            file.truncate(path.read_bytes().rfind(b"\n") + 1)


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
