"""``bench datasets``, ``scenarios``, ``grids`` and ``methods``: what they list, and all of one."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_data import random_hypergraph, random_images

from bench.dataset import DATASETS, Dataset
from bench.errors import RequestError
from bench.federation.prepared import prepare
from bench.federation.scenarios import forms, parse
from bench.grids import expand, grid_names, load_grid
from bench.grids.files import read_grid
from bench.methods.fedprox import FedProx
from bench.sources import RawFile

from .conftest import Bench

FILES = tuple(RawFile(f"set/{name}.txt", md5="0" * 32) for name in "ab")


def test_a_data_set_says_where_it_lies(tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    class Toy(Dataset):
        name, title, family, files, scenarios = "toy", "A toy", "graph", FILES, ("parts",)

    monkeypatch.setattr(DATASETS, "all", lambda: {"toy": Toy})
    (tmp_path / "set").mkdir()
    for name, where in (("", "not at hand"), ("a", f"1 of 2 files in {tmp_path}"), ("b", f"in {tmp_path}")):
        (tmp_path / "set" / f"{name}.txt").write_text("a")
        (row,) = json.loads(bench(f"datasets --json --data-root {tmp_path}").out)
        assert row["where"] == where


def test_clients_are_those_of_the_grids(bench: Bench) -> None:
    rows = {row["name"]: row for row in json.loads(bench("datasets --json").out)}
    assert {10, 20, 30, 50} <= set(rows["cora"]["clients"]), "of FedSheafHN's main tables"
    assert rows["cora"]["clients"] == sorted(rows["cora"]["clients"])
    assert rows["dblp4k"]["scenarios"] == ["label-dirichlet"]


@pytest.mark.parametrize(
    "words", ["methods", "datasets", "scenarios", "grids", "methods fedpub", "datasets cora"]
)
def test_what_is_printed_fits_80_columns(words: str, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = bench(words).out.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    if words == "methods":
        names = [line.split()[:1] for line in lines]
        assert names.index(["any"]) < names.index(["fedavg"]) < names.index(["graph"])


SPLITS = ((40.0, 30.0, 30.0), (20.0, 40.0, 40.0))
NUMBERS = (*range(1, 21), 30, 50)
FIVES, EVENS = (5, 10, 15, 20, 30, 50), (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 30, 50)


def test_scenarios_take_the_numbers_of_clients_that_they_say(bench: Bench) -> None:
    """Drawn from data of the right family: the numbers up to 20, 30 and 50 that each takes by some split."""
    rows = json.loads(bench("scenarios --json").out)
    assert {row["name"] for row in rows} == set(forms())
    images = random_images(items=4000)
    samples: dict[str, list[Any]] = {
        "graph": [prepare("cora").data],
        "hypergraph": [random_hypergraph()],
        "images": [replace(images, labels=np.arange(4000) % count, classes=count) for count in (100, 10)],
    }
    texts = {
        (FIVES, FIVES): "multiples of 5",
        (FIVES, EVENS): "multiples of 5; of 10 classes, of 2",
        (FIVES,): "multiples of 5",
        ((5, 10, 20),): "5, 10, 20",
        ((10, 30, 50),): "10, 30, 50",
    }
    for row in rows:
        numbers = []
        for data in samples[row["families"][0]]:
            taken = []
            for clients, split in product(NUMBERS, SPLITS):
                with suppress(RequestError):
                    parse(row["name"]).draw(data, clients, 0, split)
                    taken.append(clients)
            numbers.append(tuple(dict.fromkeys(taken)))
        assert row["clients"] == texts.get(tuple(numbers), "any"), row["name"]
        assert row["clients"] != "any" or all({1, 2, 3, 7, 10} <= set(taken) for taken in numbers)


def test_one_method_is_described_with_its_hyper_parameters(bench: Bench) -> None:
    row = json.loads(bench("methods fedprox --json").out)
    parameters = {parameter["name"]: parameter for parameter in row["hyper_parameters"]}
    assert set(parameters) == set(FedProx.Hyper.model_fields)
    assert parameters["mu"]["default"] == str(FedProx.Hyper().mu)
    assert parameters["mu"]["limits"] == "≥ 0"
    assert parameters["mu"]["meaning"]
    assert "no hyper-parameters" in bench("methods local").out
    assert "did you mean 'fedprox'?" in bench("methods fedprxo").err
    words = " ".join(bench("methods fedprox").out.split())
    assert "FedAvg with a proximal term in the local objective." in words
    assert "≥ 0" in words


def test_a_data_set_has_its_sizes_settings_and_grids(bench: Bench) -> None:
    row = json.loads(bench("datasets cora --json").out)
    # The largest component of Cora, whose edges FED-PUB's tables count in both directions: 10,138.
    assert row["sizes"] == {"nodes": 2485, "edges": 5069, "features": 1433, "classes": 7}
    assert row["settings"]["protocol.split"] == [40.0, 30.0, 30.0]
    assert {"paper_tables", "quickstart"} <= set(row["grids"])
    words = " ".join(bench("datasets cora").out.split())
    assert "nodes 2,485" in words
    assert "client.learning_rate 0.01" in words


def test_of_a_data_set_that_is_not_at_hand_the_sizes_are_left_out(bench: Bench) -> None:
    row = json.loads(bench("datasets photo --json").out)
    assert (row["where"], row["sizes"]) == ("not at hand", {})
    assert row["files"]
    assert row["homepage"]


def test_a_grid_is_its_file_and_counts_its_runs(bench: Bench) -> None:
    rows = {row["name"]: row for row in json.loads(bench("grids --json").out)}
    assert sorted(rows) == grid_names()
    assert rows["fedhgn_tables"]["study"] == "fedhgn"
    row = json.loads(bench("grids quickstart --json").out)
    assert (row["name"], row["runs"]) == ("quickstart", len(expand(load_grid("quickstart"))))
    out = bench("grids quickstart").out
    assert read_grid("quickstart")[0] in out
    assert f"{row['runs']} runs" in out
