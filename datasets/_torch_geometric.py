"""Any data set of torch-geometric, by ``pyg:CLASS`` or ``pyg:CLASS/NAME``.

The class of ``torch_geometric.datasets`` downloads and reads it, below ``pyg/CLASS`` of a data root.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from bench.data import Graph, of_torch_geometric, say
from bench.dataset import PYG, Dataset
from bench.errors import NoDataError, RequestError, unknown
from bench.sources import Sources
from bench.spec import ClientSettings, Protocol

FOLDER = "pyg"
"""The folder of a data root under which torch-geometric keeps a data set's files."""


class TorchGeometric(Dataset):
    """A node-classification data set of torch-geometric.

    ``kind`` is its class there. If the class has several data sets, ``part`` is the name of this one.
    """

    family = "graph"
    homepage = "https://pytorch-geometric.readthedocs.io/en/latest/modules/datasets.html"
    scenarios = ("non-overlapping", "overlapping")
    protocol = Protocol()
    client = ClientSettings()

    kind: ClassVar[str]
    part: ClassVar[str]

    @classmethod
    def whereabouts(cls, sources: Sources) -> str:
        """The folder of the files, or a text if it does not exist: then torch-geometric downloads them."""
        folder = cls.folder(sources)
        return str(folder) if folder.is_dir() else "where torch-geometric has it from"

    @classmethod
    def folder(cls, sources: Sources) -> Path:
        """The folder of the class in the first data root that has it, else the folder for downloads."""
        folders = [root / FOLDER / cls.kind for root in sources.roots]
        return next((folder for folder in folders if folder.is_dir()), sources.store / FOLDER / cls.kind)

    def load(self, sources: Sources) -> Graph:
        """Load the largest component, undirected and without loops."""
        import torch_geometric.datasets  # loads torch

        kind = getattr(torch_geometric.datasets, self.kind)
        try:
            found = read(kind, self.part, self.folder(sources), sources.download)
        except (NoDataError, RequestError):
            raise
        except Exception as error:  # every class has its own errors
            text = " ".join(str(error).split()) or "it is none of its names"
            raise NoDataError(f"{self.name}: {type(error).__name__}: {text}") from None
        if len(found) != 1:
            raise RequestError(
                f"{self.name}: it has {len(found):,} graphs: expected one whose nodes are classified"
            )
        try:
            graph, done = of_torch_geometric(found[0])
        except RequestError as error:
            raise RequestError(f"{self.name}: {error}") from None
        say(self.name, done)
        return graph


def read(kind: Callable[..., Any], part: str, folder: Path, download: bool) -> Any:
    """Read a data set of a class from its folder. Without ``download`` read existing files only.

    Raises:
        RequestError: the class has several data sets and ``part`` names none, or has one and ``part`` a name.
        NoDataError: files are missing and downloads are not allowed.
    """
    parameters = inspect.signature(kind).parameters
    title = getattr(kind, "__name__", "")
    if part and "name" not in parameters:
        raise RequestError(f"torch-geometric's {title} is one data set: {PYG}{title}")
    if not part and "name" in parameters and parameters["name"].default is inspect.Parameter.empty:
        raise RequestError(f"torch-geometric's {title} has several data sets: name one as {PYG}{title}/NAME")
    if not download and _downloads(kind):
        kind = type(title, (kind,), {"download": _refuse})  # type: ignore[arg-type]
    arguments = {"root": str(folder)} if "root" in parameters else {}
    return kind(**arguments, **({"name": part} if part else {}))


def _downloads(kind: Any) -> bool:
    """Whether a class has files to download. The base classes have none."""
    own = [base for base in kind.__mro__ if base.__module__.startswith("torch_geometric.datasets")]
    return any("download" in vars(base) for base in own)


def _refuse(dataset: Any) -> None:
    raise NoDataError(f"no files of it below {dataset.root}, and downloads are switched off")


@cache
def named(name: str) -> type[Dataset]:
    """The class of the data set with this name, which begins with ``pyg:``.

    Raises:
        RequestError: torch-geometric has no such class.
    """
    kind, _, part = name.removeprefix(PYG).partition("/")
    if kind not in kinds():
        raise unknown("data set of torch-geometric", kind, kinds())
    title = f"{part or kind} (torch-geometric)"
    members = {"name": name, "title": title, "kind": kind, "part": part, "__module__": __name__}
    return type(kind, (TorchGeometric,), members)


@cache
def kinds() -> tuple[str, ...]:
    """The classes of ``torch_geometric.datasets``. The package is not imported, as that takes seconds."""
    package = find_spec("torch_geometric")
    assert package is not None
    assert package.origin is not None
    source = (Path(package.origin).parent / "datasets" / "__init__.py").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(source).body if isinstance(node, ast.ImportFrom)]
    return tuple(alias.name for node in imports for alias in node.names)
