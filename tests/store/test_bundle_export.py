"""What a bundle is written from and over: large arrays, values, environments, and folders of others."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stored_runs import context_of, database, done, opened, spec_of

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.store import open_store
from bench.store.bundle import Bundle, write_bundle
from bench.store.bundle_check import FILES


def test_large_arrays_are_kept_where_asked_for(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).random((40, 6, 20, 20), np.float32)
    with opened(tmp_path / "a.db", [(spec_of(), replace(done(), artefacts={"weights": weights}))]) as store:
        runs = store.runs()
        write_bundle(store, runs, tmp_path / "usual")
        write_bundle(store, runs, tmp_path / "large", 512 * 1024)
        with pytest.raises(RequestError, match="largest array"):
            write_bundle(store, runs, tmp_path / "huge", 2**30)
    assert "weights" not in Bundle(tmp_path / "usual").artefact_names(1)
    np.testing.assert_array_equal(Bundle(tmp_path / "large").artefact(1, "weights"), weights, strict=True)
    assert not (tmp_path / "huge").exists()


def test_a_value_that_no_count_gives_comes_back_bit_by_bit(tmp_path: Path) -> None:
    url = database(tmp_path / "a.db", [(spec_of(), replace(done(), confusion={}))])
    value = 0.1 + 0.2  # 0.30000000000000004, not 3 / 10
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("UPDATE client_results SET value = ? WHERE client = 0 AND rule = 'last'", [value])
    connection.close()
    with open_store(url, create=False) as store:
        write_bundle(store, store.runs(), tmp_path / "out")
    rows = Bundle(tmp_path / "out").client_results([1], rule="last")
    assert set(rows.loc[rows["client"] == 0, "value"]) == {value}
    assert set(rows.loc[rows["client"] == 1, "value"]) == {2 / 11}


def test_only_a_bundle_is_replaced(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db", [(spec_of(), done()), (spec_of(seed=1), done())]) as store:
        runs = store.runs()
        empty = tmp_path / "empty"
        empty.mkdir()
        assert write_bundle(store, runs, empty).runs == 2
        assert write_bundle(store, runs[runs["seed"] == 1], empty).runs == 1
        assert list(Bundle(empty).runs()["seed"]) == [1]
        (empty / "notes.txt").write_text("mine")
        with pytest.raises(RequestError, match=r"holds notes\.txt"):
            write_bundle(store, runs, empty)
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "runs.parquet").write_text("")
        with pytest.raises(RequestError, match=r"has no bundle\.json"):
            write_bundle(store, runs, tmp_path / "other")
        with pytest.raises(RequestError, match="this is a file"):
            write_bundle(store, runs, tmp_path / "a.db")
    assert {path.name for path in tmp_path.iterdir()} - {"a.db-wal", "a.db-shm"} == {"a.db", "empty", "other"}
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


def test_environments_are_kept_once_each(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with open_store(url, create=True) as store:
        for seed, version in enumerate(("3.12", "3.11", "3.12", "3.13")):
            result = done() if version != "3.13" else RunResult("failed")
            store.save(spec_of(seed=seed), result, context_of(environment={"python": version}))
        write_bundle(store, store.runs(), tmp_path / "out")
    bundle = Bundle(tmp_path / "out")
    versions = {
        row["id"]: json.loads(row["description"])["python"]
        for row in bundle.environments().to_dict("records")
    }
    assert sorted(versions.values()) == ["3.11", "3.12"]
    by_seed = {row["seed"]: versions[row["environment_id"]] for row in bundle.runs().to_dict("records")}
    assert by_seed == {0: "3.12", 1: "3.11", 2: "3.12"}
