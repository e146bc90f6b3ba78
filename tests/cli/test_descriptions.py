"""``bench methods NAME``, ``bench datasets NAME`` and ``bench grids NAME``: all of one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import registry
from bench.grids import expand, load_grid
from bench.grids.files import read_grid
from bench.methods.fedprox import FedProx

from .conftest import Bench


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
    assert "2,485 nodes" in words
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


@pytest.mark.parametrize("words", ["methods fedpub", "datasets cora"])
def test_a_description_fits_80_columns(words: str, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, bench(words).out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "meant"), [("datasets croa", "cora"), ("grids weigth_decay", "weight_decay")]
)
def test_a_name_that_is_none_is_refused_with_the_nearest(words: str, meant: str, bench: Bench) -> None:
    ended = bench(words)
    assert ended.refused
    assert f"did you mean '{meant}'?" in ended.err
