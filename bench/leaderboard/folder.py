"""The site's folder: written beside its place, then put there whole."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.errors import RequestError

MARK = "bench-leaderboard.json"
"""File that says that a folder is a site of ours and may be replaced."""


def is_site(folder: Path) -> bool:
    """Whether a folder is a site that we wrote."""
    return (folder / MARK).is_file()


def check(out: Path) -> None:
    """Raises ``RequestError`` unless ``out`` is absent, an empty folder or a site of ours."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise RequestError(f"--out {out}: expected a folder, this is something else")
    if out.is_dir() and not is_site(out) and any(out.iterdir()):
        raise RequestError(
            f"--out {out}: expected an empty folder or an earlier leaderboard, found other files: name "
            "another folder"
        )


@contextmanager
def replaced(out: Path) -> Iterator[Path]:
    """A new folder that takes the place of ``out`` in the end; nothing changes if anything fails.

    Raises:
        RequestError: ``out`` is something else than a site, or cannot be written.
    """
    check(out)
    out = out.resolve()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise RequestError(f"--out {out}: cannot write there: {error.strerror or error}") from None
    try:
        made = beside / "site"
        made.mkdir()
        (made / MARK).write_text(json.dumps({"format": "bench leaderboard", "version": 1}) + "\n")
        yield made
        _swap(out, made, beside / "old")
    except OSError as error:
        raise RequestError(f"--out {out}: cannot write there: {error.strerror or error}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _swap(out: Path, made: Path, old: Path) -> None:
    if out.exists():
        out.rename(old)
    try:
        made.rename(out)
    except OSError:
        if old.exists():
            old.rename(out)
        raise
