"""Serving a site on this machine alone."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.errors import RequestError

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
