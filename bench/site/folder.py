"""The folder of a site: the addresses of its pages, and the list of its files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.errors import RequestError
from bench.paths import check_replaceable

INDEX = "index.html"
"""The front page, which leads to all others."""

LISTING = ".bench-report.json"
"""The file that lists the files written into a folder, and identifies their inputs."""

PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")


def file_name(name: str) -> str:
    """A file name for any name. A name that is safe on every system stays; others become ``x.DIGEST``, which
    no safe name can equal because of the dot.
    """
    if PLAIN.fullmatch(name):
        return name
    return f"x.{hashlib.blake2b(name.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def board_page(study: str, dataset: str) -> str:
    """Address of a study's board on a data set. All addresses here start at the site's root."""
    return f"board/{file_name(f'{study}-{dataset}')}.html"


def method_page(method: str) -> str:
    """Address of a method's page."""
    return f"method/{file_name(method)}.html"


def dataset_page(dataset: str) -> str:
    """Address of a data set's page."""
    return f"dataset/{file_name(dataset)}.html"


def run_page(spec_hash: str) -> str:
    """Address of a run."""
    return f"run.html#{spec_hash}"


def _listing(out: Path) -> dict[str, Any]:
    """Read the list that an earlier site left in a folder: ``files`` (paths within the folder), ``stamp``
    (identifies the inputs) and ``texts`` (for a terminal). If it cannot be read, ``files`` is empty.
    """
    try:
        return {"files": [], **json.loads((out / LISTING).read_text(encoding="utf-8"))}
    except (OSError, ValueError, TypeError):
        return {"files": []}


def unchanged(out: Path, stamp: str) -> list[str] | None:
    """The terminal texts of the report in a folder; None if its files or its ``stamp`` differ."""
    found = _listing(out)
    return found["texts"] if found.get("stamp") == stamp and found["files"] == _files(out) else None


def tables(out: Path) -> dict[str, Path]:
    """Name of a document (``fedsheafhn_table1``) -> text file of its tables in a report."""
    return {
        f"{path.parent.parent.name}_{path.parent.name}": path for path in sorted(out.glob("*/*/table.txt"))
    }


def check(out: Path) -> None:
    """Refuse an ``out`` that is not a folder, or has files that bench did not write."""
    check_replaceable(out)
    own_files = _listing(out)["files"]
    for name in _files(out):
        if name not in own_files:
            raise RequestError(
                f"--out {out}: would replace {name}, which bench did not write: name another folder"
            )


def seal(folder: Path, stamp: str = "", texts: Sequence[str] = ()) -> None:
    """List the files of a folder in its ``LISTING``, with ``stamp`` and ``texts``."""
    listing = {"stamp": stamp, "files": _files(folder), "texts": texts}
    (folder / LISTING).write_text(json.dumps(listing) + "\n", encoding="utf-8", newline="\n")


def _files(folder: Path) -> list[str]:
    """Sorted paths of all files and links within a folder, without ``LISTING``."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir()]
    return [path.relative_to(folder).as_posix() for path in paths if path != folder / LISTING]
