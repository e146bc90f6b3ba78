from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bench.errors import NoDataError, RequestError
from bench.sources import RawFile, Sources

pytestmark = pytest.mark.usefixtures("home")
CONTENT = b"raw bytes\n" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def put(path: Path, content: bytes = CONTENT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


class Quiet(SimpleHTTPRequestHandler):
    requests: list[str]

    def do_GET(self) -> None:
        self.server.requests.append(self.path)  # type: ignore[attr-defined]
        if self.path in ("/half", "/silent"):
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT[: len(CONTENT) // 2])
            time.sleep(0.5 if self.path == "/silent" else 0)
            self.close_connection = True
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ThreadingHTTPServer]:
    """Serves ``tmp_path/served`` and keeps the paths that were asked for."""
    (tmp_path / "served").mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "served"))) as running:
        running.requests = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def address(server: ThreadingHTTPServer, name: str) -> str:
    return f"http://127.0.0.1:{server.server_port}/{name}"


def test_the_first_root_that_has_the_file_wins(tmp_path: Path, home: Path) -> None:
    file = RawFile("set/a.bin", SHA256)
    put(tmp_path / "two" / "set" / "a.bin")
    put(tmp_path / "three" / "set" / "a.bin")
    roots = tuple(tmp_path / name for name in ("one", "two", "three"))
    put(home / "data" / "set" / "a.bin")
    assert Sources(roots, download=False).get(file) == tmp_path / "two" / "set" / "a.bin"
    assert Sources(roots[:1], download=False).get(file) == home / "data" / "set" / "a.bin"


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_a_wrong_checksum_is_refused_and_named(tmp_path: Path, algorithm: str) -> None:
    expected = hashlib.new(algorithm, CONTENT).hexdigest()
    file = RawFile("a.bin", **{algorithm: expected})
    path = put(tmp_path / "a.bin", b"other")
    digest = hashlib.new(algorithm, b"other").hexdigest()
    with pytest.raises(RequestError) as caught:
        Sources((tmp_path,)).get(file)
    assert not isinstance(caught.value, NoDataError)
    for part in (str(path), expected, digest, "replace"):
        assert part in str(caught.value)
    path.write_bytes(CONTENT)
    assert Sources((tmp_path,)).get(file) == path


def test_a_file_that_changes_after_a_good_check_is_checked_again(tmp_path: Path) -> None:
    file = RawFile("a.bin", SHA256)
    path = put(tmp_path / "a.bin")
    sources = Sources((tmp_path,), download=False)
    sources.get(file)
    path.write_bytes(b"X" + CONTENT[1:])  # the same size
    os.utime(path, ns=(1, 1))
    with pytest.raises(RequestError, match="damaged"):
        sources.get(file)


def test_other_places_count_only_if_the_bytes_fit(tmp_path: Path) -> None:
    file = RawFile("full/a.bin", SHA256, also=("a.bin",))
    put(tmp_path / "one" / "a.bin", b"of another data set")
    right = put(tmp_path / "two" / "a.bin")
    assert Sources((tmp_path / "one", tmp_path / "two"), download=False).get(file) == right
    with pytest.raises(NoDataError, match=r"missing full/a\.bin"):
        Sources((tmp_path / "one",), download=False).get(file)


def test_every_missing_file_is_named_and_nothing_is_written(tmp_path: Path, home: Path) -> None:
    files = [RawFile(f"set/{name}.bin", SHA256) for name in "abc"]
    put(tmp_path / "root" / "set" / "b.bin")
    with pytest.raises(NoDataError) as caught:
        Sources((tmp_path / "root",), download=False).get_all(files)
    message = str(caught.value)
    assert "\n" not in message
    for part in ("set/a.bin, set/c.bin", str(tmp_path / "root"), "--data-root", "BENCH_DATA"):
        assert part in message
    assert "set/b.bin" not in message
    assert not home.exists()


