"""``bench datasets``, ``grids`` and ``methods``: what they list, and all of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.dataset import DATASETS, Dataset
from bench.engine.methods import METHODS
from bench.grids import expand, grid_names, load_grid
from bench.grids.grid import grid_text
from bench.sources import RawFile

from .conftest import Bench

FILES = tuple(RawFile(f"set/{name}.txt", md5="0" * 32) for name in "ab")


def test_a_data_set_says_whether_it_is_at_hand(
    tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Toy(Dataset):
        name, title, family, files, scenarios = "toy", "A toy", "graph", FILES, ("parts",)

    monkeypatch.setattr(DATASETS, "all", lambda: {"toy": Toy})
    monkeypatch.setenv("BENCH_DATA", str(tmp_path))
    (tmp_path / "set").mkdir()
    for name, where in (("a", "not at hand"), ("b", "at hand")):
        (tmp_path / "set" / f"{name}.txt").write_text("a")
        assert f"A toy graph {where} " in " ".join(bench("datasets").out.split())


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
