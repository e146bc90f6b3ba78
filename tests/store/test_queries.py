"""Questions to a database and to frames: answers worked out by hand, and the same filters for both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from stored_runs import context_of, done, opened, spec_of

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.store import open_store
from bench.store.bundle import Bundle, write_bundle
from bench.store.queries import by_client, filter_known_runs
from bench.studies.source import MergedSource


def test_counts_are_texts_by_client(tmp_path: Path) -> None:
    """Eleven clients, whose numbers are in another order as texts; the third has no test samples."""
    test = np.array([[3, 1, 0, *range(8)], [2, 6, 0, *range(8)]], np.int32)
    val = np.array([[1] * 11, [4] * 11], np.int32)
    samples = {"val": np.full(11, 5, np.int32), "test": np.array([7, 7, 0, *[9] * 8], np.int32)}
    correct = {("trained", "test"): test, ("received", "test"): test, ("trained", "val"): val}
    result = RunResult(
        "done", correct={**correct, ("received", "val"): val}, samples=samples, partition_hash="p"
    )
    with open_store(f"sqlite:///{tmp_path / 'bench.db'}", create=True) as store:
        store.save(spec_of(11), result, context_of())
        store.save(spec_of(11, seed=1), RunResult("oom"), context_of())
        write_bundle(store, store.runs(), tmp_path / "bundle")
        for source in (store, Bundle(tmp_path / "bundle"), MergedSource(store, [])):
            rows = source.counts([1, 2, 99])
            by = rows.set_index(["run_id", "split", "stage", "rule"])
            assert list(by.index) == sorted(by.index)
            assert len(by) == 2 * 2 * 4  # splits, stages, rules
            row = by.loc[(1, "test", "trained", "last")]
            assert row["clients"] == "0,1,3,4,5,6,7,8,9,10"
            assert row["samples"] == "7,7,9,9,9,9,9,9,9,9"
            assert row["right"] == "2,6,0,1,2,3,4,5,6,7"
            assert by.loc[(1, "val", "received", "client_best_val"), "right"] == ",".join("4" * 11)
            assert source.counts([2]).empty


def test_counts_are_brought_into_the_order_of_the_clients() -> None:
    assert by_client("2,0,10", "5,6,7", "1,2,3") == ("0,2,10", "6,5,7", "2,1,3")
    assert by_client("0,2", "5,6") == ("0,2", "5,6")


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


def test_what_no_run_has_is_refused_with_what_there_is(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db", [(spec_of(), done()), (spec_of(3, method="fedavg"), done(3))]) as store:
        runs = store.runs()
    assert list(filter_known_runs(runs, {"method": ["local"], "seed": None, "clients": []})["clients"]) == [2]
    with pytest.raises(RequestError, match=r"'locl'.*'local'"):
        filter_known_runs(runs, {"method": ["local", "locl"]})
    with pytest.raises(RequestError, match="filters"):
        filter_known_runs(runs, {"method": ["local"], "clients": [3]})
