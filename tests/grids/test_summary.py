"""What a grid is said to be, against what it plans."""

from __future__ import annotations

import pytest

from bench.grids import expand, grid_names, load_grid
from bench.grids.summary import client_counts, grid_summary


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
