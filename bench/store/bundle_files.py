"""A bundle's files as bytes: regular ones only, never more than is allowed, and one-line refusals."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from bench.errors import RequestError

LONGEST = 300
"""Characters of a problem that a message tells; names and values in it may be anybody's."""


def one_line(text: str) -> str:
    """The text without line breaks and control characters, cut to ``LONGEST``."""
    line = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


class BundleFile(NamedTuple):
    """A file of a bundle, and what is said when something is wrong with it."""

    folder: Path
    name: str

    def refuse(self, problem: str) -> NoReturn:
        """Raise ``RequestError`` with the file's name and the problem, in one line."""
        raise RequestError(f"bundle {self.folder}: {self.name}: {one_line(problem)}")

    def require(self, holds: bool, problem: str) -> None:
        """Refuse unless it holds."""
        if not holds:
            self.refuse(problem)

    def each(self, holds: Iterable[Any], problem: str) -> None:
        """Refuse with the first row for which it does not hold."""
        wrong = np.flatnonzero(~np.asarray(holds, bool))
        if len(wrong):
            self.refuse(f"row {wrong[0]}: {problem}")

    def read(self, most: int) -> bytes:
        """The file's bytes, at most one more than ``most``; a link is not followed.

        Raises:
            OSError: it cannot be opened.
            RequestError: it is no regular file.
        """
        path = self.folder / self.name
        self.require(stat.S_ISREG(path.lstat().st_mode), "expected a regular file, no link or folder")
        with open(path, "rb", opener=_itself) as file:
            return file.read(most + 1)


def _itself(path: str, flags: int) -> int:
    """Opens no link's target, and does not wait for a pipe that nobody writes to."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def check_names(folder: Path, expected: Collection[str]) -> None:
    """Refuse a folder with anything else in it than the expected files.

    Raises:
        RequestError: naming the first foreign file.
        OSError: the folder cannot be read.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name not in expected:
                name = one_line(repr(entry.name))
                raise RequestError(f"bundle {folder}: {name} is not part of a bundle: take it out")
