"""The seam for data sets: one class per data set, one file per family, under ``datasets/``."""

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
    """A data set: what it is, where its raw files come from, and how they become arrays.

    ``protocol`` and ``client`` are the settings a run on this data set has unless a grid or the
    command line says otherwise; ``hyper`` maps methods to hyper-parameters that have another default here
    than the method's own, as the data set's study states them. ``scenarios`` lists the scenarios that make
    sense for it. ``licence`` names the terms that its source states, or says that it states none; empty
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

    @classmethod
    def whereabouts(cls, sources: Sources) -> str:
        """Where its raw files are at hand, in words; ``embedded`` where it comes with the package."""
        if cls.embedded:
            return "embedded"
        return "at hand" if all(map(sources.at_hand, cls.files)) else "not at hand"

    @abstractmethod
    def load(self, sources: Sources) -> Data:
        """Read the raw files and prepare them as the paper does, before any partition.

        Raises:
            NoDataError: a raw file is neither in a data root nor to be downloaded.
            RequestError: a raw file's checksum is not the published one.
        """

    @staticmethod
    def from_pyg(data: Any, name: str, title: str = "", whole: bool = False) -> type[Dataset]:
        """A data set of your own graph, a ``torch_geometric.data.Data`` with ``x``, ``y`` and ``edge_index``.

        Its largest component counts, or all of it if it is ``whole``. Edges may be directed, repeated and
        with loops, features of any number type, labels any whole numbers. Put the result into a file that
        ``BENCH_PLUGINS`` names: ``Mine = bench.Dataset.from_pyg(data, name="mine")``.

        Raises:
            RequestError: it is no graph with one kind of nodes and one label a node, or its numbers are not
                plain (``bench.data``).
        """
        graph, done = of_torch_geometric(data, whole)

        def load(self: Dataset, sources: Sources) -> Data:
            """The graph that was given."""
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
"""What names of torch-geometric's data sets begin with."""


class Datasets(Kind[Dataset]):
    """The data sets by name; those of torch-geometric have a name that begins with ``pyg:``."""

    def named(self, name: str) -> type[Dataset]:
        """The class of that name; raises ``RequestError`` with the nearest name."""
        if name.startswith(PYG):
            found: type[Dataset] = pkgutil.resolve_name("bench.datasets._torch_geometric:named")(name)
            return found
        return super().named(name)


DATASETS = Datasets("dataset", "bench.datasets", "bench.dataset:Dataset")
