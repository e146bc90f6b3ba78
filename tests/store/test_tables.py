"""Questions to a database and to frames: answers worked out by hand, and the same filters for both."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_runs import done, opened, spec_of

from bench.errors import RequestError
from bench.store.bundle import Bundle, write_bundle


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
