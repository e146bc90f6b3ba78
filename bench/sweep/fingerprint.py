"""Which code makes a run: declared versions of its numbers, and a hash over its sources."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import bench
from bench import engine, registry

SHARED = ("engine", "federation", "nn", "streams.py", "data.py")
"""Parts of ``bench`` that every run goes through."""


@dataclass(frozen=True)
class Code:
    """Versions of a method's code. ``source`` covers the method's file, those of its bases, and
    the engine, client models and federations; other modules that a method imports are not in it.
    """

    method_numerics: int
    engine_numerics: int
    source: str


@cache
def code(method: str) -> Code:
    """The installed code of a method.

    Raises:
        RequestError: no such method.
    """
    kind = registry.method(method)
    own = {inspect.getfile(base) for base in kind.__mro__ if base is not object}
    digest = hashlib.sha256(_shared().encode())
    for file in sorted(map(Path, own), key=lambda path: path.name):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return Code(kind.numerics, engine.NUMERICS, digest.hexdigest())


@cache
def _shared() -> str:
    root = Path(bench.__file__).parent
    digest = hashlib.sha256()
    for part in SHARED:
        path = root / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(f"{file.relative_to(root).as_posix()}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
