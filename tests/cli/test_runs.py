"""``bench runs``: what filters leave; and the commands that make stored runs and cells again."""

from __future__ import annotations

import json
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_runs import MemoryStore, done, save

from bench import paths
from bench.cli.runs import cell, chosen_runs, run_detail, run_list
from bench.engine.result import RunResult, State
from bench.resolve import command, parse_overrides, resolve
from bench.selection import RULES
from bench.store import open_store
from bench.studies.shipped import merged

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


# The commands that make them again ---------------------------------------------------------------------

NAME = "cora/non-overlapping/10/fedprox"


def database() -> MemoryStore:
    """FedProx with three seeds, two of them at another mu as well, and another method beside."""
    fake = MemoryStore()
    for seed in (0, 4, 1):
        fake.add_run(resolve("cora", "non-overlapping", 10, "fedprox", seed), [1])
    for seed in (0, 1):
        spec = resolve("cora", "non-overlapping", 10, "fedprox", seed, {"method.mu": 0.5})
        fake.add_run(spec, None, state="failed")
    fake.add_run(resolve("cora", "non-overlapping", 10, "local", 0), [1])
    return fake


def made_by(command: str) -> set[str]:
    """Spec hashes of what a ``bench sweep`` line runs."""
    words = shlex.split(command)
    assert words[:2] == ["bench", "sweep"]
    given: dict[str, list[str]] = {}
    for option, value in zip(words[2::2], words[3::2], strict=True):
        given.setdefault(option, []).append(value)
    (dataset,), (scenario,), (clients,), (method,) = (given[option] for option in ("-d", "-s", "-k", "-m"))
    settings = parse_overrides(given.get("--set", []))
    return {
        resolve(dataset, scenario, int(clients), method, int(seed), settings).hash
        for seed in given["--seed"][0].split(",")
    }


def test_the_commands_make_exactly_the_runs_of_the_cell() -> None:
    source = merged(database(), [])
    runs, parts = source.runs(), cell(source, NAME)
    wanted = set(runs.loc[runs["method"] == "fedprox", "spec_hash"])
    assert made_by(parts[0]["command"]) | made_by(parts[1]["command"]) == wanted
    assert made_by(parts[0]["command"]).isdisjoint(made_by(parts[1]["command"]))
    assert [(run["seed"], run["test"]) for run in parts[0]["runs"]] == [(0, 1.0), (1, 1.0), (4, 1.0)]
    assert [(run["seed"], run["state"], run["test"]) for run in parts[1]["runs"]] == [
        (0, "failed", None),
        (1, "failed", None),
    ]
    assert {run["spec_hash"] for part in parts for run in part["runs"]} == wanted


@pytest.mark.parametrize(
    "name", [{"method": "my_method"}, {"dataset": "friends"}, {"method": "x'; true\nreboot # 'y"}]
)
def test_a_run_whose_method_or_data_is_not_loaded_has_every_setting(name: dict[str, str]) -> None:
    spec = resolve("cora", "non-overlapping", 10, "fedprox", 3).model_copy(update=name)
    words = shlex.split(command(spec))
    assert words[2:12:2] == ["-d", "-s", "-k", "-m", "--seed"]
    assert words[3:12:2] == [spec.dataset, spec.scenario, "10", spec.method, "3"]
    assert parse_overrides(words[13::2]).keys() == spec.settings().keys()


def test_areas_under_the_roc_curve_are_no_accuracies() -> None:
    fake = MemoryStore()
    areas = {
        (stage, rule): np.array([0.25, 0.5, np.nan]) for stage in ("received", "trained") for rule in RULES
    }
    spec = resolve("cora", "non-overlapping", 3, "local", 0)
    run = fake.add_run(spec, [80, 90, 100], roc_auc=areas)  # of 100 each
    (row,) = run_list(chosen_runs(fake, {}))
    assert row["test"] == 90.0
    assert run_detail(fake, run)["accuracy"]["trained test best_val"] == 0.9


@settings(max_examples=60, deadline=None)
@given(
    method=st.sampled_from(["local", "fedavg", "fedprox", "majority"]),
    clients=st.integers(1, 99),
    seed=st.integers(0, 2**31),
    overrides=st.fixed_dictionaries(
        {},
        optional={
            "protocol.rounds": st.integers(1, 500),
            "protocol.evaluate": st.sampled_from(["round", "epoch"]),
            "protocol.split": st.sampled_from([[40.0, 30.0, 30.0], [20, 40, 40.0], [33.3, 33.3, 33.4]]),
            "client.learning_rate": st.floats(1e-6, 10),
            "client.optimizer": st.sampled_from(["adam", "sgd"]),
            "client.dropout": st.floats(0, 0.99),
        },
    ),
    mu=st.floats(0, 1),
)
def test_the_printed_command_makes_the_same_spec(
    method: str, clients: int, seed: int, overrides: dict[str, object], mu: float
) -> None:
    own = {"method.mu": mu} if method == "fedprox" else {}
    spec = resolve("cora", "overlapping", clients, method, seed, {**overrides, **own})
    assert made_by(command(spec)) == {spec.hash}
