"""``bench runs``: what filters leave, and which are refused."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from stored_runs import done, save

from bench import paths
from bench.engine.result import RunResult, State
from bench.resolve import resolve
from bench.store import open_store

from .conftest import Bench

RUNS: tuple[tuple[str, int, State], ...] = (
    ("local", 0, "done"),
    ("local", 1, "failed"),
    ("fedavg", 0, "no_data"),
    ("fedavg", 1, "done"),
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of four runs."""
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    with open_store(paths.default_database(), create=True) as store:
        for method, seed, state in RUNS:
            spec = resolve("cora", "non-overlapping", 3, method, seed, {"protocol.rounds": 1})
            result = done(3) if state == "done" else RunResult(state, partition_hash="p3")
            save(store, spec, result)


def test_the_list_fits_a_terminal_of_80_columns(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with open_store(paths.default_database(), create=True) as store:
        spec = resolve("cora", "non-overlapping", 3, "local", 7, {"protocol.rounds": 1})
        save(store, spec, RunResult("failed", "one word after another " * 9))
    lists = []
    for words in ("--state done", ""):
        code, out, _ = bench("runs list", words)
        assert code == 0
        lists.append(re.sub(r"\x1b\[[0-9;]*m", "", out))
    assert {"cora/non-overlapping/3/local", "cora/non-overlapping/3/fedavg"} <= set(lists[0].split())
    assert "after" in lists[1]
    assert max(len(line) for text in lists for line in text.splitlines()) <= 80


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("", [0, 1, 2, 3]),
        ("--state done", [0, 3]),
        ("--state no_data --state failed", [1, 2]),
        ("-m fedavg --seed 0-1 --state done", [3]),
        ("-d cora -s non-overlapping -k 3 --seed 1", [1, 3]),
        ("-m local --state no_data", []),
        ("-k 4", []),
        ("--set protocol.rounds=7", []),
    ],
)
def test_what_filters_leave(words: str, left: list[int], bench: Bench) -> None:
    code, out, _ = bench("runs list --json", words)
    assert code == 0
    runs = [(run["method"], run["seed"], run["state"]) for run in json.loads(out)]
    assert runs == [RUNS[place] for place in left]


def test_the_list_says_what_tells_runs_of_a_cell_apart(bench: Bench) -> None:
    with open_store(paths.default_database(), create=True) as store:
        for dropout in (0.1, 0.9):
            changes = {"protocol.rounds": 1, "client.dropout": dropout}
            save(store, resolve("cora", "non-overlapping", 3, "local", 9, changes), done(3))
    runs = json.loads(bench("runs list --json").out)
    assert [run["apart"] for run in runs] == ["", "", "", "", "client.dropout=0.1", "client.dropout=0.9"]
    (run,) = json.loads(bench("runs list --json -m local --set client.dropout=0.9").out)
    assert (run["settings"]["client.dropout"], run["seed"], run["apart"]) == (0.9, 9, "")


@pytest.mark.parametrize(
    ("words", "left"),
    [("-m local", [2, 3]), ("--state no_data", [0, 1, 3]), ("--set protocol.rounds=1 --seed 1", [0, 2])],
)
def test_delete_takes_what_the_filters_leave(words: str, left: list[int], bench: Bench) -> None:
    assert bench("runs delete", words).refused  # nobody to ask
    assert len(json.loads(bench("runs list --json").out)) == len(RUNS)
    assert bench("runs delete --yes", words).code == 0
    runs = [(run["method"], run["seed"], run["state"]) for run in json.loads(bench("runs list --json").out)]
    assert runs == [RUNS[place] for place in left]
    with open_store(paths.default_database(), create=False) as store:
        results = store.table("client_results")
        assert set(results["run_id"]) == set(store.runs(state="done")["id"])


@pytest.mark.slow
@pytest.mark.skipif(find_spec("safetensors") is None, reason="the extra 'models' is not installed")
def test_a_done_run_without_models_is_made_again_for_them(tmp_path: Path, bench: Bench) -> None:
    # The database has made-up runs on the clients of the default partition.
    command = "sweep -d cora -k 3 -m fedper --set protocol.partition_seed=5 --set protocol.rounds=2 --jobs 1"
    assert bench(command).code == 0
    swept = bench(command, "--save-models")
    assert swept.code == 0
    assert "[1/1]" in swept.out
    (folder,) = (tmp_path / "models").iterdir()
    assert len(list(folder.iterdir())) == 3 + 1
    assert "1 run: 1 done; nothing to run" in bench(command, "--save-models").out
