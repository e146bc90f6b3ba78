"""Files and folders that take the place of older ones whole: what fails on the way changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.errors import RequestError


def check_replaceable(out: Path) -> None:
    """Refuse what cannot be replaced, or holds the working directory, before anybody works for it."""
    if Path.cwd().is_relative_to(out.resolve()):
        raise RequestError(f"--out {out}: would replace the folder that you are in: name another one")
    place = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not (place.is_dir() and os.access(place, os.W_OK)):
        raise RequestError(f"--out {out}: {place} is no folder that can be written")


def unfinished_files(path: Path) -> Iterable[Path]:
    """What processes that were killed while they wrote a file have left beside it."""
    return path.parent.glob(f"{path.stem}.*.tmp")


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """The path of a file beside ``path`` that takes its place in the end; it goes if anything fails."""
    temporary = path.with_name(f"{path.stem}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(out: Path) -> Iterator[Path]:
    """A new folder that takes the place of ``out`` in the end; nothing changes if anything fails."""
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
