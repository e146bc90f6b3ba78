"""What the command line's options arrive as, where they are acted upon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.errors import RequestError
from bench.report.request import Request
from bench.runner.run import Outcome, Sweep

from .conftest import Bench


def test_what_is_said_of_a_sweep_reaches_it(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Sweep] = []

    def running(sweep: Sweep) -> Outcome:
        seen.append(sweep)
        return Outcome({"done": 1}, 1, 0, {})

    monkeypatch.setattr(Sweep, "run", running)
    url = f"sqlite:///{tmp_path / 'own.db'}"
    where = f"--jobs 3 --threads 2 --devices cpu --checkpoint-minutes 2.5 --db {url} --data-root {tmp_path}"
    assert bench("sweep -d cora -m local --seed 0-4 --timeout-seconds 90", where).code == 0
    (sweep,) = seen
    assert (sweep.pool.devices, sweep.pool.threads) == (("cpu",) * 3, 2)
    assert (sweep.minutes, sweep.timeout) == (2.5, 90)
    assert (sweep.database, sweep.roots[0]) == (url, tmp_path)


def test_a_report_gets_what_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bench: Bench
) -> None:
    def compose(source: Any, request: Request, *_: Any, **__: Any) -> None:
        raise RequestError(repr(request))

    monkeypatch.setattr("bench.report.report.compose", compose)
    words = "--study fedhgn -d cora -d citeseer -s overlapping -k 8 -m local -m fedavg"
    wanted = Request(("fedhgn",), ("cora", "citeseer"), ("overlapping",), (8,), ("local", "fedavg"))
    assert bench("report", words, f"--out {tmp_path / 'out'} --shipped").err == f"bench: {wanted!r}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", [0, 1]),
        ("--seed 20-23", [20, 21, 22, 23]),
        ("--seed 5,0-2 --seed 1-5 --seed=9", [5, 0, 1, 2, 3, 4, 9]),
    ],
)
def test_seeds_are_numbers_and_ranges(words: str, expected: list[int], bench: Bench) -> None:
    """In place of those of the grid, 0 and 1."""
    ended = bench("sweep --grid quickstart -m local --dry-run --json", words)
    assert [run["seed"] for run in json.loads(ended.out)["runs"]] == expected


def test_names_and_numbers_of_clients_are_given_one_by_one_or_with_commas(bench: Bench) -> None:
    listed = bench("sweep -d cora,citeseer -m local,fedavg -k 5,10,5 -s overlapping --dry-run --json")
    one_by_one = bench(
        "sweep -d cora -d citeseer -m local -m fedavg -k 5 -k 10 -s overlapping --dry-run --json"
    )
    runs = json.loads(listed.out)["runs"]
    assert runs == json.loads(one_by_one.out)["runs"]
    assert len({(run["dataset"], run["clients"], run["method"]) for run in runs}) == 8
