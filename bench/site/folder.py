"""A site's folder: where its pages lie, its replacement as a whole, and serving it on this machine alone."""

from __future__ import annotations

import hashlib
import json
import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from bench.errors import RequestError
from bench.replacement import check_replaceable

INDEX = "index.html"
"""The page that everything else is reached from."""

REPORT = ".bench-report.json"
LEADERBOARD = "bench-leaderboard.json"
"""Files that list what was written into a folder, and from what."""

PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")

HOST = "127.0.0.1"


def file_name(name: str) -> str:
    """A name for a file, without its ending: the name itself where that is harmless everywhere.

    Else what is left of it with a digest. The dot before the digest occurs in no plain name, so two
    names never share a file, on file systems that ignore case neither.
    """
    if PLAIN.fullmatch(name):
        return name
    stem = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")[:40]
    return f"{stem or 'x'}.{hashlib.blake2b(name.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def board_page(study: str, dataset: str) -> str:
    """Address of a study's board on a data set, from the site's root as all others."""
    return f"board/{file_name(f'{study}-{dataset}')}.html"


def method_page(method: str) -> str:
    """Address of a method's page."""
    return f"method/{file_name(method)}.html"


def dataset_page(dataset: str) -> str:
    """Address of a data set's page."""
    return f"dataset/{file_name(dataset)}.html"


def pairs_file(study: str) -> str:
    """Address of the paired tests of a study."""
    return f"data/{file_name(f'{study}-pairs')}.csv"


def run_page(spec_hash: str) -> str:
    """Address of a run."""
    return f"run.html#{quote(spec_hash)}"


class Contents(NamedTuple):
    """What lies in a site's folder: ``files`` by their paths within it; ``stamp`` says what they were made
    from (empty: nobody knows). Of a report a terminal shows the ``brief`` text, which has its colours, the
    ``remarks`` on what is not in the tables, and the line on what lies ``beside`` the front page.
    """

    stamp: str
    files: list[str]
    brief: str = ""
    remarks: str = ""
    beside: str = ""


def contents(out: Path, kind: str = REPORT) -> Contents | None:
    """What an earlier site of a ``kind`` says that was written into a folder; None where there was none."""
    try:
        return Contents(**json.loads((out / kind).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def unchanged(out: Path, stamp: str) -> Contents | None:
    """The contents of a report in a folder, if it is whole and was made from what ``stamp`` names."""
    found = contents(out) if stamp else None
    return found if found and found.stamp == stamp and found.files == _files(out, REPORT) else None


def tables(out: Path) -> dict[str, Path]:
    """The tables of a report as text, by the names of their documents: ``fedsheafhn_table1``."""
    return {
        f"{path.parent.parent.name}_{path.parent.name}": path for path in sorted(out.glob("*/*/table.txt"))
    }


def check(out: Path, kind: str = REPORT) -> None:
    """Raises ``RequestError`` unless ``out`` is absent or a folder in which only an earlier site's files of
    that kind lie.
    """
    check_replaceable(out)
    earlier_contents = contents(out, kind)
    own_files = earlier_contents.files if earlier_contents else ()
    foreign_files = [name for name in _files(out, kind) if name not in own_files]
    if foreign_files:
        ending = f" and {len(foreign_files) - 1} more" if len(foreign_files) > 1 else ""
        word = "report" if kind == REPORT else "leaderboard"
        raise RequestError(
            f"--out {out}: no {word} wrote {foreign_files[0]}{ending}, and a {word} replaces its folder: "
            "name another folder, or move that away"
        )


def seal(folder: Path, kind: str = REPORT, stamp: str = "", *texts: str) -> Contents:
    """Write down what lies in a folder; ``texts`` are what a terminal shows of it."""
    folder_contents = Contents(stamp, _files(folder, kind), *texts)
    (folder / kind).write_text(json.dumps(folder_contents._asdict()) + "\n", encoding="utf-8", newline="\n")
    return folder_contents


def _files(folder: Path, kind: str) -> list[str]:
    """Paths within a folder of all that is no folder, without the list itself."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir()]
    return [path.relative_to(folder).as_posix() for path in paths if path != folder / kind]


class _Quiet(SimpleHTTPRequestHandler):
    """Files of one folder, without a line a request."""

    def log_message(self, *arguments: Any) -> None:
        """Nothing."""


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server of the folder, bound to the loopback address; port 0 takes a free one.

    Raises:
        RequestError: the port cannot be used.
    """
    try:
        return ThreadingHTTPServer((HOST, port), partial(_Quiet, directory=str(folder)))
    except (OSError, OverflowError) as error:
        raise RequestError(f"--port {port}: cannot be used: {error}; name another, or 0 for any") from None
