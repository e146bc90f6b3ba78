"""Data sets of raw files: those at hand, and files that a test writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.data import Data, Graph, Hypergraph
from bench.dataset import DATASETS, Dataset
from bench.sources import Sources


def sources_of(name: str, root: Path) -> Sources:
    sources = Sources((root,), download=False)
    if not all(sources.at_hand(file) for file in DATASETS.named(name).files):
        pytest.skip(f"the data root has no raw files of {name}")
    return sources


def root_of(name: str, request: pytest.FixtureRequest) -> Path:
    """The folder of raw files, unless the data set comes with the package."""
    root: Path = Path() if DATASETS.named(name).embedded else request.getfixturevalue("data_root")
    return root


def load(name: str, root: Path) -> Data:
    return DATASETS.named(name)().load(sources_of(name, root))


def load_whole(name: str, root: Path) -> Graph | Hypergraph:
    data = load(name, root)
    assert isinstance(data, Graph | Hypergraph)
    return data


def sets_of(data: Graph | Hypergraph) -> list[tuple[int, ...]]:
    assert data.hyperedges is not None
    return [tuple(data.hyperedges[index].tolist()) for index in range(len(data.hyperedges))]


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")


def variant(kind: type[Dataset], **attributes: Any) -> type[Dataset]:
    """The data set but for some attributes, such as its files' sums."""
    return type(kind.__name__, (kind,), attributes)
