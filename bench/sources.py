"""Finds raw files in data roots or downloads them, and checks them before they are opened."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from filelock import FileLock

from bench import paths
from bench.errors import NoDataError, RequestError
from bench.paths import replacing_file

WAIT = 8.0
"""Longest time without data from a host, in seconds."""


@dataclass(frozen=True)
class RawFile:
    """A raw file: its path below a data root, its checksum, and where it can be downloaded.

    ``also`` lists other paths where users may have the file; other data sets may use the same paths. The file
    comes from ``url``, or is the ``member`` of an ``archive``, which is a raw file, too. Without ``sha256``
    the ``md5`` is checked. A file without both has no published checksum; only its archive has one.
    """

    path: str
    sha256: str | None = None
    url: str | None = None
    md5: str | None = None
    also: tuple[str, ...] = ()
    archive: RawFile | None = None
    member: str = ""

    def mismatch(self, path: Path) -> str:
        """Describe how the checksum of ``path`` differs from this raw file's; empty if it does not."""
        expected = self.sha256 or self.md5
        if not expected:
            return ""
        algorithm = "sha256" if self.sha256 else "md5"
        status = path.stat()
        found = _digest(path.absolute(), algorithm, status.st_size, status.st_mtime_ns)
        return "" if found == expected else f"expected {algorithm} {expected}, found {found}"

    def check(self, path: Path) -> Path:
        """Return ``path`` if its checksum is right; else raise ``RequestError``."""
        if problem := self.mismatch(path):
            raise RequestError(
                f"{path} is damaged or another version: {problem}; "
                "replace it by the original, or remove it to have it downloaded"
            )
        return path


@cache
def _digest(path: Path, algorithm: str, *_: int) -> str:
    """A file's hash. It is computed again only if the file's size or time changes."""
    with open(path, "rb") as content:
        return hashlib.file_digest(content, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


class Sources:
    """Finds, checks and, if ``download``, downloads raw files.

    ``roots`` are searched in order, then ``BENCH_HOME/data``. Downloads go to ``BENCH_HOME/data``.
    """

    def __init__(self, roots: tuple[Path, ...], download: bool = True) -> None:
        self.store = paths.home() / "data"
        self.roots = tuple(dict.fromkeys((*roots, self.store)))
        self.download = download

    def locate(self, file: RawFile) -> Path | None:
        """The file's path in the first data root that has the file; None if no data root has it.

        A file at ``file.path`` is returned with any checksum, so that a wrong checksum is reported later.
        A file at a path of ``also`` may belong to another data set and is returned only if its checksum fits.
        """
        for root in self.roots:
            if os.path.isfile(root / file.path):  # no error if the folder cannot be read
                return root / file.path
            for path in (root / name for name in file.also):
                if os.path.isfile(path) and not file.mismatch(path):
                    return path
        return None

    def at_hand(self, file: RawFile) -> Path | None:
        """The path of the file, or else of its archive; None if both are missing."""
        return self.locate(file) or (self.locate(file.archive) if file.archive else None)

    def get(self, file: RawFile) -> Path:
        """``get_all`` for one file."""
        return self.get_all([file])[0]

    def get_all(self, files: Sequence[RawFile]) -> list[Path]:
        """Check files, download missing ones, and return their paths.

        If files cannot be obtained, ``NoDataError`` names them all. A wrong checksum is a ``RequestError``.
        """
        missing_files = [file for file in files if self.locate(file) is None]
        for place, file in enumerate(missing_files):
            try:
                self._obtain(file)
            except NoDataError as error:
                names = ", ".join(file.path for file in missing_files[place:])
                alternative = f" (or {file.archive.path})" if file.archive else ""
                roots = ", ".join(map(str, self.roots))
                raise NoDataError(
                    f"missing {names}; {error}; put what is missing{alternative} at that path below one of "
                    f"{roots}, or name the folder that has it with --data-root or BENCH_DATA"
                ) from None
        return [self._checked_path(file) for file in files]

    def _checked_path(self, file: RawFile) -> Path:
        path = self.locate(file)
        assert path is not None, file.path
        return file.check(path)

    def _obtain(self, file: RawFile) -> None:
        """Download the file, or unpack it from its archive, into ``BENCH_HOME/data``.

        If several processes request a file, only one writes it. A failure leaves no partial file.
        """
        if file.archive and self.locate(file.archive) is None:
            self._obtain(file.archive)
        if not file.archive and not (self.download and file.url):
            raise NoDataError("it has no public address" if self.download else "downloads are switched off")
        target = self.store / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_name(f".{target.name}.lock")):
            if target.exists():
                return
            with replacing_file(target) as part:
                if file.archive:
                    _unpack(self._checked_path(file.archive), file.member, part)
                    file.check(part)
                else:
                    _download(file, part)


def _download(file: RawFile, target: Path) -> None:
    """Download a file; raise ``NoDataError`` if the host does not answer, refuses, or sends another file."""
    request = Request(str(file.url), headers={"User-Agent": "pfl-bench"})
    try:
        with urlopen(request, timeout=WAIT) as response, target.open("wb") as content:
            shutil.copyfileobj(response, content)
    except (URLError, HTTPException, TimeoutError, ConnectionError) as error:
        raise NoDataError(f"{file.url}: {error}") from None
    if file.mismatch(target):
        raise NoDataError(f"{file.url} sent something else than the published file")


def _unpack(archive: Path, member: str, target: Path) -> None:
    """Write a member of a zip or tar archive into a file."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped, zipped.open(member) as packed, target.open("wb") as content:
            shutil.copyfileobj(packed, content)
    else:
        with tarfile.open(archive) as tarred, target.open("wb") as content:
            packed_file = tarred.extractfile(member)
            assert packed_file is not None, member
            shutil.copyfileobj(packed_file, content)
