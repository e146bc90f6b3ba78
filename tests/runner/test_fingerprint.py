"""Which code makes a run, by its sources."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_runs import stored

from bench import registry
from bench.grids import Planned
from bench.registry import own_sources
from bench.runner import fingerprint
from bench.runner.plan import make_plan
from bench.spec import ClientSettings, RunSpec


def forget() -> None:
    """As a new process."""
    fingerprint.code.cache_clear()
    fingerprint._suite_hash.cache_clear()


@pytest.fixture
def hashed_anew() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.mark.usefixtures("hashed_anew")
@pytest.mark.parametrize("edited", ["pfedgraph.py", "evaluation.py", "gcn.py", "build.py", "streams.py"])
def test_the_suites_sources_are_one(edited: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint.code("local").source
    real = fingerprint._hash
    monkeypatch.setattr(fingerprint, "_hash", lambda file: "x" if file.name == edited else real(file))
    assert fingerprint.code("local").source == before, "read once"
    forget()
    assert fingerprint.code("local").source != before


@pytest.mark.usefixtures("plugins", "hashed_anew")
def test_a_file_that_is_edited_later_is_not_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.py"
    text = "from bench.methods.local import Local\n\n\nclass Mine(Local):\n    name = 'mine'\n"
    file.write_text(text)
    monkeypatch.setenv(registry.PLUGINS, str(file))
    registry.forget()
    fingerprint.code("local")  # whichever is asked for first
    file.write_text(text + "    numerics = 5\n")
    late = fingerprint.code("mine")
    for function in (fingerprint.code, own_sources):
        function.cache_clear()
    assert fingerprint.code("mine").source != late.source


OWN = """
import numpy as np
from bench.data import Graph
from bench.dataset import Dataset
from bench.federation.scenario import Assignment, Scenario
from bench.methods.fedavg import FedAvg
from bench.nn.gcn import GCN
from bench.spec import ClientSettings, Protocol
from near import width

class Own(FedAvg):
    name = "own"

class OwnModel(GCN):
    name = "own"

class OwnClients(Scenario):
    name, families = "own", ("graph",)
    def draw(self, data, clients, partition_seed, split):
        nodes = np.arange(len(data.labels))
        ids = tuple(np.flatnonzero(nodes // width() % clients == client) for client in range(clients))
        return Assignment(ids, tuple(np.resize(np.array([0, 1, 2], np.int8), len(part)) for part in ids))

class OwnData(Dataset):
    name, title, family, embedded = "own", "Own", "graph", True
    scenarios, protocol, client = ("own",), Protocol(), ClientSettings()
    def load(self, sources):
        return Graph(np.eye(8, dtype=np.float32), np.arange(8) % width(), np.zeros((2, 0), np.int64), 4)
"""


@pytest.fixture
def write(plugins: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Writes a plug-in that takes a number from a module of a module beside it, as a new process finds it."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv(registry.PLUGINS, str(tmp_path / "own.py"))

    def write_files(number: int) -> None:
        (tmp_path / "own.py").write_text(OWN)
        (tmp_path / "near.py").write_text("def width():\n    from far.core import WIDTH\n    return WIDTH\n")
        (tmp_path / "far").mkdir(exist_ok=True)
        (tmp_path / "far" / "core.py").write_text("from .number import *\n")
        (tmp_path / "far" / "number.py").write_text(f"WIDTH = {number}  # {'.' * number}\n")
        for name in ("bench_plugin_own", "near", "far", "far.core", "far.number"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        fingerprint.code.cache_clear()
        registry.forget()

    return write_files


@pytest.mark.parametrize(
    ("own", "is_changed"),
    [
        ({}, False),
        ({"method": "own"}, True),
        ({"client": ClientSettings(model="own")}, True),
        ({"scenario": "own"}, True),
        ({"dataset": "own"}, True),
    ],
)
def test_a_run_counts_as_changed_with_a_module_that_its_plug_in_takes_a_number_from(
    own: dict[str, Any], is_changed: bool, write: Callable[[int], None]
) -> None:
    suite = {"dataset": "cora", "scenario": "non-overlapping", "clients": 2, "method": "local", "seed": 0}
    spec = RunSpec(**suite | own)
    write(2)
    made = fingerprint.of(spec)
    row = stored("done", made.method_numerics, source=made.source)
    for number, expected in ((2, False), (3, is_changed)):
        write(number)
        (step,) = make_plan([Planned(spec, spec.method)], {spec.hash: row}, lambda dataset: "")
        assert (step.status, step.changed) == ("done", expected)
