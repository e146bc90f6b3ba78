"""Sweeps on a Ray cluster of several nodes on this machine."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from fake_runs import Scripted, grid, stored_numbers
from processes import alive, below, wait_for

from bench.grids import expand
from bench.runner import Placement

pytest.importorskip("ray", reason="needs the extra 'ray'")

from ray.cluster_utils import Cluster

from bench.runner.ray_workers import RayPool

NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), os.pathsep)  # nodes import the scripts
    ray_cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        yield ray_cluster
    finally:
        ray_cluster.shutdown()


def of_node(node: Any) -> list[psutil.Process]:
    """The processes of a node's workers."""
    raylet = node.all_processes["raylet"][0].process.pid
    return below(raylet)


@pytest.mark.slow
def test_runs_of_a_lost_node_are_made_elsewhere(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    nodes = [cluster.add_node(**NODE) for _ in range(2)]
    planned = expand(grid(seeds=tuple(range(6))))
    for name in ("ray", "here"):
        (tmp_path / name).mkdir()
    work, undisturbed = Scripted(tmp_path / "ray"), Scripted(tmp_path / "here")
    lost: list[str] = []
    orphans: list[psutil.Process] = []

    def kill_when_busy() -> None:
        def busy() -> bool:
            pids = {process.pid for process in of_node(nodes[0])}
            for key in (path.name for path in (work.folder / "attempts").iterdir()):
                tries = work.attempts(key)  # none while the file is being written
                if tries and tries[-1]["pid"] in pids and not (work.folder / "ended" / key).exists():
                    lost.append(key)
                    return True
            return False

        wait_for(busy, 120)
        orphans.extend(of_node(nodes[0]))
        cluster.remove_node(nodes[0], allow_graceful=False)

    killer = threading.Thread(target=kill_when_busy)
    (work.folder / "attempts").mkdir()
    killer.start()
    outcome = work.sweep(planned, {"*": ["done 2"]}, RayPool(Placement(backend="ray"), 100))
    killer.join()
    assert (outcome.counts, outcome.ran, outcome.failed) == ({"done": 12}, 12, 0)
    assert len(lost) == 1
    assert any("was lost" in line and "trying again" in line for line in work.lines), work.lines
    tries = {key: len(work.attempts(key)) for key in work.stored()}
    assert tries == {key: 2 if key == lost[0] else 1 for key in tries}
    undisturbed.sweep(planned)
    assert stored_numbers(work.url) == stored_numbers(undisturbed.url)
    assert len(stored_numbers(work.url)) == 12
    wait_for(lambda: not alive(orphans))
