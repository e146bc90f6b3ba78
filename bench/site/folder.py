"""A site's folder: the addresses of its pages, and what an earlier site left in it."""

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
"""The page that everything else is reached from."""

LISTING = ".bench-report.json"
"""The file that lists what was written into a folder, and from what."""

PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")


def file_name(name: str) -> str:
    """A name for a file: the name itself where that is harmless everywhere, else a digest after a dot, which
    no plain name has.
    """
    if PLAIN.fullmatch(name):
        return name
    return f"x.{hashlib.blake2b(name.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def board_page(study: str, dataset: str) -> str:
    """Address of a study's board on a data set, from the site's root as all others."""
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
    """What an earlier site wrote into a folder: ``files`` by their paths within it, of a report also the
    ``stamp`` of what it was made from, and the ``texts`` that a terminal shows of it.
    """
    try:
        return {"files": [], **json.loads((out / LISTING).read_text(encoding="utf-8"))}
    except (OSError, ValueError, TypeError):
        return {"files": []}


def unchanged(out: Path, stamp: str) -> list[str] | None:
    """The texts of a report in a folder, if it is whole and was made from what ``stamp`` names."""
    found = _listing(out)
    return found["texts"] if found.get("stamp") == stamp and found["files"] == _files(out) else None


def tables(out: Path) -> dict[str, Path]:
    """The tables of a report as text, by the names of their documents: ``fedsheafhn_table1``."""
    return {
        f"{path.parent.parent.name}_{path.parent.name}": path for path in sorted(out.glob("*/*/table.txt"))
    }


def check(out: Path) -> None:
    """Refuse an ``out`` that is no folder, or one with other files than an earlier site's."""
    check_replaceable(out)
    own_files = _listing(out)["files"]
    for name in _files(out):
        if name not in own_files:
            raise RequestError(
                f"--out {out}: would replace {name}, which bench did not write: name another folder"
            )


def seal(folder: Path, stamp: str = "", texts: Sequence[str] = ()) -> None:
    """Write down what lies in a folder."""
    listing = {"stamp": stamp, "files": _files(folder), "texts": texts}
    (folder / LISTING).write_text(json.dumps(listing) + "\n", encoding="utf-8", newline="\n")


def _files(folder: Path) -> list[str]:
    """Paths within a folder of all that is no folder, without the listing itself."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir()]
    return [path.relative_to(folder).as_posix() for path in paths if path != folder / LISTING]
