"""A site's folder: the addresses of its pages, and what an earlier site left in it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

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


class Contents(NamedTuple):
    """What lies in a site's folder: ``files`` by their paths within it; ``stamp`` says what they were made
    from (empty: nobody knows). Of a report a terminal shows the ``brief`` text, which has its colours, the
    ``remarks`` on what is not in the tables, and the line on what lies ``beside`` the front page.
    """

    stamp: str
    files: Sequence[str]
    brief: str = ""
    remarks: str = ""
    beside: str = ""


def _contents(out: Path) -> Contents:
    """What an earlier site says that was written into a folder; nothing where there was none."""
    try:
        return Contents(**json.loads((out / LISTING).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Contents("", ())


def unchanged(out: Path, stamp: str) -> Contents | None:
    """The contents of a report in a folder, if it is whole and was made from what ``stamp`` names."""
    found = _contents(out)
    return found if found.stamp == stamp and found.files == _files(out) else None


def tables(out: Path) -> dict[str, Path]:
    """The tables of a report as text, by the names of their documents: ``fedsheafhn_table1``."""
    return {
        f"{path.parent.parent.name}_{path.parent.name}": path for path in sorted(out.glob("*/*/table.txt"))
    }


def check(out: Path) -> None:
    """Refuse an ``out`` that is no folder, or one with other files than an earlier site's."""
    check_replaceable(out)
    own_files = _contents(out).files
    for name in _files(out):
        if name not in own_files:
            raise RequestError(
                f"--out {out}: would replace {name}, which bench did not write: name another folder"
            )


def seal(folder: Path, stamp: str = "", *texts: str) -> Contents:
    """Write down what lies in a folder; ``texts`` are what a terminal shows of it."""
    written = Contents(stamp, _files(folder), *texts)
    (folder / LISTING).write_text(json.dumps(written._asdict()) + "\n", encoding="utf-8", newline="\n")
    return written


def _files(folder: Path) -> list[str]:
    """Paths within a folder of all that is no folder, without the listing itself."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir()]
    return [path.relative_to(folder).as_posix() for path in paths if path != folder / LISTING]
