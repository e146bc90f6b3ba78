"""``bench datasets``, ``grids``, ``methods`` and ``data``: what they list, all of one, and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.dataset import DATASETS, Dataset
from bench.engine.methods import METHODS
from bench.federation.build import build
from bench.grids import expand, grid_names, load_grid
from bench.grids.grid import grid_text
from bench.sources import RawFile

from .conftest import Bench

A = RawFile("set/a.txt", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb")  # SHA-256 of "a"
B = RawFile("set/b.txt", md5="92eb5ffee6ae2fec3ad71c777531578f")  # MD5 of "b"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data set ``toy`` has the files a and b, ``core`` is embedded."""

    class Toy(Dataset):
        name, title, family, files, scenarios = "toy", "A toy", "graph", (A, B), ("parts",)

    class Core(Dataset):
        name, title, family, embedded, scenarios = "core", "Core", "images", True, ("parts",)

    monkeypatch.setattr(DATASETS, "all", lambda: {"core": Core, "toy": Toy})
    (tmp_path / "root" / "set").mkdir(parents=True)
    return tmp_path / "root"


def test_a_data_set_says_whether_it_is_at_hand(
    root: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_DATA", str(root))
    for name, where in (("a", "not at hand"), ("b", "at hand")):
        (root / "set" / f"{name}.txt").write_text("a")
        assert f"A toy graph {where} " in " ".join(bench("datasets").out.split())


def test_fetch_prints_the_paths_or_says_what_is_missing_or_wrong(root: Path, bench: Bench) -> None:
    (root / "set" / "a.txt").write_text("a")
    assert "missing set/b.txt" in bench(f"data fetch -d toy --data-root {root}").err
    (root / "set" / "b.txt").write_text("b")
    out = bench(f"data fetch --dataset toy --data-root {root}").out
    assert out.split() == [f"{root}/set/a.txt", f"{root}/set/b.txt"]
    (root / "set" / "b.txt").write_text("not b")
    wrong = bench(f"data fetch -d toy --data-root {root}")
    assert wrong.refused
    assert "expected md5 92eb5ffee6ae2fec3ad71c777531578f" in wrong.err
    assert bench("data fetch -d core").out.startswith("core: embedded")


def test_stats_are_those_that_ship_beside_published_ones(bench: Bench) -> None:
    lines = [" ".join(line.split()) for line in bench("data stats").out.splitlines()]
    assert {
        "Cora (cora)",
        "whole nodes 2,485 2,485",
        "published 10 nodes 248.5 249",
        "published-overlapping 50 heterogeneity 0.609 0.613",
        "whole edges 5,278 10,858",
        "label-dirichlet 8 border hyperedges 2,524.3 2,528",
    } <= {*lines}


def test_export_and_import(bench: Bench, tmp_path: Path, home: Path) -> None:
    path = tmp_path / "cora.npz"
    out = bench(f"data export -d cora -s non-overlapping -k 10 {path}").out
    federation = build("cora", "non-overlapping", 10, 123, (40.0, 30.0, 30.0))
    assert out.endswith(f"hash {federation.hash}\n")
    with np.load(path) as file:
        assert len(file["nodes_offsets"]) == 11
        assert len(file["nodes"]) == 2485
    out = bench(f"data import {path}").out
    assert f"hash {federation.hash}" in out
    assert str(home / "partitions" / "imported") in out


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("methods", METHODS.all()),
        ("datasets", DATASETS.all()),
        ("grids", grid_names()),
    ],
)
def test_lists_name_all_and_fit_80_columns(
    words: str, names: list[str], bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = bench(words).out.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    assert {*names} <= {word for line in lines for word in line.split()[:1]}
    assert lines[-1].startswith(f"{len(names)} ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "methods fedprox",
            ["FedAvg with a proximal term in the local objective.", "mu 0.001 ≥ 0 0.001, 0.01"],
        ),
        ("methods fedprox", ["method.NAME=VALUE", "Li et al., MLSys 2020", "data: any"]),
        ("methods local", ["no hyper-parameters"]),
        ("datasets cora", ["client.learning_rate: 0.01", "protocol.split: 40.0, 30.0, 30.0"]),
        ("datasets photo", ["where: not at hand", "files: ", "homepage: https"]),
        (
            "grids quickstart",
            [f"{len(expand(load_grid('quickstart')))} runs", " ".join(grid_text("quickstart").split())],
        ),
    ],
)
def test_one_is_described(words: str, said: list[str], bench: Bench) -> None:
    out = " ".join(bench(words).out.split())
    assert [text for text in said if text not in out] == []
