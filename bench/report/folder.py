"""A report's folder: replaced whole, with a list of what is in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from bench.errors import RequestError
from bench.replacement import check_replaceable

INDEX = "index.html"
"""The page that everything else is reached from."""

CONTENTS = ".bench-report.json"
"""File that lists what a report wrote, and from what."""


@dataclass(frozen=True)
class Contents:
    """``files`` by their paths within the folder, with hashes; ``stamp`` says what they were made from
    (empty: nobody knows). A terminal shows the ``brief`` text, which has its colours, the ``remarks`` on what
    is not in the tables, and the line on what lies ``beside`` the front page.
    """

    stamp: str
    files: dict[str, str]
    brief: str
    remarks: str
    beside: str


ADAPTER = TypeAdapter(Contents)


def contents(out: Path) -> Contents | None:
    """What an earlier report says that it wrote into a folder; None where there was none."""
    try:
        return ADAPTER.validate_json((out / CONTENTS).read_bytes())
    except (OSError, ValidationError):
        return None


def unchanged(out: Path, stamp: str) -> Contents | None:
    """The contents of a report in a folder, if it is whole and was made from what ``stamp`` names."""
    earlier_contents = contents(out) if stamp else None
    if earlier_contents is None or earlier_contents.stamp != stamp or _hashes(out) != earlier_contents.files:
        return None
    return earlier_contents


def tables(out: Path) -> dict[str, Path]:
    """The tables of a report as text, by the names of their documents: ``fedsheafhn_table1``."""
    return {
        f"{path.parent.parent.name}_{path.parent.name}": path for path in sorted(out.glob("*/*/table.txt"))
    }


def check(out: Path) -> None:
    """Raises ``RequestError`` unless ``out`` is absent or a folder in which only a report's files lie."""
    check_replaceable(out)
    earlier_contents = contents(out)
    report_files = {CONTENTS, *earlier_contents.files} if earlier_contents else set()
    foreign_files = sorted(set(_files(out)) - report_files)
    if foreign_files:
        ending = f" and {len(foreign_files) - 1} more" if len(foreign_files) > 1 else ""
        raise RequestError(
            f"--out {out}: no report wrote {foreign_files[0]}{ending}, and a report replaces its folder: "
            "name another folder, or move that away"
        )


def seal(folder: Path, stamp: str, *texts: str) -> Contents:
    """Write down what lies in a folder; ``texts`` are what a terminal shows of it."""
    folder_contents = Contents(stamp, _hashes(folder), *texts)
    (folder / CONTENTS).write_bytes(ADAPTER.dump_json(folder_contents) + b"\n")
    return folder_contents


def _files(folder: Path) -> Iterator[str]:
    """Paths within a folder of all that is no folder."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_dir():
            yield path.relative_to(folder).as_posix()


def _hashes(folder: Path) -> dict[str, str]:
    """Path -> hash of every file in a folder, without the list itself."""
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in _files(folder)
        if name != CONTENTS and (folder / name).is_file()
    }
