"""Reads a data set once per process, with its checksums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bench import paths
from bench.data import Data, Images, made_right, say
from bench.dataset import DATASETS, Dataset
from bench.errors import RequestError
from bench.federation.identity import data_checksum, features_checksum
from bench.sources import Sources


@dataclass(frozen=True, eq=False)
class Prepared:
    """A prepared data set. ``features`` is the SHA-256 of its features, ``checksum`` that of all data."""

    dataset: type[Dataset]
    data: Data
    features: str
    checksum: str

    @property
    def items(self) -> int:
        """Number of nodes or images."""
        return len(self.data.labels)


@lru_cache(maxsize=4)
def _prepare(dataset: type[Dataset], roots: tuple[Path, ...], download: bool) -> Prepared:
    data = dataset().load(Sources(roots, download=download))
    if not dataset.__module__.startswith("bench."):
        try:
            data, done = made_right(data, dataset.family)
        except RequestError as error:
            raise RequestError(f"data set {dataset.name}: {error}") from None
        say(dataset.name, done)
    features = features_checksum(data.pixels if isinstance(data, Images) else data.features)
    return Prepared(dataset, data, features, data_checksum(data, features))


def prepare(dataset: str, roots: tuple[Path, ...] | None = None, download: bool = True) -> Prepared:
    """The data set of that name, from ``roots`` (default: ``bench.paths.data_roots``).

    Raises:
        RequestError: there is no such data set, its files cannot be found, their checksum is wrong, or
            the data are not as ``bench.data`` promises.
    """
    return _prepare(DATASETS.named(dataset), paths.data_roots() if roots is None else roots, download)
