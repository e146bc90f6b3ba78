"""Where the suite keeps things: ``BENCH_HOME`` and the data roots."""

from __future__ import annotations

import os
from pathlib import Path

from bench.errors import RequestError


def expanded(path: str, name: str) -> Path:
    """A path in which ``~`` and ``~USER`` are home folders; ``name`` is the variable or option that holds it.

    Raises:
        RequestError: there is no such home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise RequestError(f"{name} {path}: there is no such home folder, write the whole path") from None


def home() -> Path:
    """The suite's own folder: ``$BENCH_HOME``, else ``~/.bench``. Not created here.

    Raises:
        RequestError: there is no such home folder, or it is no folder, or can be none.
    """
    path = expanded(os.environ.get("BENCH_HOME") or "~/.bench", "BENCH_HOME")
    place = next((place for place in (path, *path.parents) if os.path.lexists(place)), Path())
    if not place.is_dir():
        raise RequestError(f"BENCH_HOME {path}: {place} is no folder: set BENCH_HOME to a folder")
    return path


def data_roots(data_root: Path | None = None) -> tuple[Path, ...]:
    """Folders searched for raw files, in order: the option, ``$BENCH_DATA``, ``BENCH_HOME/data``.

    Raises:
        RequestError: the option names no folder, a variable a home folder that there is not; or as ``home``.
    """
    if data_root is not None and not data_root.is_dir():
        raise RequestError(f"--data-root expects a folder, got {data_root}")
    roots = [data_root] if data_root else []
    if os.environ.get("BENCH_DATA"):
        roots.append(expanded(os.environ["BENCH_DATA"], "BENCH_DATA"))
    return (*roots, home() / "data")


def default_database() -> str:
    """URL of the database used when none is named; raises as ``home`` does."""
    return f"sqlite:///{home() / 'bench.db'}"
