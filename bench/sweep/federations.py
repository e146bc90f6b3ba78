"""Every federation of a sweep, built once before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import NoDataError
from bench.spec import RunSpec

if TYPE_CHECKING:
    from bench.federation.types import Federation

Key = tuple[str, str, int, int, tuple[float, float, float]]
Build = Callable[..., "Federation"]


@dataclass
class Prepared:
    """Hashes of the federations and how they were made, by key, and why data sets are not to be had."""

    hashes: dict[Key, str] = field(default_factory=dict)
    provenance: dict[Key, Mapping[str, Any]] = field(default_factory=dict)
    lacking: dict[str, NoDataError] = field(default_factory=dict)


def build_all(specs: Iterable[RunSpec], roots: tuple[Path, ...], build: Build) -> Prepared:
    """Build every distinct federation, which also fills the cache that workers read.

    Raises:
        RequestError: what was asked for makes no federation, for example more clients than nodes.
    """
    prepared = Prepared()
    for key in dict.fromkeys(spec.federation_key for spec in specs):
        dataset = key[0]
        if dataset in prepared.lacking:
            continue
        try:
            federation = build(*key, roots=roots)
        except NoDataError as error:
            prepared.lacking[dataset] = error
            continue
        prepared.hashes[key], prepared.provenance[key] = federation.hash, federation.provenance
    return prepared
