"""``bench sweep``, and ``bench runs`` and ``bench db`` on what it stored: what they say, return and write."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.errors import RequestError
from bench.report.request import Request
from bench.runner.run import Outcome, Sweep
from bench.store.bundle import SHIPPED

from .conftest import Bench

LOCAL = "sweep -d cora -k 3 --set protocol.rounds=2 -m local --jobs 1 --devices cpu"
BOTH = f"{LOCAL} -m majority"


def test_a_dry_run_says_what_comes_with_the_suite(bench: Bench) -> None:
    command = "sweep --grid paper_tables -d cora -s non-overlapping -k 10 -m local -m fedavg --dry-run"
    plan = json.loads(bench(command, "--json").out)
    shipped: dict[str, float] = {}
    for file in SHIPPED.rglob("runs.parquet"):
        runs = pd.read_parquet(file, columns=["spec_hash", "state", "seconds_total"])
        done_runs = runs[runs["state"] == "done"]
        shipped |= dict(zip(done_runs["spec_hash"], done_runs["seconds_total"], strict=True))
    hashes = [run["spec_hash"] for run in plan["runs"]]
    assert plan["counts"] == {"missing": len(hashes)}, "a sweep looks at the own database alone"
    assert plan["shipped"] == sum(spec_hash in shipped for spec_hash in hashes) == len(hashes)
    assert plan["unknown_times"] == 0
    for run in plan["runs"]:  # of the same kind, on the machine that made what is shipped
        assert 0.2 < run["seconds"] / shipped[run["spec_hash"]] < 5
    assert f"{len(hashes)} of these come with the suite" in bench(command).out


def test_from_a_dry_run_to_a_second_call(home: Path, bench: Bench) -> None:
    planned = bench(BOTH, "--dry-run")
    assert planned.code == 0
    assert "2 runs: 2 missing" in planned.out
    assert "2 to run, time unknown" in planned.out
    assert not home.exists(), "a dry run writes nothing"

    first = bench(BOTH)
    assert first.code == 0
    assert "[2/2] majority cora non-overlapping 3 seed 0: done" in first.out
    assert "[1/2] local cora non-overlapping 3 seed 0: done" in first.out

    assert "2 done; nothing to run" in bench(BOTH).out
    assert json.loads(bench(BOTH, "--json").out) == {"counts": {"done": 2}, "ran": 0, "left": {}}
    assert "1 done; nothing to run" in bench(LOCAL).out

    plan = json.loads(bench(BOTH, "--seed 1 --dry-run --json").out)
    assert plan["counts"] == {"missing": 2}
    assert plan["unknown_times"] == 0, "like runs are stored"

    (run,) = json.loads(bench("runs list -m local --json").out)
    assert (run["dataset"], run["clients"], run["seed"], run["rounds"]) == ("cora", 3, 0, 2)
    assert 0 < run["test"] <= 100
    assert "2 runs" in bench("runs list").out

    detail = json.loads(bench(f"runs show {run['id']} --json").out)
    assert detail["command"] == (
        "bench sweep -d cora -s non-overlapping -k 3 -m local --seed 0 --set protocol.rounds=2"
    )
    assert detail["spec"]["protocol"]["rounds"] == 2
    assert detail["accuracy"]["trained test best_val"] == pytest.approx(run["test"] / 100, abs=1e-4)
    text = json.dumps(detail["environment"])
    assert str(Path.home()) not in text
    assert str(home) not in text
    assert detail["spec_hash"] in bench(f"runs show {run['id']}").out
    assert "no run 77" in bench("runs show 77").err
    assert "nothing to do" in bench("db upgrade").out


# What options arrive as, where they are acted upon ----------------------------------------------------


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> list[Sweep]:
    """The sweeps that were asked for; none is made, and a run of each is said to have failed."""
    seen: list[Sweep] = []

    def running(sweep: Sweep) -> Outcome:
        seen.append(sweep)
        return Outcome({"failed": 1}, 1, 1, {})

    monkeypatch.setattr(Sweep, "run", running)
    return seen


def test_what_is_said_of_a_sweep_reaches_it(bench: Bench, tmp_path: Path, swept: list[Sweep]) -> None:
    url = f"sqlite:///{tmp_path / 'own.db'}"
    where = f"--jobs 3 --threads 2 --devices cpu --checkpoint-minutes 2.5 --db {url} --data-root {tmp_path}"
    assert bench("sweep -d cora -m local --seed 0-4 --timeout-seconds 90", where).code == 1, "a run failed"
    (sweep,) = swept
    assert (sweep.pool.devices, sweep.pool.threads) == (("cpu",) * 3, 2)
    assert (sweep.minutes, sweep.timeout) == (2.5, 90)
    assert (sweep.database, sweep.roots[0]) == (url, tmp_path)


@pytest.mark.parametrize(
    ("words", "datasets", "clients", "seeds"),
    [
        ("--grid quickstart", ["cora"], [10], [0, 1]),
        ("--grid quickstart --seed 20-23", ["cora"], [10], [20, 21, 22, 23]),
        ("-d cora --seed 5,0-2 --seed 1-5 --seed=9", ["cora"], [10], [5, 0, 1, 2, 3, 4, 9]),
        ("-d cora,citeseer -k 5,10,5", ["cora", "citeseer"], [5, 10], [0]),
        ("-d cora -d citeseer -k 5 -k 10", ["cora", "citeseer"], [5, 10], [0]),
    ],
)
def test_several_values_are_given_one_by_one_or_with_commas_and_seeds_as_ranges(
    words: str,
    datasets: list[str],
    clients: list[int],
    seeds: list[int],
    bench: Bench,
    swept: list[Sweep],
) -> None:
    """Seeds stand in place of those of the grid, 0 and 1."""
    bench(f"sweep {words} -m local")
    specs = [step.spec for step in swept[0].plan]
    assert list(dict.fromkeys(spec.seed for spec in specs)) == seeds
    assert {(spec.dataset, spec.clients) for spec in specs} == {(d, k) for d in datasets for k in clients}
    assert len(specs) == len(datasets) * len(clients) * len(seeds)


def test_a_report_gets_what_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bench: Bench
) -> None:
    def compose(source: Any, request: Request, *_: Any, **__: Any) -> None:
        raise RequestError(repr(request))

    monkeypatch.setattr("bench.report.report.compose", compose)
    words = "--study fedhgn -d cora -d citeseer -s overlapping -k 8 -m local -m fedavg"
    wanted = Request(("fedhgn",), ("cora", "citeseer"), ("overlapping",), (8,), ("local", "fedavg"))
    assert bench("report", words, f"--out {tmp_path / 'out'} --shipped").err == f"bench: {wanted!r}\n"
