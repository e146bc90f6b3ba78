"""Records of runs, in files that their hashes lead to."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, stdev
from typing import Any

from pages import loaded
from site_database import EVIL, PARTITION, REASON, TEN, spec

from bench import __version__
from bench.spec import RunSpec

COMMAND = "bench sweep -d cora -s non-overlapping -k 10 -m fedavg --seed 2 --set protocol.rounds=3"


def record(folder: Path, wanted: RunSpec) -> Any:
    """What the file that its hash leads to says of a run."""
    return loaded(folder / f"runs-{wanted.hash[:2]}.js")[wanted.hash]


def test_the_record_of_a_run_holds_what_is_stored(site: Path) -> None:
    wanted = spec(TEN, "fedavg", 2)
    run = record(site / "data", wanted)
    assert run["spec"] == wanted.tree()
    assert run["command"] == COMMAND
    ((address, reading),) = [(row["address"], (row["stage"], row["rule"])) for row in run["boards"]]
    assert reading == ("trained", "best_val")
    page, _, anchor = address.partition("#")
    assert f'id="{anchor}"' in (site / page).read_text()
    counts = [75 + client for client in range(10)]
    results = {tuple(row[:3]): row[3:] for row in run["results"]}
    assert results["test", "trained", "best_val"] == [mean(counts)] * 2 + [round(stdev(counts), 4), 75]
    assert results["test", "trained", "last"][0] == mean(counts) - 1
    assert results["test", "received", "best_val"][0] == mean(counts) - 1
    assert results["val", "trained", "best_val"] == [80, 80, 0, 80]
    assert results["val", "trained", "last"][0] == 40
    assert run["seconds_total"] == 2.5
    assert (run["code_version"], run["method_numerics"], run["engine_numerics"]) == (__version__, 1, 2)
    assert run["started"] == "2026-01-02T03:04:05"
    assert run["partition_hash"] == PARTITION
    assert run["environment"] == {"python": "3.11", "note": EVIL}
    lost = record(site / "data", spec(TEN, "fedprox", 1))
    assert (lost["state"], lost["reason"], lost["results"]) == ("failed", REASON, [])
