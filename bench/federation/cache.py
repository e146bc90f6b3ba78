"""Keeps drawn and imported assignments under ``BENCH_HOME/partitions``, one small file each.

The files are those of ``bench.federation.assignment_file``, with the federation's hash. The clients'
tensors are taken from the data again. A damaged file of a drawn assignment counts as absent, since it can
be drawn again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from bench.errors import RequestError
from bench.federation import assignment_file
from bench.federation.assignment_file import AssignmentFile
from bench.paths import home
from bench.spec import FederationKey

FORMAT = 1
"""The version of the names of these files, not of the files."""


def _key(request: FederationKey, checksum: str, recipe: dict[str, Any]) -> str:
    content = {"format": FORMAT, "data": checksum, "recipe": recipe} | request._asdict()
    content["split"] = [float(share) for share in request.split]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def drawn_path(request: FederationKey, checksum: str, recipe: dict[str, Any]) -> Path:
    """The file of the assignment that is drawn for a request. ``checksum`` is the data's."""
    return home() / "partitions" / f"{_key(request, checksum, recipe)}.npz"


def imported_path(request: FederationKey, checksum: str) -> Path:
    """The file of the assignment that is imported for a request. It does not depend on library versions."""
    return home() / "partitions" / "imported" / f"{_key(request, checksum, {})}.npz"


def _write_error(path: Path, error: OSError) -> RequestError:
    return RequestError(
        f"cannot write to {path.parent} ({error.strerror or error}); "
        f"make it writable or set BENCH_HOME to a folder that is"
    )


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold the file's lock, so that one process draws while others wait for the result."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file_lock = FileLock(path.with_suffix(".lock"))
        file_lock.acquire()
    except OSError as error:
        raise _write_error(path, error) from None
    try:
        yield
    except BaseException:  # a refused request leaves no file behind
        path.with_suffix(".lock").unlink(missing_ok=True)
        raise
    finally:
        file_lock.release()


def write(path: Path, file: AssignmentFile) -> None:
    """Store an assignment. The caller holds the lock."""
    try:
        assignment_file.write(path, file)
    except OSError as error:
        raise _write_error(path, error) from None


def load(path: Path) -> AssignmentFile | None:
    """The stored assignment; None if there is none or if it cannot be read."""
    if not path.exists():
        return None
    try:
        return assignment_file.read_archive(path)
    except RequestError:
        return None
