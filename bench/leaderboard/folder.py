"""The site's folder: where its pages lie, and serving it on this machine alone."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.errors import RequestError
from bench.replacement import check_replaceable, replacing_folder

PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")


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


MARK = "bench-leaderboard.json"
"""File that says that a folder is a site of ours and may be replaced."""

RECORD = {"format": "bench leaderboard", "version": 1}
"""What that file holds."""


def is_site(folder: Path) -> bool:
    """Whether a folder is a site that we wrote."""
    return (folder / MARK).is_file()


def check(out: Path) -> None:
    """Raises ``RequestError`` unless ``out`` is absent, an empty folder or a site of ours."""
    check_replaceable(out)
    if out.is_dir() and not is_site(out) and any(out.iterdir()):
        raise RequestError(
            f"--out {out}: expected an empty folder or an earlier leaderboard, found other files: name "
            "another folder"
        )


@contextmanager
def replacement(out: Path) -> Iterator[Path]:
    """A new folder that takes the place of ``out`` in the end; nothing changes if anything fails.

    Raises:
        RequestError: ``out`` is something else than a site, or cannot be written.
    """
    check(out)
    with replacing_folder(out) as site:
        (site / MARK).write_text(json.dumps(RECORD) + "\n", encoding="utf-8", newline="\n")
        yield site


HOST = "127.0.0.1"


class _Quiet(SimpleHTTPRequestHandler):
    """Files of one folder, without a line a request."""

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing."""


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server of the folder, bound to the loopback address; port 0 takes a free one.

    Raises:
        RequestError: the port cannot be used.
    """
    if not 0 <= port <= 65535:
        raise RequestError(f"--port {port}: expected a number from 0 to 65535")
    try:
        return ThreadingHTTPServer((HOST, port), partial(_Quiet, directory=str(folder)))
    except OSError as error:
        raise RequestError(
            f"--port {port}: cannot be used: {error.strerror}; name another, or 0 for any"
        ) from None
