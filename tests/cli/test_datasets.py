"""``bench datasets``: what there is, where it lies, and how many clients the grids have of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.dataset import DATASETS, Dataset
from bench.sources import RawFile

from .conftest import Bench

FILES = tuple(RawFile(f"set/{name}.txt", md5="0" * 32) for name in "ab")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data set ``toy`` has the files a and b, ``core`` is embedded."""

    class Toy(Dataset):
        name, title, family, files, scenarios = "toy", "A toy", "graph", FILES, ("parts",)

    class Core(Dataset):
        name, title, family, embedded, scenarios = "core", "Core", "images", True, ("parts",)

    monkeypatch.setattr(DATASETS, "all", lambda: {"core": Core, "toy": Toy})
    (tmp_path / "root" / "set").mkdir(parents=True)
    return tmp_path / "root"


def test_it_says_where_each_lies(root: Path, bench: Bench) -> None:
    def where() -> dict[str, str]:
        rows = json.loads(bench(f"datasets --json --data-root {root}").out)
        return {row["name"]: row["where"] for row in rows}

    assert where() == {"core": "embedded", "toy": "not at hand"}
    (root / "set" / "a.txt").write_text("a")
    assert where()["toy"] == f"1 of 2 files in {root}"
    (root / "set" / "b.txt").write_text("b")
    assert where()["toy"] == f"in {root}"


def test_it_prints_a_line_for_each_below_its_family(root: Path, bench: Bench) -> None:
    lines = [line.split() for line in bench("datasets").out.splitlines()]
    graphs, images = lines.index(["graph"]), lines.index(["images"])
    assert lines[graphs + 1] == ["toy", "A", "toy", "not", "at", "hand"]
    assert lines[images + 1] == ["core", "Core", "embedded"]


def test_clients_are_those_of_the_grids(bench: Bench) -> None:
    rows = {row["name"]: row for row in json.loads(bench("datasets --json").out)}
    assert set(rows) == set(DATASETS.all())
    assert {10, 20, 30, 50} <= set(rows["cora"]["clients"]), "of FedSheafHN's main tables"
    assert rows["cora"]["clients"] == sorted(rows["cora"]["clients"])
    assert rows["dblp4k"]["scenarios"] == ["label-dirichlet"]
