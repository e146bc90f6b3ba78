"""Drawn and imported assignments under ``BENCH_HOME/partitions``, one small file each.

A file holds item ids and roles, the federation's hash and how it was made; the clients' tensors are
taken from the data again. Drawn ones can be drawn again, so a damaged file counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from bench.data import Ragged
from bench.errors import RequestError
from bench.federation.scenario import Assignment, Split
from bench.paths import home

FORMAT = 1


@dataclass(frozen=True)
class Request:
    """What decides a federation, as in ``RunSpec.federation_key``."""

    dataset: str
    scenario: str
    clients: int
    partition_seed: int
    split: Split


@dataclass(frozen=True, eq=False)
class Entry:
    """A stored assignment with its federation's hash and provenance."""

    assignment: Assignment
    hash: str
    provenance: dict[str, Any]


def _key(request: Request, checksum: str, recipe: dict[str, Any]) -> str:
    content = {"format": FORMAT, "data": checksum, "recipe": recipe} | asdict(request)
    content["split"] = [float(share) for share in request.split]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def drawn_path(request: Request, checksum: str, recipe: dict[str, Any]) -> Path:
    """Where the assignment drawn for a request is kept; ``checksum`` is the data's."""
    return home() / "partitions" / f"{_key(request, checksum, recipe)}.npz"


def imported_path(request: Request, checksum: str) -> Path:
    """Where an assignment imported for a request is kept, whatever library would have drawn it."""
    return home() / "partitions" / "imported" / f"{_key(request, checksum, {})}.npz"


def _refused(path: Path, error: OSError) -> RequestError:
    return RequestError(
        f"cannot write to {path.parent} ({error.strerror or error}); "
        f"make it writable or set BENCH_HOME to a folder that is"
    )


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold the file's lock, so that one process draws while others wait for its result."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        held = FileLock(path.with_suffix(".lock"))
        held.acquire()
    except OSError as error:
        raise _refused(path, error) from None
    try:
        yield
    except BaseException:  # a refused request leaves no file behind
        path.with_suffix(".lock").unlink(missing_ok=True)
        raise
    finally:
        held.release()


def save_npz(path: Path, arrays: dict[str, Any]) -> None:
    """Write an NPZ file under its name only once it is complete."""
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
        try:
            np.savez_compressed(file, allow_pickle=False, **arrays)
            file.close()
            Path(file.name).chmod(0o644)
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def write(path: Path, entry: Entry) -> None:
    """Store an entry; call with its lock held."""
    ids = Ragged.of(list(entry.assignment.ids))
    about = json.dumps({"hash": entry.hash, "provenance": entry.provenance})
    arrays = {
        "ids": ids.values,
        "offsets": ids.offsets,
        "roles": np.concatenate(entry.assignment.roles),
        "about": np.array(about),
    }
    try:
        save_npz(path, arrays)
    except OSError as error:
        raise _refused(path, error) from None


def load(path: Path) -> Entry | None:
    """The stored entry; None where there is none or it cannot be read."""
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            cuts = file["offsets"][1:-1]
            about = json.loads(file["about"].item())
            assignment = Assignment(
                tuple(np.split(file["ids"].astype(np.int64, casting="safe"), cuts)),
                tuple(np.split(file["roles"].astype(np.int8, casting="safe"), cuts)),
            )
            return Entry(assignment, str(about["hash"]), dict(about["provenance"]))
    except Exception:  # whatever zipfile, zlib, NumPy or json raise on damaged bytes
        return None
