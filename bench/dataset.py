"""The seam for data sets: one class per data set, one file per family, under ``datasets/``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from bench.data import Data, Family, Graph, Hypergraph, Images
from bench.errors import RequestError
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


SORTS: dict[Family, type[Data]] = {"graph": Graph, "hypergraph": Hypergraph, "images": Images}
"""What the data sets of a family are read as."""


def check(data: Data, name: str, family: Family) -> None:
    """Refuse data whose items and classes are not as ``bench.data`` promises: accuracy would be of nothing.

    Raises:
        RequestError: data of another family; features or pixels of another form; a number that is not finite;
            not one class, or one outside of the classes, for an item.
    """
    problem = _problem(data, SORTS[family])
    if problem:
        raise RequestError(f"data set {name}: expected {problem}; correct what loads it")


def _problem(data: Data, sort: type[Data]) -> str:
    """What is expected and what is there in its place; empty where the data are well."""
    if not isinstance(data, sort):
        return f"{sort.__name__}, got {type(data).__name__}"
    items = data.pixels if isinstance(data, Images) else data.features
    if isinstance(data, Images) and items.dtype != np.uint8:
        return f"pixels of 0 to 255 as uint8, got {items.dtype}"
    values = items if isinstance(items, np.ndarray) else items.data
    if not isinstance(data, Images) and not np.isfinite(values).all():
        return "finite features, got some that are not (NaN or infinite)"
    labels = data.labels
    if not len(labels) == items.shape[0] > 0:
        return f"a label for every item, got {len(labels):,} for {items.shape[0]:,}"
    if labels.min() < 0 or labels.max() >= data.classes:
        return f"labels of 0 to {data.classes - 1}, got {labels.min()} to {labels.max()}"
    return ""


DATASETS: Kind[Dataset] = Kind("dataset", "bench.datasets", "bench.datasets", "bench.dataset:Dataset")
