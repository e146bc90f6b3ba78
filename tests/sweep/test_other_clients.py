"""Runs on clients that are not those of the stored runs never join them."""

import io
from pathlib import Path
from typing import Any

import pytest
from fake_execute import instant
from fake_runs import FakeFederation, any_federation, cpu, grid, plan_for
from rich.console import Console

from bench.errors import RequestError
from bench.grids import expand
from bench.store import open_store
from bench.sweep.progress import PlainLines
from bench.sweep.run import Outcome, sweep


def other_federation(*key: Any, roots: tuple[Path, ...]) -> Any:
    """What a request makes after a federation was imported, or a data set has changed."""
    return FakeFederation(hash="another")


def run(database: str, seeds: tuple[int, ...], build: Any) -> Outcome:
    planned = expand(grid(methods=("local",), seeds=seeds))
    reporter = PlainLines(Console(file=io.StringIO()))
    return sweep(plan_for(database, planned), database, (), cpu(1), reporter, instant, build)


def test_a_sweep_does_not_mix_clients(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'bench.db'}"
    assert run(database, (0,), any_federation).counts == {"done": 1}
    with pytest.raises(RequestError, match=r"seed 0 is stored, made on other clients \(p\).*now \(another\)"):
        run(database, (0, 1), other_federation)
    with open_store(database, create=False) as store:
        assert list(store.runs()["seed"]) == [0], "nothing is written"
    assert run(database, (0, 1), any_federation).counts == {"done": 2}
    assert run(database, (2,), other_federation).counts == {"done": 1}, (
        "of a plan of its own nothing is mixed"
    )
