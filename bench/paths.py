"""Where the suite keeps things: ``BENCH_HOME`` and the data roots."""

from __future__ import annotations

import os
from pathlib import Path

from bench.errors import RequestError


def home() -> Path:
    """The suite's own folder: ``$BENCH_HOME``, else ``~/.bench``. Not created here."""
    return Path(os.path.expanduser(os.environ.get("BENCH_HOME") or "~/.bench"))


def data_roots(data_root: Path | None = None) -> tuple[Path, ...]:
    """Folders searched for raw files, in order: the option, ``$BENCH_DATA``, ``BENCH_HOME/data``."""
    if data_root is not None and not data_root.is_dir():
        raise RequestError(f"--data-root expects a folder, got {data_root}")
    roots = [data_root] if data_root else []
    if os.environ.get("BENCH_DATA"):
        roots.append(Path(os.path.expanduser(os.environ["BENCH_DATA"])))
    return (*roots, home() / "data")


def default_database() -> str:
    """URL of the database used when none is named."""
    return f"sqlite:///{home() / 'bench.db'}"
