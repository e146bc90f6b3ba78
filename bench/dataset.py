"""The seam for data sets: one class per data set, one file per family, under ``datasets/``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from bench.data import Data, Family
from bench.registry import Kind
from bench.sources import RawFile, Sources
from bench.spec import ClientSettings, Protocol


class Dataset(ABC):
    """A data set: what it is, where its raw files come from, and how they become arrays.

    ``protocol`` and ``client`` are the settings a run on this data set has unless a grid or the
    command line says otherwise; ``hyper`` maps methods to hyper-parameters that have another default here
    than the method's own, as the data set's study states them. ``scenarios`` lists the scenarios that make
    sense for it. ``enlarged`` names a data set like it on which speed is measured with more clients than it
    has room for. ``licence`` names the terms that its source states, or says that it states none; empty
    where nobody has looked.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    family: ClassVar[Family]
    homepage: ClassVar[str] = ""
    licence: ClassVar[str] = ""
    scenarios: ClassVar[tuple[str, ...]]
    protocol: ClassVar[Protocol]
    client: ClassVar[ClientSettings]
    hyper: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    files: ClassVar[tuple[RawFile, ...]] = ()
    embedded: ClassVar[bool] = False
    enlarged: ClassVar[str] = ""

    @classmethod
    def whereabouts(cls, sources: Sources) -> str:
        """Where its raw files are at hand, in words; ``embedded`` where it comes with the package."""
        return "embedded" if cls.embedded else sources.whereabouts(cls.files)

    @abstractmethod
    def load(self, sources: Sources) -> Data:
        """Read the raw files and prepare them as the paper does, before any partition.

        Raises:
            NoDataError: a raw file is neither in a data root nor to be downloaded.
            RequestError: a raw file's checksum is not the published one.
        """


DATASETS: Kind[Dataset] = Kind("dataset", "bench.datasets", "bench.datasets", "bench.dataset:Dataset")
