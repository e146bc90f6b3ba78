"""Records of runs, in files that their hashes lead to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import loaded
from site_database import EVIL, PARTITION, REASON, TEN, spec

from bench import __version__
from bench.site import run_shards
from bench.spec import RunSpec
from bench.store import open_store
from bench.studies.source import merged

COMMAND = "bench sweep -d cora -s non-overlapping -k 10 -m fedavg --seed 2 --set protocol.rounds=3"


def record(folder: Path, wanted: RunSpec) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the file that its hash leads to says of a run, and the environments there."""
    shard = loaded(folder / f"runs-{wanted.hash[:2]}.js")
    return shard["runs"][wanted.hash], shard["environments"]


def test_the_record_of_a_run_holds_what_is_stored(site: Path) -> None:
    wanted = spec(TEN, "fedavg", 2)
    run, machines = record(site / "data", wanted)
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
    assert run["seconds_total"] == 2.5
    assert (run["code_version"], run["method_numerics"], run["engine_numerics"]) == (__version__, 1, 2)
    assert run["started"] == "2026-01-02T03:04:05"
    assert run["partition_hash"] == PARTITION
    assert machines[str(run["environment_id"])] == {"python": "3.11", "note": EVIL}
    lost, _ = record(site / "data", spec(TEN, "fedprox", 1))
    assert (lost["state"], lost["reason"], lost["counts"]) == ("failed", REASON, {})


def test_runs_are_whole_where_few_are_in_memory_at_a_time(
    database: str, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_shards, "BLOCK", 4)
    with open_store(database, create=False) as store:
        assert run_shards.write(merged(store, []), tmp_path, {}, {}) == len(store.runs())
    found = {path.name: loaded(path) for path in tmp_path.iterdir()}
    assert set(found) == {path.name for path in (site / "data").glob("runs-*.js")}
    for name, shard in found.items():
        for digest, run in shard["runs"].items():
            wanted = loaded(site / "data" / name)["runs"][digest]
            assert run == {**wanted, **{key: run[key] for key in ("boards", "title", "page")}}


def test_long_curves_keep_every_kth_row_and_the_last() -> None:
    correct = np.arange(450, dtype=np.int32)[:, None]
    curve = run_shards.thinned(correct, np.array([1000]))
    assert (curve["rows"], curve["every"]) == (450, 3)
    assert curve["values"] == [10 * row for row in (*range(0, 449, 3), 449)]
