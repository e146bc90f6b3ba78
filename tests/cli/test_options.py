"""What the command line's options arrive as, where they are acted upon."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.grids import Planned
from bench.report.document import Report
from bench.report.request import Request
from bench.site.folder import Contents
from bench.store import open_store
from bench.sweep import policy, run
from bench.sweep.plan import make_plan
from bench.sweep.run import Outcome

from .conftest import Bench


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> Callable[..., dict[str, Any]]:
    """What reaches ``make_plan`` and ``run_sweep`` from ``bench sweep`` with some words; nothing runs."""
    seen: dict[str, Any] = {}

    def planning(planned: Any, stored: Any, lacking: Any, rerun: Any, lacks_models: Any) -> Any:
        seen.update(planned=list(planned), rerun=rerun)
        return make_plan(seen["planned"], stored, lacking)

    def running(plan: Any, database: str, roots: Any, slots: Any, reporter: Any, **rest: Any) -> Outcome:
        seen.update(database=database, roots=roots, slots=slots, **rest)
        return Outcome({"done": 1}, 1)

    def tuned(planned: list[Planned]) -> list[Planned]:
        return [replace(planned_run, variant="tuned") for planned_run in planned]

    monkeypatch.setattr("bench.sweep.plan.make_plan", planning)
    monkeypatch.setattr("bench.sweep.run.sweep", running)
    monkeypatch.setattr("bench.tune.apply.tuned", tuned)

    def sweep(*words: str) -> dict[str, Any]:
        assert bench("sweep -d cora -m local --seed 0-4 --devices cpu", *words).code == 0
        return seen

    return sweep


def test_without_options_a_sweep_has_no_limits(swept: Callable[..., dict[str, Any]], home: Path) -> None:
    seen = swept()
    limits = seen["limits"]
    assert (seen["rerun"], seen["minutes"]) == (None, 10)
    assert (limits.failures, limits.timeout, limits.budget) == (None, None, None)
    assert [planned_run.variant for planned_run in seen["planned"]] == [""] * 5
    assert seen["slots"].threads == 1
    assert seen["home"] == home
    assert seen["database"] == f"sqlite:///{home / 'bench.db'}"
    assert seen["roots"] == (home / "data",)


@pytest.mark.parametrize("level", ["stale", "failed", "changed"])
def test_a_level_to_redo_reaches_the_plan(swept: Callable[..., dict[str, Any]], level: str) -> None:
    assert swept("--rerun", level)["rerun"] == level


@pytest.mark.parametrize(
    ("words", "limit", "value"),
    [
        (("--timeout-seconds", "90"), "timeout", 90),
        (("--budget-hours", "0.5"), "budget", 1800),
        (("--max-failures", "7"), "failures", 7),
    ],
)
def test_limits_reach_the_sweep(
    swept: Callable[..., dict[str, Any]], words: tuple[str, ...], limit: str, value: float
) -> None:
    assert getattr(swept(*words)["limits"], limit) == value


def test_where_and_how_runs_are_made_reaches_the_sweep(
    swept: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path / 'own.db'}"
    words = ("--jobs", "3", "--threads", "2", "--checkpoint-minutes", "2.5", "--db", database)
    seen = swept(*words, "--data-root", str(tmp_path))
    assert (seen["slots"].devices, seen["slots"].threads) == (("cpu",) * 3, 2)
    assert (seen["minutes"], seen["database"], seen["roots"][0]) == (2.5, database, tmp_path)


def test_an_engine_gets_what_is_said_of_it(
    swept: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, local = [], run.opened_backend

    def opened_backend(request: Any, runs: int, home: Path) -> Any:
        asked.append((request.backend, request.address, request.devices, tuple(request.slurm), runs))
        return local(replace(request, backend="local", address=None, slurm=()), runs, home)

    monkeypatch.setattr(run, "opened_backend", opened_backend)
    for package in policy.PACKAGES.values():  # as if the extras were installed
        (tmp_path / f"{package}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    swept("--backend", "ray", "--address", "lab:6379")
    swept("--backend", "slurm", "--slurm", "partition=gpu", "--slurm", "mem_gb=8")
    assert asked == [
        ("ray", "lab:6379", "cpu", (), 5),
        ("slurm", None, "cpu", ("partition=gpu", "mem_gb=8"), 5),
    ]


def test_tuned_configurations_are_what_is_planned(swept: Callable[..., dict[str, Any]]) -> None:
    assert [planned_run.variant for planned_run in swept("--use-tuned")["planned"]] == ["tuned"] * 5


def test_a_report_gets_what_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bench: Bench
) -> None:
    asked: list[Any] = []

    def compose(source: Any, request: Request, studies: Any, **_: Any) -> Report:
        asked.append(request)
        return Report(())

    def write(report: Report, out: Path, *further: Any) -> Contents:
        asked.append(out)
        return Contents("", [])

    monkeypatch.setattr("bench.report.report.compose", compose)
    monkeypatch.setattr("bench.site.documents.write", write)
    words = "--study fedhgn -d cora -d citeseer -s overlapping -k 8 -m local -m fedavg --grid robust"
    url = f"sqlite:///{tmp_path / 'own.db'}"
    with open_store(url, create=True):
        pass
    assert bench("report", words, f"--out {tmp_path / 'out'} --db {url} --own").code == 0
    wanted = Request(
        ("fedhgn",), ("cora", "citeseer"), ("overlapping",), (8,), ("local", "fedavg"), grid="robust"
    )
    assert asked == [wanted, tmp_path / "out"]


def seeds(bench: Bench, *words: str) -> list[int]:
    """Those that a sweep of the quickstart's grid (seeds 0 and 1) would run."""
    ended = bench("sweep --grid quickstart -m local --dry-run --json", *words)
    return [run["seed"] for run in json.loads(ended.out)["runs"]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], [0, 1]),
        (["--seed", "1"], [1]),
        (["--seed", "20-23"], [20, 21, 22, 23]),
        (["--seed", "5", "--seed", "3-5", "--seed=0"], [5, 3, 4, 0]),
        (["--seed", "7-7"], [7]),
        (["--seed", "5,0-2", "--seed", "1,9"], [5, 0, 1, 2, 9]),
    ],
)
def test_seeds_are_numbers_and_ranges(words: list[str], expected: list[int], bench: Bench) -> None:
    assert seeds(bench, *words) == expected


