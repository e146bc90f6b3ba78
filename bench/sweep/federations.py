"""Every federation of a sweep, built once before anything runs, and handed to the workers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.errors import NoDataError
from bench.spec import FederationKey, RunSpec

if TYPE_CHECKING:
    from bench.federation.types import Federation

Build = Callable[..., "Federation"]


class Shared(NamedTuple):
    """A federation's hash, how it was made, and the file where workers find it; None where there is none."""

    hash: str
    provenance: Mapping[str, Any]
    file: Path | None


Federations = dict[FederationKey, Shared]


def build_all(
    specs: Iterable[RunSpec], roots: tuple[Path, ...], build: Build, folder: Path | None = None
) -> tuple[Federations, dict[str, NoDataError]]:
    """Build every distinct federation, and write it into a folder for workers, if there is one. Returned are
    the federations, and why data sets are not to be had.

    Raises:
        RequestError: what was asked for makes no federation, for example more clients than nodes.
    """
    federations: Federations = {}
    missing_data: dict[str, NoDataError] = {}
    for key in dict.fromkeys(spec.federation_key for spec in specs):
        if key.dataset in missing_data:
            continue
        try:
            federation = build(*key, roots=roots)
        except NoDataError as error:
            missing_data[key.dataset] = error
            continue
        file = None if folder is None else folder / f"{len(federations)}.pickle"
        if file is not None:
            with suppress(OSError):  # a worker that cannot read it builds
                file.write_bytes(pickle.dumps(federation, protocol=5))
        federations[key] = Shared(federation.hash, federation.provenance, file)
    return federations, missing_data


def read(file: Path) -> Federation:
    """The federation in a file.

    Raises:
        OSError: the file is not there.
    """
    federation: Federation = pickle.loads(file.read_bytes())
    return federation
