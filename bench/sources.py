"""Raw files: found in a data root or downloaded, and checked before anybody opens them."""

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
"""Seconds for which a host may send nothing."""


@dataclass(frozen=True)
class RawFile:
    """A raw file: its path below a data root, its checksum, and where it can be downloaded.

    ``also`` lists other paths that users have it at, which other data sets may share. It comes either from
    ``url`` or as the ``member`` of an ``archive``, itself a raw file. Without ``sha256`` its ``md5`` is
    checked; a file without either has no published checksum of its own, only its archive has.
    """

    path: str
    sha256: str | None = None
    url: str | None = None
    md5: str | None = None
    also: tuple[str, ...] = ()
    archive: RawFile | None = None
    member: str = ""

    def mismatch(self, path: Path) -> str:
        """What is wrong with the checksum of ``path`` as this raw file; empty if nothing is."""
        expected = self.sha256 or self.md5
        if not expected:
            return ""
        algorithm = "sha256" if self.sha256 else "md5"
        status = path.stat()
        found = _digest(path.absolute(), algorithm, status.st_size, status.st_mtime_ns)
        return "" if found == expected else f"expected {algorithm} {expected}, found {found}"

    def check(self, path: Path) -> Path:
        """The path, if its checksum is that of this raw file; raises ``RequestError`` if not."""
        if problem := self.mismatch(path):
            raise RequestError(
                f"{path} is damaged or another version: {problem}; "
                "replace it by the original, or remove it to have it downloaded"
            )
        return path


@cache
def _digest(path: Path, algorithm: str, *_: int) -> str:
    """A file's hash, computed once as long as its size and time stay the same."""
    with open(path, "rb") as content:
        return hashlib.file_digest(content, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


class Sources:
    """Finds, checks and, where allowed, downloads raw files.

    ``roots`` are searched in order, then ``BENCH_HOME/data``, where downloads go.
    """

    def __init__(self, roots: tuple[Path, ...], download: bool = True) -> None:
        self.store = paths.home() / "data"
        self.roots = tuple(dict.fromkeys((*roots, self.store)))
        self.download = download

    def locate(self, file: RawFile) -> Path | None:
        """The file's path in the first data root that has it.

        What lies at ``file.path`` is found whatever its checksum, so that a wrong one is
        reported; what lies at another path may be another data set and counts only if it fits.
        """
        for root in self.roots:
            if os.path.isfile(root / file.path):  # False, not an error, where the folder is barred
                return root / file.path
            for path in (root / name for name in file.also):
                if os.path.isfile(path) and not file.mismatch(path):
                    return path
        return None

    def at_hand(self, file: RawFile) -> Path | None:
        """The path of the file, or else of the archive that holds it."""
        return self.locate(file) or (self.locate(file.archive) if file.archive else None)

    def get(self, file: RawFile) -> Path:
        """Path of a checked file; as ``get_all``."""
        return self.get_all([file])[0]

    def get_all(self, files: Sequence[RawFile]) -> list[Path]:
        """Paths of checked files, downloaded if need be.

        What is not to be had is a ``NoDataError`` that names all of it, a wrong checksum a ``RequestError``.
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

        Processes that want the same file write it once. What fails on the way leaves nothing.
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
    """Raises ``NoDataError`` where the host does not answer, refuses, or sends something else."""
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
