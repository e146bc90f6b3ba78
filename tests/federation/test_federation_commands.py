from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cyclopts import App
from federation_toys import random_graph, random_hypergraph, random_images

from bench import registry
from bench.cli import federation_commands
from bench.errors import NoDataError, RequestError
from bench.federation.build import build
from bench.federation.dataset_tables import published_statistics

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def data_app() -> App:
    app = App(name="data", result_action="return_value")
    app.command(federation_commands.stats)
    app.command(federation_commands.export)
    app.command(federation_commands.import_, name="import")
    return app


def test_published_values_are_those_of_tables_7_and_8() -> None:
    values = published_statistics("graph")
    assert values["cora", "non-overlapping", 10, "heterogeneity"] == 0.606
    assert values["photo", "overlapping", 30, "heterogeneity"] == 0.696
    assert values["ogbn-arxiv", "global", 1, "edges"] == 2315598
    assert (
        published_statistics("hypergraph")["coauthorship_cora", "label-dirichlet", 9, "border_hyperedges"]
        == 921
    )
    # Table 4 has Cora's simple graph under another number of clients; the hypergraph table is Table 1.
    assert ("cora", "label-dirichlet", 3, "border_hyperedges") not in published_statistics("hypergraph")


def test_stats_as_json_sets_published_beside_measured(data_app: App, capsys: Capture) -> None:
    data_app("stats -d cora --json")
    rows = json.loads(capsys.readouterr().out)
    found = {
        (row["scenario"], row["clients"], row["quantity"]): (row["measured"], row["published"])
        for row in rows
    }
    assert len(found) == len(rows) == 5 * 4
    assert found["global", 1, "nodes"] == (2485, 2485)
    assert found["global", 1, "edges"] == (10138, 10138)
    assert found["global", 1, "heterogeneity"] == (None, None)
    measured, published = found["non-overlapping", 10, "nodes"]
    assert (measured, published) == (pytest.approx(248.5), 249)
    assert found["overlapping", 50, "heterogeneity"][1] == 0.613


def test_stats_prints_a_table(data_app: App, capsys: Capture) -> None:
    data_app("stats --dataset cora")
    lines = {
        line.split("  ")[0].strip(): line.split() for line in capsys.readouterr().out.splitlines() if line
    }
    assert lines["whole"][1:] == ["2,485", "2,485", "10,138", "10,138", "0.238", "0.238", "-", "-"]
    assert any(words[:2] == ["overlapping", "50"] and words[-1] == "0.613" for words in lines.values())


def test_data_sets_that_are_not_at_hand_get_one_line(
    data_app: App, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_DATA", str(tmp_path / "nothing"))
    chosen = {name: registry.datasets()[name] for name in ("cora", "pubmed")}
    monkeypatch.setattr(registry, "datasets", lambda: chosen)
    data_app("stats")
    printed = capsys.readouterr().out
    assert sum(line.startswith("pubmed: not at hand: missing ") for line in printed.splitlines()) == 1
    assert "Cora (cora)" in printed
    data_app("stats --json")
    captured = capsys.readouterr()
    assert {row["dataset"] for row in json.loads(captured.out)} == {"cora"}
    assert captured.err.startswith("pubmed: not at hand")
    with pytest.raises(NoDataError, match=r"^pubmed: not at hand"):
        data_app("stats -d pubmed")


def test_families_have_their_own_tables(
    data_app: App, capsys: Capture, use_toy: Callable[..., object]
) -> None:
    use_toy(random_hypergraph())
    data_app("stats")
    assert "label-dirichlet 9" in capsys.readouterr().out
    use_toy(random_images())
    data_app("stats")
    assert capsys.readouterr().out == "toy: no published statistics\n"


def test_export_and_import(data_app: App, capsys: Capture, tmp_path: Path, suite_home: Path) -> None:
    path = tmp_path / "cora.npz"
    data_app(["export", "-d", "cora", "-s", "non-overlapping", "-k", "10", str(path)])
    federation = build("cora", "non-overlapping", 10, 123, (40.0, 30.0, 30.0))
    assert capsys.readouterr().out.endswith(f"hash {federation.hash}\n")
    with np.load(path) as file:
        assert len(file["nodes_offsets"]) == 11
        assert len(file["nodes"]) == 2485
    data_app(["import", str(path)])
    out = capsys.readouterr().out
    assert f"hash {federation.hash}" in out
    assert str(suite_home / "partitions" / "imported") in out


def test_export_takes_another_seed_and_split(
    data_app: App, tmp_path: Path, use_toy: Callable[..., object]
) -> None:
    use_toy(random_graph(50))
    path = tmp_path / "toy.npz"
    request = [
        "-d",
        "toy",
        "-s",
        "overlapping",
        "-k",
        "5",
        "--partition-seed",
        "7",
        "--split",
        "20",
        "40",
        "40",
    ]
    data_app(["export", str(path), *request])
    with np.load(path) as file:
        assert file["hash"].item() == build("toy", "overlapping", 5, 7, (20.0, 40.0, 40.0)).hash


def test_a_wrong_export_writes_nothing(data_app: App, tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    with pytest.raises(RequestError, match="did you mean 'non-overlapping'"):
        data_app(["export", str(path), "-d", "cora", "-s", "non-overlaping", "-k", "10"])
    assert not path.exists()
