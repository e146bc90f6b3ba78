from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from toy_data import random_graph, random_hypergraph, random_images

from bench.cli.data import app
from bench.data import Graph
from bench.dataset import DATASETS, Dataset
from bench.errors import NoDataError, RequestError
from bench.federation.build import build
from bench.federation.prepared import prepare
from bench.sources import RawFile
from bench.spec import Protocol
from bench.studies.study import STUDIES

Capture = pytest.CaptureFixture[str]
A = RawFile("set/a.txt", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb")  # SHA-256 of "a"
B = RawFile("set/b.txt", md5="92eb5ffee6ae2fec3ad71c777531578f")  # MD5 of "b"


def call(arguments: str) -> object:
    return app(arguments, exit_on_error=False, print_error=False, result_action="return_value")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data set ``toy`` has the files a and b, ``core`` is embedded."""

    class Toy(Dataset):
        name, title, family, files = "toy", "Toy", "graph", (A, B)

    class Core(Dataset):
        name, title, family, embedded = "core", "Core", "images", True

    monkeypatch.setattr(DATASETS, "all", lambda: {"core": Core, "toy": Toy})
    (tmp_path / "root" / "set").mkdir(parents=True)
    return tmp_path / "root"


def test_verify_reports_each_file_at_hand(root: Path, capsys: Capture) -> None:
    (root / "set" / "a.txt").write_text("a")
    assert call(f"verify --data-root {root}") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["-        core: embedded", f"ok       {root}/set/a.txt", "missing  set/b.txt"]


def test_verify_fails_when_one_is_wrong(root: Path, capsys: Capture) -> None:
    (root / "set" / "a.txt").write_text("a")
    (root / "set" / "b.txt").write_text("not b")
    assert call(f"verify -d toy --data-root {root}") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"ok       {root}/set/a.txt"
    assert lines[1].startswith(f"wrong    {root}/set/b.txt")
    assert "expected md5 92eb5ffee6ae2fec3ad71c777531578f" in lines[1]


def test_fetch_prints_the_paths_or_says_what_is_missing(root: Path, capsys: Capture) -> None:
    (root / "set" / "a.txt").write_text("a")
    with pytest.raises(NoDataError, match=r"missing set/b\.txt"):
        call(f"fetch -d toy --data-root {root}")
    (root / "set" / "b.txt").write_text("b")
    call(f"fetch --dataset toy --data-root {root}")
    assert capsys.readouterr().out.split() == [f"{root}/set/a.txt", f"{root}/set/b.txt"]
    call("fetch -d core")
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("core: embedded")


@pytest.fixture
def data_app() -> Callable[..., object]:
    return partial(app, result_action="return_value")


def test_stats_as_json_sets_published_beside_measured(
    data_app: Callable[..., object], capsys: Capture
) -> None:
    data_app("stats -d cora --json")
    rows = json.loads(capsys.readouterr().out)
    measures = {
        (row["scenario"], row["clients"], row["quantity"]): (row["measured"], row["published"])
        for row in rows
    }
    assert len(measures) == len(rows) == 5 * 5
    assert measures["global", 1, "classes"] == (7, 7)
    assert measures["global", 1, "nodes"] == (2485, 2485)
    assert measures["global", 1, "edges"] == (10138, 10138)
    assert measures["global", 1, "heterogeneity"] == (None, None)
    measured, published = measures["published", 10, "nodes"]
    assert (measured, published) == (pytest.approx(248.5), 249)
    assert measures["published-overlapping", 50, "heterogeneity"][1] == 0.613


def test_stats_prints_a_table(data_app: Callable[..., object], capsys: Capture) -> None:
    data_app("stats --dataset cora")
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for row in ("nodes 2,485 2,485", "edges 10,138 10,138", "clustering 0.238 0.238"):
        assert f"whole {row}" in lines
    assert any(
        line.startswith("published-overlapping 50 heterogeneity ") and line.endswith(" 0.613")
        for line in lines
    )


def test_stats_of_a_graph_of_the_fedhgn_study(data_app: Callable[..., object], capsys: Capture) -> None:
    data_app("stats -d cora-whole --json")
    rows = json.loads(capsys.readouterr().out)
    whole = {
        row["quantity"]: (row["measured"], row["published"]) for row in rows if row["scenario"] == "global"
    }
    assert whole == {
        "nodes": (2708, 2708),
        "edges": (5278, 10858),
        "hyperedges": (2590, 2590),
        "classes": (7, 7),
        "features": (1433, 1433),
        "training_ratio": (0.1, 0.1),
    }
    counts = {(row["clients"], row["quantity"]): row for row in rows if row["scenario"] != "global"}
    assert {key: row["published"] for key, row in counts.items()} == {
        (3, "border_hyperedges"): 2351,
        (3, "cross_client_edges"): 3463,
        (8, "border_hyperedges"): 2528,
        (8, "cross_client_edges"): 4623,
    }
    graph = prepare("cora-whole").data
    assert isinstance(graph, Graph)
    crossing = []
    for seed in range(10):
        federation = build("cora-whole", "label-dirichlet", 8, seed, (10, 20, 40))
        both_ways = [client.cross_edges for client in federation.clients if client.cross_edges is not None]
        crossing.append(sum(edges.shape[1] for edges in both_ways) / 2)
    assert counts[8, "cross_client_edges"]["measured"] == pytest.approx(np.mean(crossing))
    assert counts[8, "cross_client_edges"]["deviation"] == pytest.approx(np.std(crossing) * np.sqrt(10 / 9))
    data_app("stats -d cora-whole")
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "whole edges 5,278 10,858" in lines
    mean, deviation = (counts[8, "cross_client_edges"][key] for key in ("measured", "deviation"))
    assert f"label-dirichlet 8 cross client edges {mean:,.1f} {deviation:.1f} 4,623" in lines


def test_hyperedges_before_and_after_cleaning_are_printed(
    data_app: Callable[..., object],
    capsys: Capture,
    use_toy: Callable[..., type[Dataset]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    toy = use_toy(random_hypergraph(hyperedges=60))
    data_app("stats --json")
    assert "cleaned_hyperedges" not in capsys.readouterr().out
    monkeypatch.setattr(toy, "raw_hyperedges", lambda self, sources: [[0]] * 77, raising=False)
    data_app("stats --json")
    measures = {row["quantity"]: row["measured"] for row in json.loads(capsys.readouterr().out)}
    assert (measures["hyperedges"], measures["cleaned_hyperedges"]) == (77, 60)


def test_hypergraphs_measured_beside_table_1(
    data_app: Callable[..., object], capsys: Capture, at_hand: Callable[[str], None]
) -> None:
    at_hand("coraca")
    data_app("stats -d coraca")
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "whole hyperedges 1,072 1,072" in lines
    assert "whole cleaned hyperedges 970 -" in lines
    assert "whole training ratio 0.100 0.100" in lines
    assert any(line.startswith("label-dirichlet 9 border") and line.endswith(" 921") for line in lines)


def test_data_sets_that_are_not_at_hand_get_one_line(
    data_app: Callable[..., object], capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_DATA", str(tmp_path / "nothing"))
    chosen = {name: DATASETS.all()[name] for name in ("cora", "pubmed")}
    monkeypatch.setattr(DATASETS, "all", lambda: chosen)
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
    data_app: Callable[..., object], capsys: Capture, use_toy: Callable[..., type[Dataset]]
) -> None:
    use_toy(random_hypergraph())
    data_app("stats")
    assert "label-dirichlet 9" in capsys.readouterr().out
    toy = use_toy(random_images(400))
    toy.scenarios = ("case-study",)
    toy.protocol = Protocol(split=(70, 10, 20))
    data_app("stats --json")
    rows = json.loads(capsys.readouterr().out)
    measured = {(row["scenario"], row["quantity"]): row["measured"] for row in rows}
    # Four clients share 32 of a class's 40 images; the other 8 are too few for one at each of twenty.
    assert measured["global", "images"] == 400
    assert [measured["case-study", name] for name in ("images", "fewest", "most", "classes")] == [
        16,
        16,
        16,
        2,
    ]


@pytest.mark.parametrize("family", ["graph", "hypergraph", "images"])
def test_stats_of_other_numbers_of_clients(
    family: str, data_app: Callable[..., object], capsys: Capture, use_toy: Callable[..., type[Dataset]]
) -> None:
    toys = {"graph": random_graph(60), "hypergraph": random_hypergraph(), "images": random_images()}
    use_toy(toys[family])
    scenario = {"graph": "non-overlapping", "hypergraph": "label-dirichlet2", "images": "dirichlet2"}[family]
    data_app(f"stats -d toy -s {scenario} -k 2 --json")
    settings = {(row["scenario"], row["clients"]) for row in json.loads(capsys.readouterr().out)}
    assert settings == {("global", 1), (scenario, 2)}


def test_a_scenario_that_does_not_give_so_many_clients_is_left_out_unless_it_is_named(
    data_app: Callable[..., object], capsys: Capture, use_toy: Callable[..., type[Dataset]]
) -> None:
    use_toy(random_graph(60))
    data_app("stats -d toy -k 4 --json")
    printed = capsys.readouterr()
    settings = {(row["scenario"], row["clients"]) for row in json.loads(printed.out)}
    assert settings == {("global", 1), ("non-overlapping", 4)}
    assert "left out: scenario overlapping: expected a multiple of 5 clients" in printed.err
    with pytest.raises(RequestError, match="expected a multiple of 5 clients"):
        data_app("stats -d toy -s overlapping -k 4")


def test_stats_of_other_clients_are_of_one_data_set() -> None:
    with pytest.raises(RequestError, match="--dataset"):
        call("stats -k 2")


def test_a_family_that_no_study_describes_has_no_table(
    data_app: Callable[..., object],
    capsys: Capture,
    use_toy: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_toy(random_images())
    monkeypatch.setattr(STUDIES, "all", dict)
    data_app("stats")
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("toy: ")


def test_export_and_import(
    data_app: Callable[..., object], capsys: Capture, tmp_path: Path, home: Path
) -> None:
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
    assert str(home / "partitions" / "imported") in out


def test_an_export_has_the_ending_of_what_it_is(data_app: Callable[..., object], tmp_path: Path) -> None:
    for name in ("clients.csv", "clients"):
        with pytest.raises(RequestError, match=r"\.npz"):
            data_app(["export", str(tmp_path / name), "-d", "cora", "-s", "non-overlapping", "-k", "10"])
    assert list(tmp_path.iterdir()) == []


def test_export_takes_another_seed_and_split(
    data_app: Callable[..., object], tmp_path: Path, use_toy: Callable[..., object]
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
