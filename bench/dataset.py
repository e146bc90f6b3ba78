"""The base class of data sets. Each data set is a class, each family a file under ``datasets/``."""

from __future__ import annotations

import pkgutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from bench.data import Data, Family, of_torch_geometric, say
from bench.registry import Kind
from bench.sources import RawFile, Sources
from bench.spec import ClientSettings, Protocol


class Dataset(ABC):
    """A data set: its description, the source of its raw files, and the code that reads them into arrays.

    ``protocol`` and ``client`` are the default settings of a run on this data set; a grid or the command
    line can replace them. ``hyper`` maps a method to default hyper-parameters on this data set, which
    replace the method's own defaults; their source is the data set's study. ``scenarios`` lists the
    scenarios that make sense for the data set. ``licence`` names the terms that the source states, or says
    that it states none; empty if nobody has looked.
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

    @classmethod
    def whereabouts(cls, sources: Sources) -> str:
        """Say in words where the raw files are found; ``embedded`` if they come with the package."""
        if cls.embedded:
            return "embedded"
        return "at hand" if all(map(sources.at_hand, cls.files)) else "not at hand"

    @abstractmethod
    def load(self, sources: Sources) -> Data:
        """Read the raw files and prepare them as the paper does, before any partition.

        Raises:
            NoDataError: a raw file is in no data root and cannot be downloaded.
            RequestError: a raw file's checksum is not the published one.
        """

    @staticmethod
    def from_pyg(data: Any, name: str, title: str = "", whole: bool = False) -> type[Dataset]:
        """Make a data set of a ``torch_geometric.data.Data`` with ``x``, ``y`` and ``edge_index``.

        Only the largest component is used, or the ``whole`` graph. Edges may be directed, repeated and with
        loops. Features may have any number type, labels may be any whole numbers. Put the result into a file
        that ``BENCH_PLUGINS`` names: ``Mine = bench.Dataset.from_pyg(data, name="mine")``.

        Raises:
            RequestError: nodes are of several kinds or have several labels, or the meaning of the numbers
                is not clear (``bench.data``).
        """
        graph, done = of_torch_geometric(data, whole)

        def load(self: Dataset, sources: Sources) -> Data:
            """Return the given graph."""
            say(name, done)
            return graph

        members = {
            "name": name,
            "title": title or name,
            "family": "graph",
            "scenarios": ("non-overlapping", "overlapping"),
            "protocol": Protocol(),
            "client": ClientSettings(),
            "embedded": True,
            "load": load,
            "__module__": sys._getframe(1).f_globals["__name__"],
        }
        return type(name, (Dataset,), members)


PYG = "pyg:"
"""Prefix of the names of torch-geometric's data sets."""


class Datasets(Kind[Dataset]):
    """The data sets by name; names of torch-geometric's data sets begin with ``pyg:``."""

    def named(self, name: str) -> type[Dataset]:
        """The class of this name. If there is none, raise ``RequestError`` with the most similar name."""
        if name.startswith(PYG):
            found: type[Dataset] = pkgutil.resolve_name("bench.datasets._torch_geometric:named")(name)
            return found
        return super().named(name)


DATASETS = Datasets("dataset", "bench.datasets", "bench.dataset:Dataset")
