from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from toy_data import random_graph

from bench.dataset import DATASETS, Dataset
from bench.errors import RequestError
from bench.federation import graph
from bench.federation.build import build
from bench.federation.scenario import Split
from bench.paths import data_roots
from bench.spec import FederationKey, RunSpec
from bench.store.bundle import SHIPPED

PAPER = (40.0, 30.0, 30.0)
Use = Callable[..., type[Dataset]]


def cache_files(home: Path) -> list[Path]:
    return sorted((home / "partitions").glob("*.npz"))


@pytest.fixture
def count_draws(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    draws: list[int] = []
    original = graph.metis_parts

    def counting(*args: object) -> object:
        draws.append(1)
        return original(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(graph, "metis_parts", counting)
    return draws


def test_a_run_spec_names_its_federation() -> None:
    spec = RunSpec(dataset="cora", scenario="non-overlapping", clients=10, method="local", seed=3)
    federation = build(*spec.federation_key)
    names = federation.dataset, federation.scenario, federation.family
    assert names == ("cora", "non-overlapping", "graph")
    assert (len(federation), federation.classes) == (10, 7)
    assert federation.provenance["partition_seed"] == 123
    assert federation.provenance["pymetis"]


def test_another_process_draws_the_same_clients_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from bench.federation.build import build; "
        "print(build('cora', 'overlapping', 10, 5, (40.0, 30.0, 30.0)).hash, 'torch' in sys.modules)"
    )
    environment = os.environ | {"BENCH_HOME": str(tmp_path / "other"), "PYTHONHASHSEED": "77"}
    process = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert process.stdout.split() == [build("cora", "overlapping", 10, 5, PAPER).hash, "False"]


def test_the_second_build_reads_the_cache(use_toy: Use, suite_home: Path, count_draws: list[int]) -> None:
    kind = use_toy(random_graph(120))
    first = build("toy", "non-overlapping", 6, 1, PAPER)
    assert len(cache_files(suite_home)) == 1
    second = build("toy", "non-overlapping", 6, 1, PAPER)
    assert len(count_draws) == kind.loads == 1  # type: ignore[attr-defined]
    assert second.hash == first.hash
    assert second.provenance == first.provenance
    for one, two in zip(first.clients, second.clients, strict=True):
        for field in ("ids", "labels", "roles", "features", "edges"):
            assert np.array_equal(getattr(one, field), getattr(two, field))
            assert getattr(one, field).dtype == getattr(two, field).dtype


def test_another_request_and_other_data_are_another_federation(use_toy: Use, suite_home: Path) -> None:
    data = random_graph(120)
    use_toy(data)
    requests = [
        ("non-overlapping", 6, 1, PAPER),
        ("non-overlapping", 7, 1, PAPER),
        ("non-overlapping", 6, 2, PAPER),
        ("non-overlapping", 6, 1, (20.0, 40.0, 40.0)),
        ("overlapping", 10, 1, PAPER),
    ]
    hashes = {build("toy", *request).hash for request in requests}
    use_toy(replace(data, labels=(data.labels + 1) % data.classes))
    hashes.add(build("toy", *requests[0]).hash)
    assert len(hashes) == len(cache_files(suite_home)) == 6


def rewrite(path: Path, change: Callable[[dict[str, np.ndarray]], object]) -> None:
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    change(arrays)
    np.savez(path, **arrays)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-40]),
        lambda path: path.write_bytes(os.urandom(300)),
        lambda path: rewrite(path, lambda arrays: arrays.update(val_mask=arrays["test_mask"])),
        lambda path: rewrite(path, lambda arrays: arrays.update(nodes=arrays["nodes"] + 1)),
        lambda path: rewrite(path, lambda arrays: arrays.update(nodes=np.zeros(0, np.int64))),
        lambda path: rewrite(path, lambda arrays: arrays.pop("hash")),
    ],
)
def test_a_damaged_cache_file_is_drawn_again(
    use_toy: Use, suite_home: Path, count_draws: list[int], damage: Callable[[Path], None]
) -> None:
    use_toy(random_graph(120))
    first = build("toy", "non-overlapping", 6, 1, PAPER)
    (path,) = cache_files(suite_home)
    damage(path)
    for _ in range(2):
        assert build("toy", "non-overlapping", 6, 1, PAPER).hash == first.hash
        assert len(count_draws) == 2


@pytest.mark.parametrize(
    ("scenario", "clients", "split", "message"),
    [
        ("dirichlet0.1", 5, PAPER, "is for images data, but toy is graph data"),
        ("metis", 5, PAPER, "unknown scenario 'metis'"),
        ("non-overlapping", 41, PAPER, "expected 1 to 40, since toy has 40 nodes, got 41"),
        ("non-overlapping", 0, PAPER, "expected 1 to 40"),
        ("overlapping", 7, PAPER, "multiple of 5"),
        ("non-overlapping", 4, (50.0, 30.0, 30.0), "add up to 100 at most"),
        ("non-overlapping", 8, (2.0, 30.0, 30.0), "none of them to train on; ask for fewer clients"),
        ("non-overlapping, seed 9223372036854775808", 8, PAPER, "partition seed: .*9223372036854775808"),
        ("non-overlapping, seed -1", 8, PAPER, "partition seed: .*-1"),
    ],
)
def test_wrong_requests_are_refused_and_leave_no_file(
    use_toy: Use, suite_home: Path, scenario: str, clients: int, split: Split, message: str
) -> None:
    use_toy(random_graph(40))
    name, _, seed = scenario.partition(", seed ")
    with pytest.raises(RequestError, match=message) as caught:
        build("toy", name, clients, int(seed or 1), split)
    assert "\n" not in str(caught.value)
    assert not [path for path in suite_home.rglob("*") if path.is_file()]


@cache
def shipped_federations() -> dict[str, set[tuple[FederationKey, str]]]:
    """By data set the federations of the results that ship, and their hashes."""
    federations: dict[str, set[tuple[FederationKey, str]]] = defaultdict(set)
    for table in SHIPPED.rglob("runs.parquet"):
        runs = pd.read_parquet(table, columns=["spec", "partition_hash", "state"])
        runs = runs[runs["state"] == "done"].drop_duplicates("partition_hash")
        for text, digest in zip(runs["spec"], runs["partition_hash"], strict=True):
            spec = RunSpec.model_validate_json(text)
            federations[spec.dataset].add((spec.federation_key, digest))
    return federations


@pytest.mark.slow
@pytest.mark.parametrize("dataset", sorted(DATASETS.all()))
def test_the_clients_of_results_that_ship_are_drawn_to_their_hashes(
    dataset: str, home: Path, at_hand: Callable[[str], None]
) -> None:
    """With whatever versions of NumPy, SciPy and METIS are installed: else no run could be verified."""
    expected = shipped_federations().get(dataset)
    if not expected:
        pytest.skip(f"no results on {dataset} ship")
    at_hand(dataset)
    others = [key for key, digest in sorted(expected) if build(*key, roots=data_roots()).hash != digest]
    assert not others
