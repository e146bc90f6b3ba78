"""Downloads: hosts that are silent, closed or stop halfway."""

from __future__ import annotations

import hashlib
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bench import download
from bench.download import DownloadError
from bench.errors import NoDataError
from bench.sources import RawFile, Sources

pytestmark = pytest.mark.usefixtures("home")

CONTENT = b"raw bytes\n" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


def address(server: ThreadingHTTPServer, name: str) -> str:
    return f"http://127.0.0.1:{server.server_port}/{name}"


def test_a_closed_port_fails_at_once_and_is_remembered(home: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/a.bin"
        started = time.monotonic()
        with pytest.raises(NoDataError, match="cannot be reached"):
            Sources(()).get(RawFile("a.bin", SHA256, url))
        with pytest.raises(NoDataError, match="did not answer a moment ago"):
            Sources(()).get(RawFile("b.bin", SHA256, url))
        assert time.monotonic() - started < download.WAIT
    assert not home.exists()


def test_the_wait_for_a_silent_host_is_within_ten_seconds() -> None:
    assert download.WAIT < 10


@pytest.mark.parametrize("sends", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"])
def test_a_silent_host_costs_one_wait_for_all_files(home: Path, tmp_path: Path, sends: bytes) -> None:
    """A server that accepts and says nothing, or sends headers and no byte of the file."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        kept: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):  # the end of the test
                while True:
                    connection, _ = listening.accept()
                    kept.append(connection)
                    if sends:
                        connection.recv(4096)
                        connection.sendall(sends)

        thread = threading.Thread(target=accept)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/a.bin"
        started = time.monotonic()
        with pytest.raises(DownloadError, match=r"did not answer within 0.4 s"):
            download.download(url, tmp_path / "a.bin", pytest.fail, wait=0.4)
        for name in "abc":
            with pytest.raises(NoDataError):
                Sources(()).get(RawFile(f"{name}.bin", SHA256, url))
        assert time.monotonic() - started >= 0.4
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
        assert len(kept) == 1, "asked once"
        for connection in kept:
            connection.close()
    assert not home.exists()


class Stalling(BaseHTTPRequestHandler):
    """Sends half of the file, then nothing more until the test ends."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[: len(CONTENT) // 2])
        self.server.ended.wait(10)  # type: ignore[attr-defined]

    def log_message(self, *_: object) -> None:
        pass


def test_a_host_that_stops_halfway_leaves_nothing(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Stalling) as running:
        running.ended = threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with pytest.raises(DownloadError, match="stopped sending"):
                download.download(address(running, "a.bin"), tmp_path / "a.bin", pytest.fail, wait=0.4)
        finally:
            running.ended.set()  # type: ignore[attr-defined]
            running.shutdown()
            thread.join()
    assert files_below(tmp_path) == []
