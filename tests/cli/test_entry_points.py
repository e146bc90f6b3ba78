"""Plug-ins of installed packages: found by commands, named by ``bench doctor``, in one line if broken."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import registry
from bench.comparison import methods_in
from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.federation.scenario import SCENARIOS
from bench.nn.base import CLIENT_MODELS
from bench.registry import Kind
from bench.studies.study import STUDIES

from .conftest import Bench

KINDS: tuple[Kind[Any], ...] = (METHODS, DATASETS, SCENARIOS, CLIENT_MODELS, STUDIES)

OWN = """
from bench.dataset import DATASETS, Dataset
from bench.federation.scenario import SCENARIOS, Scenario
from bench.methods.fedavg import FedAvg
from bench.nn.gcn import GCN
from bench.spec import ClientSettings, Protocol
from bench.studies.settings import Reading
from bench.studies.study import Study

class Method(FedAvg):
    name = "made_up_method"

class Data(Dataset):
    name, title, family, embedded, homepage = "made-up-data", "Made up", "graph", True, ""
    scenarios, protocol, client = ("made-up-clients",), Protocol(), ClientSettings()
    def load(self, sources): ...

class Clients(Scenario):
    name, families = "made-up-clients", ("graph",)
    def draw(self, data, clients, partition_seed, split): ...

class Model(GCN):
    name = "made_up_model"

class Paper(Study):
    name, title, primary = "made_up_study", "Made up", Reading("trained", "last")
    grids = experiments = lines = ()
"""


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder where packages are found; what they add is gone after the test."""
    monkeypatch.setenv(registry.PLUGINS, "")
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    registry.forget()
    yield folder
    sys.modules.pop("made_up", None)
    monkeypatch.undo()
    registry.forget()


def install(folder: Path, text: str, *groups: str) -> None:
    """Package ``made-up-package`` 1.5: the module ``made_up`` under some groups."""
    (folder / "made_up.py").write_text(text)
    info = folder / "made_up_package-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up-package\nVersion: 1.5\n")
    entries = "".join(f"[{group}]\nours = made_up\n" for group in groups)
    (info / "entry_points.txt").write_text(entries)


def test_what_a_package_adds_is_found_and_named(packages: Path, bench: Bench) -> None:
    before = [set(kind.all()) for kind in KINDS]
    registry.forget()
    install(packages, OWN, *(kind.group for kind in KINDS))
    added = [set(kind.all()) - names for kind, names in zip(KINDS, before, strict=True)]
    names = ["made_up_method", "made-up-data", "made-up-clients", "made_up_model", "made_up_study"]
    assert added == [{name} for name in names]
    code, out, _ = bench("doctor")
    out = " ".join(out.split())
    assert code == 0
    for kind, name in zip(KINDS, names, strict=True):
        assert f"ok plugins {kind.word} {name} from made-up-package 1.5" in out
    assert out.count(" from made-up-package") == len(KINDS)  # not what its module merely imports


def test_a_package_that_cannot_be_imported_is_named_in_one_line(packages: Path, bench: Bench) -> None:
    install(packages, "raise ValueError('two\\nlines')\n", "bench.methods")
    message = "made-up-package 1.5 cannot be imported: ValueError: two lines"
    code, _, error = bench("sweep -d cora -m local --dry-run")
    assert (code, error) == (2, f"bench: {message}\n")
    code, out, _ = bench("doctor")
    assert code == 1
    assert message in " ".join(out.split())


def test_a_method_of_a_package_or_of_the_suite_can_be_named_by_its_file(packages: Path) -> None:
    install(packages, OWN, "bench.methods")
    assert methods_in(packages / "made_up.py") == ["made_up_method"]
    assert methods_in(Path(inspect.getfile(METHODS.named("ditto")))) == ["ditto"]
    assert registry.plugin_files() == [], "nothing is found twice"
