from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from toy_data import random_graph, random_hypergraph

from bench.data import Graph
from bench.dataset import DATASETS, Dataset
from bench.errors import RequestError
from bench.federation import graph
from bench.federation.build import build
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
    assert (federation.dataset, federation.scenario, federation.family) == (
        "cora",
        "non-overlapping",
        "graph",
    )
    assert (len(federation), federation.classes) == (10, 7)
    assert federation.provenance["partition_seed"] == 123
    assert federation.provenance["recursive"] is False
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
    use_toy(random_graph(120))
    first = build("toy", "non-overlapping", 6, 1, PAPER)
    assert len(cache_files(suite_home)) == 1
    second = build("toy", "non-overlapping", 6, 1, PAPER)
    assert len(count_draws) == 1
    assert second.hash == first.hash
    assert second.provenance == first.provenance
    for one, two in zip(first.clients, second.clients, strict=True):
        for field in ("ids", "labels", "roles", "features", "edges"):
            assert np.array_equal(getattr(one, field), getattr(two, field))
            assert getattr(one, field).dtype == getattr(two, field).dtype


def test_the_data_set_is_read_once_a_process(use_toy: Use) -> None:
    kind = use_toy(random_graph(100))
    for clients in (2, 3, 4):
        build("toy", "non-overlapping", clients, 1, PAPER)
    assert kind.loads == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "change",
    [
        {"clients": 7},
        {"partition_seed": 2},
        {"split": (20.0, 40.0, 40.0)},
        {"scenario": "overlapping", "clients": 10},
    ],
)
def test_another_request_is_another_federation(use_toy: Use, change: dict[str, object]) -> None:
    use_toy(random_graph(120))
    request = {
        "dataset": "toy",
        "scenario": "non-overlapping",
        "clients": 6,
        "partition_seed": 1,
        "split": PAPER,
    }
    assert build(**request).hash != build(**(request | change)).hash  # type: ignore[arg-type]


def test_changed_data_do_not_meet_an_old_cache(use_toy: Use, suite_home: Path) -> None:
    data = random_graph(120)
    use_toy(data)
    first = build("toy", "non-overlapping", 6, 1, PAPER)
    use_toy(replace(data, labels=(data.labels + 1) % data.classes))
    assert build("toy", "non-overlapping", 6, 1, PAPER).hash != first.hash
    assert len(cache_files(suite_home)) == 2


def overwrite(path: Path, **changes: np.ndarray) -> None:
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(path, **(arrays | changes))  # type: ignore[arg-type]


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def garble(path: Path) -> None:
    path.write_bytes(os.urandom(300))


def swap_roles(path: Path) -> None:
    with np.load(path) as file:
        overwrite(path, train_mask=file["val_mask"], val_mask=file["train_mask"])


def leave_the_range(path: Path) -> None:
    with np.load(path) as file:
        overwrite(path, nodes=file["nodes"] + 1)


def drop_items(path: Path) -> None:
    overwrite(path, nodes=np.zeros(0, np.int64))


def leave_out_the_hash(path: Path) -> None:
    with np.load(path) as file:
        np.savez(path, **{name: file[name] for name in file.files if name != "hash"})  # type: ignore[arg-type]


def write_as_before(path: Path) -> None:
    """The file that a cache held before it had the format of exported ones."""
    with np.load(path) as file:
        roles = np.select([file["train_mask"], file["val_mask"], file["test_mask"]], [0, 1, 2], 3)
        about = np.array(f'{{"hash": "{file["hash"]}", "provenance": {file["provenance"]}}}')
        np.savez(
            path, ids=file["nodes"], offsets=file["nodes_offsets"], roles=roles.astype(np.int8), about=about
        )


@pytest.mark.parametrize(
    "damage",
    [truncate, garble, swap_roles, leave_the_range, drop_items, leave_out_the_hash, write_as_before],
)
def test_a_damaged_cache_file_is_drawn_again(
    use_toy: Use, suite_home: Path, count_draws: list[int], damage: Callable[[Path], None]
) -> None:
    use_toy(random_graph(120))
    first = build("toy", "non-overlapping", 6, 1, PAPER)
    (path,) = cache_files(suite_home)
    damage(path)
    assert build("toy", "non-overlapping", 6, 1, PAPER).hash == first.hash
    assert len(count_draws) == 2
    assert build("toy", "non-overlapping", 6, 1, PAPER).hash == first.hash
    assert len(count_draws) == 2


def test_builders_at_the_same_time_draw_once(use_toy: Use, count_draws: list[int]) -> None:
    use_toy(random_graph(400))
    with ThreadPoolExecutor(4) as pool:
        hashes = list(pool.map(lambda _: build("toy", "non-overlapping", 8, 1, PAPER).hash, range(4)))
    assert len(set(hashes)) == 1
    assert len(count_draws) == 1


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
    ],
)
def test_wrong_requests_are_refused_and_leave_no_file(
    use_toy: Use,
    suite_home: Path,
    scenario: str,
    clients: int,
    split: tuple[float, float, float],
    message: str,
) -> None:
    use_toy(random_graph(40))
    with pytest.raises(RequestError, match=message) as caught:
        build("toy", scenario, clients, 1, split)
    assert "\n" not in str(caught.value)
    assert not [path for path in suite_home.rglob("*") if path.is_file()]


def test_the_client_without_a_training_node_is_named(use_toy: Use) -> None:
    data = random_graph(60)
    use_toy(data)
    with pytest.raises(RequestError) as caught:
        build("toy", "non-overlapping", 6, 1, (1.7, 30.0, 30.0))  # one training node for six clients
    parts = graph.metis_parts(data, 6, 1)
    number = int(str(caught.value).split()[1])
    assert f"client {number} of 6 (toy, non-overlapping) has {(parts == number).sum()} items" in str(
        caught.value
    )


def test_hypergraph_clients_need_ten_nodes_each(use_toy: Use) -> None:
    use_toy(random_hypergraph(nodes=50))
    with pytest.raises(RequestError, match=r"expected 5 at most.*got 6"):
        build("toy", "label-dirichlet", 6, 1, (10, 20, 40))


def test_an_unknown_data_set_gets_the_nearest_name() -> None:
    with pytest.raises(RequestError, match="did you mean 'cora'"):
        build("corra", "non-overlapping", 10, 1, PAPER)


def test_a_plug_in_with_half_the_directions_is_refused(use_toy: Use) -> None:
    data = random_graph(30)
    use_toy(Graph(data.features, data.labels, data.edges[:, data.edges[0] < data.edges[1]], data.classes))
    with pytest.raises(RequestError, match="both directions"):
        build("toy", "non-overlapping", 3, 1, PAPER)


def test_a_home_that_is_no_folder_is_refused(
    use_toy: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_toy(random_graph(30))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "file"))
    with pytest.raises(RequestError, match="set BENCH_HOME"):
        build("toy", "non-overlapping", 3, 1, PAPER)


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
