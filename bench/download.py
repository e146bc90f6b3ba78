"""Downloads one file with bounded waiting; a failed download leaves nothing behind."""

from __future__ import annotations

import http.client
import queue
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from filelock import FileLock

from bench.replacement import replacing_file

WAIT = 8.0
"""Seconds until a host must have sent its first bytes, and between any two reads after that."""

RETRY_AFTER = 300.0
"""Seconds for which a host that did not answer is not asked again."""

_CHUNK = 1 << 20
_silent: dict[str, float] = {}


class DownloadError(Exception):
    """The file could not be downloaded; the message is a reason in a few words."""


def _open(url: str, wait: float) -> tuple[http.client.HTTPResponse, bytes]:
    """The response and its first bytes, at most ``wait`` seconds after the call.

    The socket's own timeout covers neither name resolution nor several addresses tried in a row,
    hence the thread.
    """
    host = urlsplit(url).netloc
    if time.monotonic() - _silent.get(host, -RETRY_AFTER) < RETRY_AFTER:
        raise DownloadError(f"{host} did not answer a moment ago")
    answers: queue.Queue[tuple[http.client.HTTPResponse, bytes] | Exception] = queue.Queue()

    def ask() -> None:
        try:
            response = urlopen(Request(url, headers={"User-Agent": "pfl-bench"}), timeout=wait)
            answers.put((response, response.read1(_CHUNK)))
        except Exception as error:  # handed to the caller's thread, whatever it is
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=wait)
    except queue.Empty:
        answer = TimeoutError()
    if isinstance(answer, HTTPError):
        raise DownloadError(f"{host} answered {answer.code} {HTTPStatus(answer.code).phrase}")
    if isinstance(answer, TimeoutError) or (
        isinstance(answer, URLError) and isinstance(answer.reason, TimeoutError)
    ):
        _silent[host] = time.monotonic()
        raise DownloadError(f"{host} did not answer within {wait:g} s")
    if isinstance(answer, Exception):
        _silent[host] = time.monotonic()
        raise DownloadError(f"{host} cannot be reached ({getattr(answer, 'reason', answer)})")
    return answer


def write_once(target: Path, fill: Callable[[Path], None]) -> None:
    """Make ``target`` by letting ``fill`` write a temporary file, which then takes its place at once.

    Holds a lock, so that processes that want the same file write it once; does nothing if the
    file is there by the time the lock is held.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.with_name(f".{target.name}.lock")):
        if not target.exists():
            with replacing_file(target) as temporary:
                fill(temporary)


def download(url: str, target: Path, check: Callable[[Path], None], wait: float = WAIT) -> None:
    """Download ``url`` to ``target``; ``check`` may refuse the bytes by raising.

    Nothing is written before the first bytes have come. A host that sends nothing costs at most
    ``wait`` seconds.

    Raises:
        DownloadError: the host does not answer, refuses, or stops sending.
    """
    response, first_chunk = _open(url, wait)

    def fill(part: Path) -> None:
        with part.open("wb") as file:
            chunk = first_chunk
            while chunk:
                file.write(chunk)
                try:
                    chunk = response.read1(_CHUNK)
                except (OSError, http.client.HTTPException) as error:
                    raise DownloadError(f"{urlsplit(url).netloc} stopped sending ({error})") from None
        check(part)

    with response:
        write_once(target, fill)
