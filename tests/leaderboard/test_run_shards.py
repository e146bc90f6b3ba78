"""Records of runs, in files that their hashes lead to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bench
from bench.leaderboard import run_shards
from bench.store import open_store
from bench.studies.source import MergedSource

from .pages import loaded
from .site_database import EVIL, PARTITION, REASON, TEN, spec

COMMAND = "bench sweep -d cora -s non-overlapping -k 10 -m fedavg --seed 2 --set protocol.rounds=3"


def test_the_record_of_a_run_holds_what_is_stored(site: Path) -> None:
    wanted = spec(TEN, "fedavg", 2)
    shard = loaded(site / "data" / "runs-0000.js")
    runs, machines = shard["runs"], shard["environments"]
    run = runs[wanted.hash]
    assert run["spec"] == wanted.tree()
    assert run["command"] == COMMAND
    ((address, reading),) = [(row["address"], (row["stage"], row["rule"])) for row in run["boards"]]
    assert reading == ("trained", "best_val")
    page, _, anchor = address.partition("#")
    assert f'id="{anchor}"' in (site / page).read_text()
    counts = [75 + client for client in range(10)]
    right = {tuple(row[:2]): row[2] for row in run["counts"]["test"]["right"]}
    assert right["trained", "best_val"] == counts
    assert right["trained", "last"] == [count - 1 for count in counts]
    assert right["received", "best_val"] == [count - 1 for count in counts]
    assert run["counts"]["test"]["samples"] == [100] * 10
    checked = {tuple(row[:2]): row[2] for row in run["counts"]["val"]["right"]}
    assert (checked["trained", "best_val"], checked["trained", "last"]) == ([40] * 10, [20] * 10)
    assert run["curves"]["trained"]["test"] == {"rows": 3, "every": 1, "values": [7850, 7950, 7850]}
    assert run["curves"]["received"]["val"]["values"] == [2000, 8000, 4000]
    assert run["costs"]["seconds_total"] == 2.5
    assert run["code"] == {
        "code_version": bench.__version__,
        "source_hash": "s",
        "method_numerics": 1,
        "engine_numerics": 2,
    }
    assert run["partition"] == PARTITION
    assert machines[str(run["environment"])] == {"python": "3.11", "note": EVIL}
    lost = runs[spec(TEN, "fedprox", 1).hash]
    assert (lost["state"], lost["reason"], lost["counts"]) == ("failed", REASON, {})


def test_runs_are_found_by_the_first_hash_of_each_shard(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_shards, "SHARD", 4000)
    monkeypatch.setattr(run_shards, "BLOCK", 4)
    with open_store(database, create=False) as store:
        shards, runs = run_shards.write(MergedSource(store, []), tmp_path, {}, {})
        hashes = store.runs()["spec_hash"].tolist()
    assert len(shards) > 2
    assert runs == len(hashes)
    for digest in hashes:
        shard = max(place for place, first in enumerate(shards) if first <= digest)
        assert digest in loaded(tmp_path / f"runs-{shard:04d}.js")["runs"]


def test_long_curves_keep_every_kth_row_and_the_last() -> None:
    correct = np.arange(450, dtype=np.int32)[None, :, None] * np.array([[[1]], [[2]]], np.int32)
    for times, curve in enumerate(run_shards.thinned(correct, np.array([1000])), 1):
        assert (curve["rows"], curve["every"]) == (450, 3)
        assert curve["values"] == [10 * times * row for row in (*range(0, 449, 3), 449)]


def test_all_curves_at_once_are_those_asked_for_one_by_one(database: str) -> None:
    with open_store(database, create=False) as store:
        ids = store.runs(state="done")["id"].tolist()
        found = store.curves([*ids, 999], "val")
        assert set(found) == {(run, stage) for run in ids for stage in ("received", "trained")}
        for (run, stage), counts in found.items():
            assert (counts == store.curves([run], "val")[run, stage]).all()
        merged = MergedSource(None, [("a", store), ("b", store)])
        assert len(merged.curves(merged.runs()["id"], "test")) == len(found)
