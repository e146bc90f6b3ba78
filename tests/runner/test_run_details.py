"""Stored runs and cells, and the commands that make them again, as people and programs see them."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_runs import MemoryStore

from bench.cli.runs import cell, chosen_runs, run_detail, run_list
from bench.resolve import command, parse_overrides, resolve
from bench.selection import RULES
from bench.studies.shipped import merged

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
