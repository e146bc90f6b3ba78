"""Every federation of a sweep, built once before anything runs, and handed to the workers."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from bench.errors import NoDataError
from bench.spec import FederationKey, RunSpec

if TYPE_CHECKING:
    from bench.federation.types import Federation

Build = Callable[..., "Federation"]

ROOM = 2**30
"""Bytes of federations that are copied for workers, who build the others themselves."""


@dataclass(frozen=True)
class FederationCopy:
    """Where a worker on the same machine reads a federation, for as long as the sweep lasts."""

    path: str
    offset: int

    def read(self) -> Federation:
        """The federation.

        Raises:
            OSError: the sweep's file cannot be read.
        """
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            federation: Federation = pickle.load(file)
        return federation


class FederationFile:
    """A file of federations without a name, which is gone with the process, however that ends."""

    def __init__(self, room: int = ROOM) -> None:
        self._file = TemporaryFile()  # noqa: SIM115, it stays open
        self._path = f"/proc/{os.getpid()}/fd/{self._file.fileno()}"
        self._room = room

    def write(self, data: bytes | memoryview) -> int:
        """Add some bytes.

        Raises:
            OSError: the room is used up, or the disk's.
        """
        if self._file.tell() + memoryview(data).nbytes > self._room:
            raise OSError
        return self._file.write(data)

    def add(self, federation: Federation) -> FederationCopy | None:
        """Where workers find a federation; None where it has no room."""
        offset = self._file.tell()
        try:
            pickle.dump(federation, self, protocol=5)
            self._file.flush()
        except OSError:
            self._file.seek(offset)
            return None
        return FederationCopy(self._path, offset)


@dataclass
class Federations:
    """By key the federations' hashes, how they were made and where workers read them; and why data sets are
    not to be had.
    """

    hashes: dict[FederationKey, str] = field(default_factory=dict)
    provenance: dict[FederationKey, Mapping[str, Any]] = field(default_factory=dict)
    copies: dict[FederationKey, FederationCopy | None] = field(default_factory=dict)
    missing_data: dict[str, NoDataError] = field(default_factory=dict)


def build_all(
    specs: Iterable[RunSpec], roots: tuple[Path, ...], build: Build, file: FederationFile | None = None
) -> Federations:
    """Build every distinct federation, and copy it into a file for workers, if there is one.

    Raises:
        RequestError: what was asked for makes no federation, for example more clients than nodes.
    """
    federations = Federations()
    for key in dict.fromkeys(spec.federation_key for spec in specs):
        dataset = key[0]
        if dataset in federations.missing_data:
            continue
        try:
            federation = build(*key, roots=roots)
        except NoDataError as error:
            federations.missing_data[dataset] = error
            continue
        federations.hashes[key], federations.provenance[key] = federation.hash, federation.provenance
        federations.copies[key] = None if file is None else file.add(federation)
    return federations
