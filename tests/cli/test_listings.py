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

from bench import registry
from bench.dataset import DATASETS, Dataset
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.federation.prepared import prepare
from bench.federation.scenarios import forms, parse
from bench.grids import expand, grid_names, load_grid
from bench.grids.files import read_grid
from bench.methods.fedprox import FedProx
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


def test_clients_are_those_of_the_grids(bench: Bench) -> None:
    rows = {row["name"]: row for row in json.loads(bench("datasets --json").out)}
    assert set(rows) == set(DATASETS.all())
    assert {10, 20, 30, 50} <= set(rows["cora"]["clients"]), "of FedSheafHN's main tables"
    assert rows["cora"]["clients"] == sorted(rows["cora"]["clients"])
    assert rows["dblp4k"]["scenarios"] == ["label-dirichlet"]


def test_every_grid_has_its_study_and_title(bench: Bench) -> None:
    rows = {row["name"]: row for row in json.loads(bench("grids --json").out)}
    assert sorted(rows) == grid_names()
    assert rows["fedhgn_tables"]["study"] == "fedhgn"
    assert rows["ablation"]["title"] == load_grid("ablation").title


def test_every_method_has_a_title_its_paper_and_a_summary(bench: Bench) -> None:
    rows = {row["name"]: row for row in json.loads(bench("methods --json").out)}
    assert set(rows) == set(METHODS.all())
    assert rows["fedprox"]["reference"] == FedProx.reference
    assert rows["fedpub"]["families"] == ["graph"]
    assert all(row["title"] and row["summary"] for row in rows.values())


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


# All of one -----------------------------------------------------------------------------------------


def test_one_method_is_described_with_its_hyper_parameters(bench: Bench) -> None:
    row = json.loads(bench("methods fedprox --json").out)
    parameters = {parameter["name"]: parameter for parameter in row["hyper_parameters"]}
    assert set(parameters) == set(FedProx.Hyper.model_fields)
    assert parameters["mu"]["default"] == str(FedProx.Hyper().mu)
    assert parameters["mu"]["limits"] == "≥ 0"
    assert parameters["mu"]["meaning"]
    words = " ".join(bench("methods fedprox").out.split())
    assert "FedAvg with a proximal term in the local objective." in words
    assert "≥ 0" in words


@pytest.mark.usefixtures("plugins")
def test_a_method_of_ones_own_is_there_and_an_unknown_one_is_refused(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from bench.methods.local import Local\n\n\n"
        'class Own(Local):\n    """Nothing of its own."""\n\n    name, title = "own", "Own"\n'
    )
    monkeypatch.setenv(registry.PLUGINS, str(own))
    registry.forget()
    described = bench("methods own")
    refused = bench("methods fedprxo")
    assert "no hyper-parameters" in described.out
    assert refused.refused
    assert "did you mean 'fedprox'?" in refused.err


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
    row = json.loads(bench("grids quickstart --json").out)
    assert (row["name"], row["runs"]) == ("quickstart", len(expand(load_grid("quickstart"))))
    out = bench("grids quickstart").out
    assert read_grid("quickstart")[0] in out
    assert f"{row['runs']} runs" in out
