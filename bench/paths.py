"""The suite's folders, and writers that replace a file or folder completely or leave it unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench.errors import RequestError

if TYPE_CHECKING:
    import pandas as pd


def home() -> Path:
    """The suite's own folder: ``$BENCH_HOME``, else ``~/.bench``. It may not exist yet."""
    return Path(os.path.expanduser(os.environ.get("BENCH_HOME") or "~/.bench"))


def data_roots(data_root: Path | None = None) -> tuple[Path, ...]:
    """Folders to search for raw files, in order: the option, ``$BENCH_DATA``, ``BENCH_HOME/data``."""
    if data_root is not None and not data_root.is_dir():
        raise RequestError(f"--data-root expects a folder, got {data_root}")
    roots = [data_root] if data_root else []
    if os.environ.get("BENCH_DATA"):
        roots.append(Path(os.path.expanduser(os.environ["BENCH_DATA"])))
    return (*roots, home() / "data")


def default_database() -> str:
    """URL of the default database."""
    return f"sqlite:///{home() / 'bench.db'}"


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a frame as CSV, fractions with four decimals; equal frames give equal bytes."""
    table.to_csv(path, index=False, float_format="%.4f", lineterminator="\n")


# Written whole -----------------------------------------------------------------------------------


def check_replaceable(out: Path) -> None:
    """Refuse a folder that cannot be written or contains the working directory, before the work starts."""
    if Path.cwd().is_relative_to(out.resolve()):
        raise RequestError(f"--out {out}: would replace the folder that you are in: name another one")
    place = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not (place.is_dir() and os.access(place, os.W_OK)):
        raise RequestError(f"--out {out}: {place} is no folder that can be written")


def unfinished_files(path: Path) -> Iterable[Path]:
    """Temporary files beside ``path`` that ``replacing_file`` leaves if its process is killed."""
    return path.parent.glob(f"{path.stem}.*.tmp")


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path. Its file replaces ``path`` at the end; if anything fails, it is deleted."""
    temporary = path.with_name(f"{path.stem}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(out: Path) -> Iterator[Path]:
    """Yield a new folder, which replaces ``out`` at the end. On an error ``out`` stays unchanged."""
    check_replaceable(out)
    place = out.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory("", f".{place.name}.", place.parent, ignore_cleanup_errors=True) as workspace:
        folder = Path(workspace, "new")
        folder.mkdir()
        yield folder
        old_folder = Path(workspace, "old")
        if place.exists():
            place.rename(old_folder)
        try:
            folder.rename(place)
        except OSError:
            if old_folder.exists():
                old_folder.rename(place)
            raise
