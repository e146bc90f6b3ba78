"""A folder of pages: written beside its place, then put there whole."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.errors import RequestError


def check_folder(out: Path) -> None:
    """Raises ``RequestError`` unless ``out`` is absent or a folder."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise RequestError(f"--out {out}: expected a folder, this is something else")


@contextmanager
def replacement(out: Path) -> Iterator[Path]:
    """A new folder that takes the place of ``out`` in the end; nothing changes if anything fails.

    Raises:
        RequestError: ``out`` cannot be written.
    """
    place = out.resolve()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        workspace = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    except OSError as error:
        raise RequestError(f"--out {out}: cannot write there: {error.strerror or error}") from None
    try:
        new_folder = workspace / "new"
        new_folder.mkdir()
        yield new_folder
        _swap(place, new_folder, workspace / "old")
    except OSError as error:
        raise RequestError(f"--out {out}: cannot write there: {error.strerror or error}") from None
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


def _swap(out: Path, new_folder: Path, old_folder: Path) -> None:
    if out.exists():
        out.rename(old_folder)
    try:
        new_folder.rename(out)
    except OSError:
        if old_folder.exists():
            old_folder.rename(out)
        raise
