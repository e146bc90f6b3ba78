"""Bundles: what the database says comes back, always in the same bytes."""

import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from stored_runs import bundle_of, database, done, opened, result_of, spec_of

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.spec import RunSpec
from bench.store import open_store
from bench.store.bundle import SHIPPED, Bundle, write_bundle
from bench.store.bundle_check import SCHEMAS
from bench.store.bundle_import import import_bundle
from bench.store.tables import Tables

FILES = {"bundle.json", *(f"{name}.parquet" for name in SCHEMAS)}


def varied_runs() -> list[tuple[RunSpec, RunResult]]:
    """Finished runs, one of which has large numbers and a client without items, and one of every ending."""
    large = result_of(
        [[0, 70_000, 5], [0, 3, 6]],
        received=[[0, 1, 2], [0, 2, 1]],
        samples=[0, 70_000, 9],
        loss=np.array([8.0, 1 / 3], np.float32),
        artefacts={"weights": np.linspace(-1e6, 1e6, 9).reshape(3, 3), "large": np.zeros(1100)},
        seconds={"total": 1e6 / 3, "server": 0.1 + 0.2},
        peak_memory=2**40,
        bytes_up=2**50,
        partition_hash="p3",
    )
    endings = [
        RunResult(state, "why, <b>not</b> ü", "/home/me", partition_hash=partition)
        for state in ("oom", "diverged", "not_applicable", "failed", "no_data")
        for partition in ("", "p2")
    ]
    areas = {("trained", "last"): np.array([0.1 + 0.2])}  # 0.30000000000000004, which no count gives
    runs = [(spec_of(1), done(1, roc_auc=areas)), (spec_of(2), done()), (spec_of(3), large)]
    return [*runs, *((spec_of(seed=1 + number), result) for number, result in enumerate(endings))]


def content(tables: Tables, hashes: list[str]) -> dict[str, pd.DataFrame]:
    """What is said of these runs but for ids, tracebacks and what a bundle leaves out, by table."""
    runs = tables.runs(spec_hash=hashes)
    names = dict(zip(runs["id"], runs["spec_hash"], strict=True))
    environments = tables.table("environments").set_index("id")["description"]
    described = runs.assign(environment=runs["environment_id"].map(environments))
    of_an_import = [name for name in runs if name.startswith("bundle")]
    found = {"runs": described.drop(columns=["id", "environment_id", "traceback", *of_an_import])}
    for name in ("client_results", "curves", "confusions", "artefacts"):
        rows = tables.table(name, run_id=list(names))
        if name == "curves":
            rows = rows[rows["split"] == "test"]
        found[name] = rows.assign(spec_hash=rows.pop("run_id").map(names))
    partitions = tables.table("partitions")
    found["partitions"] = partitions[partitions["hash"].isin(runs["partition_hash"])]
    keys = {"runs": "spec_hash", "partitions": "hash"}
    for name, rows in found.items():
        order = [c for c in ("spec_hash", "client", "name", "stage", "split", "rule", "metric") if c in rows]
        found[name] = rows.sort_values(keys.get(name, order), ignore_index=True)
        found[name] = found[name][sorted(rows.columns)]
    return found


def test_a_bundle_answers_as_the_database(tmp_path: Path) -> None:
    """And is the same bytes in whatever order its runs came."""
    runs = varied_runs()
    kept = sorted(spec.hash for spec, result in runs if result.state not in ("failed", "no_data"))
    with opened(tmp_path / "a.db", runs) as store:
        write_bundle(store, store.runs(), tmp_path / "out")
        wanted = content(store, kept)
    bundle = Bundle(tmp_path / "out")
    assert list(bundle.runs()["spec_hash"]) == kept
    assert list(bundle.runs()["id"]) == list(range(1, len(kept) + 1))
    for source in (bundle, Bundle(tmp_path / "out", trusted=True)):
        found = content(source, kept)
        for name, rows in wanted.items():
            pd.testing.assert_frame_equal(found[name], rows, check_exact=True)
    bundle_of(tmp_path / "again", runs[::-1])
    assert {path.name for path in (tmp_path / "again").iterdir()} == FILES
    for name in FILES:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_a_database_and_a_bundle_are_filtered_alike(tmp_path: Path) -> None:
    runs = [(spec_of(seed=seed, method=method), done()) for seed in (0, 1) for method in ("local", "fedavg")]
    with opened(tmp_path / "a.db", runs) as store:
        write_bundle(store, store.runs(), tmp_path / "out")
        for source in (store, Bundle(tmp_path / "out")):
            seeds = source.runs()["seed"]
            assert set(source.runs(method=["fedavg"], seed=seeds[seeds == 1].iloc[0])["method"]) == {"fedavg"}
            assert sorted(source.runs(method="fedavg")["seed"]) == [0, 1]
            assert source.runs(method=["none"]).empty
            ids = source.runs()["id"]
            results = source.client_results(ids[:2], stage="trained", split="val", rule="last")
            assert len(results) == 2 * 2  # runs, clients
            assert set(results["run_id"]) == set(ids[:2])
            assert source.client_results([]).empty
            with pytest.raises(RequestError, match="did you mean 'method'"):
                source.runs(metod="local")


@pytest.mark.parametrize("name", ["fedaghn/cifar100-sample", "fedpub/photo"])
def test_what_ships_is_imported_and_exported_in_the_same_bytes(name: str, tmp_path: Path) -> None:
    shipped_bundle = Bundle(SHIPPED / name)
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    import_bundle(url, shipped_bundle)
    with open_store(url, create=False) as store:
        write_bundle(store, store.runs(), tmp_path / "again")
    for path in (SHIPPED / name).iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_bundles_that_ship_keep_every_rule() -> None:
    folders = [path.parent for path in SHIPPED.glob("*/*/bundle.json")]
    assert len(folders) > 15
    for folder in folders:
        Bundle(folder)


# Writing ------------------------------------------------------------------------------------------


def test_only_a_bundle_is_replaced(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db", [(spec_of(), done()), (spec_of(seed=1), done())]) as store:
        runs = store.runs()
        empty = tmp_path / "empty"
        empty.mkdir()
        assert write_bundle(store, runs, empty) == 2
        assert write_bundle(store, runs[runs["seed"] == 1], empty) == 1
        assert list(Bundle(empty).runs()["seed"]) == [1]
        (empty / "notes.txt").write_text("mine")
        with pytest.raises(RequestError, match=r"notes\.txt"):
            write_bundle(store, runs, empty)
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "runs.parquet").write_text("")
        with pytest.raises(RequestError, match=r"holds runs\.parquet"):
            write_bundle(store, runs, tmp_path / "other")
    assert {path.name for path in empty.iterdir()} == FILES | {"notes.txt"}


def test_what_a_bundle_may_not_hold_is_not_written(tmp_path: Path) -> None:
    url = database(tmp_path / "a.db", [(spec_of(), done())])
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("UPDATE client_results SET value = 1.01 WHERE client = 0")
    connection.close()
    with (
        open_store(url, create=False) as store,
        pytest.raises(RequestError, match=r"client_results\.parquet: row \d+: .*value"),
    ):
        write_bundle(store, store.runs(), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