@pytest.mark.parametrize(
    "word", ["-1", "x", "3-1", "1-", "-", "1-2-3", "1.5", "0-99999", "\N{ARABIC-INDIC DIGIT ONE}"]
)
def test_what_is_no_seed_is_refused(word: str, bench: Bench) -> None:
    ended = bench("sweep --grid quickstart", f"--seed={word}")
    assert ended.refused
    assert "--seed" in ended.err
    assert word in ended.err


def test_names_and_numbers_of_clients_are_given_one_by_one_or_with_commas(bench: Bench) -> None:
    listed = bench("sweep -d cora,citeseer -m local,fedavg -k 5,10,5 -s overlapping --dry-run --json")
    one_by_one = bench(
        "sweep -d cora -d citeseer -m local -m fedavg -k 5 -k 10 -s overlapping --dry-run --json"
    )
    runs = json.loads(listed.out)["runs"]
    assert runs == json.loads(one_by_one.out)["runs"]
    assert len({(run["dataset"], run["clients"], run["method"]) for run in runs}) == 8


@pytest.mark.parametrize(
    ("words", "option"),
    [("-k 10,x", "'x'"), ("-k 10,", "''"), ("-k 1.5", "-k"), ("--seed 1,", "--seed"), ("-d cora,", "''")],
)
def test_a_list_with_a_word_that_cannot_be_is_refused(words: str, option: str, bench: Bench) -> None:
    ended = bench(f"sweep --grid quickstart --dry-run {words}")
    assert ended.refused
    assert option in ended.err


@pytest.mark.parametrize("url", ["", "sqlite:////tmp/\udcff.db"])
def test_a_database_of_no_name_is_not_the_default_one(url: str, home: Path, bench: Bench) -> None:
    open_store(f"sqlite:///{home / 'bench.db'}", create=True).close()
    assert bench("runs", "list").code == 0
    ended = bench("runs", "list", f"--db={url}")
    assert ended.refused
    assert "--db" in ended.err


COMMANDS = (
    "datasets",
    "data fetch -d pubmed",
    "data verify",
    "data stats -d cora",
    "data export {out} -d cora -s non-overlapping -k 3",
    "data import {root}",
    "sweep -d cora -m local --dry-run",
    "tune -d cora -m fedavg --dry-run",
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("there", [False, True], ids=["absent", "file"])
def test_a_data_root_that_is_no_folder_is_refused(
    command: str, there: bool, tmp_path: Path, bench: Bench
) -> None:
    root = tmp_path / "root"
    if there:
        root.write_text("")
    ended = bench(command.format(out=tmp_path / "out.npz", root=root), f"--data-root {root}")
    assert ended.refused
    assert ended.err.startswith("bench: --data-root ")
    assert str(root) in ended.err
    assert list(tmp_path.iterdir()) == [root][:there]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "sweep -d cora -m local --dry-run --data-root /nowhere",
            "--data-root expects a folder, got /nowhere",
        ),
        ("sweep -d cora -m local --db sqlite:////nowhere/a/own.db", "there is no folder /nowhere/a, make it"),
        (
            "tune -d cora -m local --dry-run --db sqlite:////nowhere/own.db",
            "there is no folder /nowhere, make",
        ),
        ("report --print nosuch", "unknown table 'nosuch'"),
        ("report --print fedsheafhn_tabel1", "did you mean 'fedsheafhn_table1'"),
    ],
)
def test_an_option_that_cannot_be_what_it_says_is_refused_at_once(
    words: str, message: str, bench: Bench, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: Any, **__: Any) -> None:
        raise AssertionError("results were read")

    monkeypatch.setattr("bench.studies.shipped.opened_results", read)
    ended = bench(words)
    assert ended.refused
    assert message in ended.err
    assert not home.exists()


def test_a_database_in_the_suites_own_folder_needs_none(bench: Bench, home: Path) -> None:
    ended = bench(f"sweep -d cora -m local --dry-run --devices cpu --db sqlite:///{home}/own.db")
    assert (ended.code, home.exists()) == (0, False)