def test_a_missing_file_is_downloaded_once(tmp_path: Path, home: Path, server: ThreadingHTTPServer) -> None:
    put(tmp_path / "served" / "a.bin")
    file = RawFile("set/a.bin", SHA256, address(server, "a.bin"))
    for _ in range(2):
        path = Sources(()).get(file)
        assert path == home / "data" / "set" / "a.bin"
        assert path.read_bytes() == CONTENT
    assert server.requests == ["/a.bin"]  # type: ignore[attr-defined]
    assert files_below(home) == [path]


def test_a_host_that_lacks_the_file_or_sends_something_else_leaves_nothing(
    tmp_path: Path, home: Path, server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.sources.WAIT", 0.3)
    put(tmp_path / "served" / "page", b"<html>try later</html>")
    other = "something else than the published file"
    for name, message in (("a.bin", "404"), ("page", other), ("half", other), ("silent", "timed out")):
        with pytest.raises(NoDataError, match=message):
            Sources(()).get(RawFile("a.bin", SHA256, address(server, name)))
        assert files_below(home) == []
    with pytest.raises(NoDataError, match="refused"):
        Sources(()).get(RawFile("a.bin", SHA256, "http://127.0.0.1:1/a.bin"))


def _fetch(url: str) -> None:
    Sources(()).get(RawFile("a.bin", SHA256, url))


def test_processes_that_want_the_same_file_get_it(
    tmp_path: Path, home: Path, server: ThreadingHTTPServer
) -> None:
    put(tmp_path / "served" / "a.bin")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_fetch, args=(address(server, "a.bin"),)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0, 0]
    assert files_below(home) == [home / "data" / "a.bin"]


def pack(folder: Path, kind: str = "zip", **members: bytes) -> bytes:
    """An archive with files in its folder ``in``."""
    for name, content in members.items():
        put(folder / "packed" / "in" / name, content)
    return Path(shutil.make_archive(str(folder / "archive"), kind, folder / "packed", "in")).read_bytes()


@pytest.mark.parametrize("kind", ["zip", "gztar"])
def test_a_member_is_unpacked_from_an_archive_at_hand(tmp_path: Path, home: Path, kind: str) -> None:
    packed = pack(tmp_path, kind, a=CONTENT)
    archive = RawFile("set/all.zip", hashlib.sha256(packed).hexdigest())
    file = RawFile("set/a.bin", SHA256, archive=archive, member="in/a")
    put(tmp_path / "root" / "set" / "all.zip", packed)
    sources = Sources((tmp_path / "root",), download=False)
    assert sources.at_hand(file) is not None
    path = sources.get(file)
    assert path == home / "data" / "set" / "a.bin"
    assert path.read_bytes() == CONTENT
    assert files_below(tmp_path / "root") == [tmp_path / "root" / "set" / "all.zip"]


def test_an_archive_is_downloaded_once_for_its_members(
    tmp_path: Path, home: Path, server: ThreadingHTTPServer
) -> None:
    packed = pack(tmp_path, a=b"a", b=b"b")
    put(tmp_path / "served" / "all.zip", packed)
    archive = RawFile("all.zip", hashlib.sha256(packed).hexdigest(), address(server, "all.zip"))
    files = [RawFile(name, archive=archive, member=f"in/{name}") for name in "ab"]
    assert [path.read_bytes() for path in Sources(()).get_all(files)] == [b"a", b"b"]
    assert server.requests == ["/all.zip"]  # type: ignore[attr-defined]


def test_an_archive_and_its_members_are_checked(tmp_path: Path, home: Path) -> None:
    packed = pack(tmp_path, a=b"other")
    put(tmp_path / "all.zip", packed)
    for digest, message in (
        ("0" * 64, "expected sha256 0000"),
        (hashlib.sha256(packed).hexdigest(), f"expected sha256 {SHA256}"),
    ):
        archive = RawFile("all.zip", digest)
        with pytest.raises(RequestError, match=message):
            Sources((tmp_path,)).get(RawFile("a.bin", SHA256, archive=archive, member="in/a"))
        assert files_below(home) == []
