"""Questions to a database whose answers are worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from stored_runs import context_of, spec_of

from bench.engine.result import RunResult
from bench.store import open_store
from bench.store.bundle import Bundle, write_bundle
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
