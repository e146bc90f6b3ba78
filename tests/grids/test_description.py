"""What is said of a grid, in a line or in full, against the runs that it plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import RequestError
from bench.grids import expand, grid_names, load_grid
from bench.grids.description import GridSetting, client_counts, grid_description, grid_summary

OWN = """
title = "Two factors"
methods = ["fedavg", "fedprox"]
seeds = [3, 5]
protocol = { rounds = 7 }

[[settings]]
datasets = ["cora", "citeseer"]
scenario = "non-overlapping"
clients = [20, 10]
variants = [{}, { "client.dropout" = 0.1 }, { "client.dropout" = 0.2 }]

[[settings]]
datasets = ["cora"]
scenario = "overlapping"
clients = [30]
methods = ["fedprox"]
variants = [{ "method.mu" = 0.5 }]

[[override]]
match = { method = "fedavg", dataset = "cora" }
set = { "client.learning_rate" = 0.5 }
"""


@pytest.mark.parametrize("name", grid_names())
def test_it_counts_the_runs_that_a_sweep_plans(name: str) -> None:
    planned = expand(load_grid(name))
    summary = grid_summary(name)
    assert summary.runs == len(planned)
    assert set(summary.datasets) == {run.spec.dataset for run in planned}
    assert set(summary.clients) == {run.spec.clients for run in planned}


def test_numbers_of_clients_are_those_of_all_grids() -> None:
    counts = client_counts()
    runs = expand(load_grid("paper_tables")) + expand(load_grid("quickstart"))
    for dataset in {run.spec.dataset for run in runs}:
        assert {run.spec.clients for run in runs if run.spec.dataset == dataset} <= set(counts[dataset])
    assert all(list(numbers) == sorted(set(numbers)) for numbers in counts.values())


@pytest.mark.parametrize("name", grid_names())
def test_federations_and_methods_are_those_of_its_runs(name: str) -> None:
    description = grid_description(name)
    runs = expand(load_grid(name))
    federations = {
        (dataset, scenario, count)
        for (dataset, scenario), clients in description.federations.items()
        for count in clients
    }
    assert federations == {(run.spec.dataset, run.spec.scenario, run.spec.clients) for run in runs}
    assert set(description.methods) == {run.method for run in runs}
    assert set(description.seeds) == {run.spec.seed for run in runs}


def test_a_grid_of_ones_own_is_described_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(OWN)
    description = grid_description(str(file))
    assert description.runs == (4 * 2 * 3 + 1) * 2
    assert description.seeds == (3, 5)
    assert description.federations == {
        ("cora", "non-overlapping"): (10, 20),
        ("citeseer", "non-overlapping"): (10, 20),
        ("cora", "overlapping"): (30,),
    }
    assert set(description.settings) == {
        GridSetting("protocol.rounds", (7,), ""),
        GridSetting("client.learning_rate", (0.5,), "fedavg; cora"),
        GridSetting("client.dropout", (0.1, 0.2), ""),
        GridSetting("method.mu", (0.5,), "fedprox"),
    }


def test_a_grid_that_is_none_is_refused() -> None:
    with pytest.raises(RequestError, match="weight_decay"):
        grid_description("weigth_decay")
