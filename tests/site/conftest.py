"""The site of the small database, built once; a small report, and a wide one."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from site_database import build_site, fill, runs_of_two
from stored_runs import CORA, MemoryStore
from study_cells import report_of
from undrawn import undrawn as undrawn

from bench.report.document import Part


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of the small database."""
    url = f"sqlite:///{tmp_path_factory.mktemp('database') / 'bench.db'}"
    fill(url)
    return url


@pytest.fixture(scope="session")
def site(database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's folder."""
    out = tmp_path_factory.mktemp("site") / "site"
    build_site(database, out)
    return out


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Part, Path]:
    """A report on two methods, and its folder."""
    out = tmp_path_factory.mktemp("page")
    return report_of(runs_of_two(), out), out


@pytest.fixture(scope="module")
def small_report(built: tuple[Part, Path]) -> Path:
    """The folder of that report."""
    return built[1]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> tuple[Part, Path]:
    """A report of as many columns, protocols, settings and long words as the shipped results have."""
    source = MemoryStore()
    columns = [("cora", 10), ("cora", 20), ("citeseer", 10), ("citeseer", 20)]
    columns += [("pubmed", 10), ("computers", 10), ("photo", 10)]
    for place, (dataset, clients) in enumerate(columns):
        protocol = CORA.model_copy(update={"rounds": 100 + 10 * place, "local_epochs": 1 + place})
        part = protocol.model_copy(update={"participation": 0.2})
        for seed, method in product((0, 1, 2), ("local", "fedavg", "fedprox", "flow")):
            partition = f"{place:08d}{method == 'flow'}"
            where = {"dataset": dataset, "clients": clients, "partition_hash": partition}
            for used in (protocol, part) if dataset == "cora" else (protocol,):
                source.add(method, seed, [[50, 60], [97, 93]], protocol=used, **where)
    out = tmp_path_factory.mktemp("wide")
    return report_of(source, out), out


@pytest.fixture(scope="module")
def wide_report(wide: tuple[Part, Path]) -> Path:
    """The folder of that report."""
    return wide[1]
