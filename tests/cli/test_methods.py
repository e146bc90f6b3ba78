"""``bench methods``: a line for each, and all that there is to know of one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import registry
from bench.engine.methods import METHODS
from bench.methods.fedprox import FedProx

from .conftest import Bench


def test_every_method_has_a_title_its_paper_and_a_summary(bench: Bench) -> None:
    rows = {row["name"]: row for row in json.loads(bench("methods --json").out)}
    assert set(rows) == set(METHODS.all())
    assert rows["fedprox"]["reference"] == FedProx.reference
    assert rows["fedpub"]["families"] == ["graph"]
    assert all(row["title"] and row["summary"] for row in rows.values())


def test_the_list_is_eighty_columns_wide_and_sorts_by_data(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = bench("methods").out.splitlines()
    assert max(map(len, lines)) <= 80
    names = [line.split()[:1] for line in lines]
    assert names.index(["any"]) < names.index(["fedavg"]) < names.index(["graph"]) < names.index(["fedpub"])


def test_one_method_is_described_with_its_hyper_parameters(bench: Bench) -> None:
    row = json.loads(bench("methods fedprox --json").out)
    parameters = {parameter["name"]: parameter for parameter in row["hyper_parameters"]}
    assert set(parameters) == set(FedProx.Hyper.model_fields)
    assert parameters["mu"]["default"] == str(FedProx.Hyper().mu)
    assert parameters["mu"]["limits"] == "0 or more"
    assert parameters["mu"]["meaning"]
    words = " ".join(bench("methods fedprox").out.split())
    assert "FedAvg with a proximal term in the local objective." in words
    assert "0 or more" in words


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
    monkeypatch.undo()
    registry.forget()
    assert "no hyper-parameters" in described.out
    assert refused.refused
    assert "did you mean 'fedprox'?" in refused.err
