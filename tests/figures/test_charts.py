"""The figures of an experiment: which frames they show, and in how many files."""

import csv
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from stored_runs import CORA, MemoryStore
from study_cells import report_of
from toy_study import ToyStudy

from bench.figures.charts import pareto_front
from bench.grids import load_grid, plan
from bench.report.report import build, compose
from bench.report.request import Request
from bench.reports.fedhgn import FedHGN
from bench.reports.fedsheafhn import FedSheafHN
from bench.spec import RunSpec
from bench.studies.planned import PlannedCell
from bench.studies.settings import Column, settings_of

LOOKS_AT_FIGURES = True

Rows = list[dict[str, str]]


def database() -> MemoryStore:
    """Local and two more methods on Cora with 10 and 20 clients, hand-made."""
    made = MemoryStore()
    for seed in (0, 1):
        made.add("local", seed, [70, 80], seconds={"total": 4.0})
        made.add(
            "fedavg",
            seed,
            [60, 90 + seed],
            bytes_up=3_000_000,
            bytes_down=5_000_000,
            received=[50 - 2 * seed, 80 - seed],
            seconds={"total": 2.0 + 4 * seed},
        )
        made.add(
            "fedpub",
            seed,
            [50, 60],
            bytes_up=8_000_000,
            artefacts={"collaboration": np.full((10, 10), 0.1 + 0.2 * seed)},
            seconds={"total": 8.0},
        )
    made.add("fedavg", 2, [10, 20], bytes_up=9_000_000, bytes_down=5_000_000)  # no Local of this seed
    made.add("local", 0, [50, 60], clients=20)
    made.add("local", 1, [52, 62], clients=20)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("figures")
    report_of(database(), out)
    return out


def test_unchanged_results_give_byte_identical_files(folder: Path, tmp_path: Path) -> None:
    report_of(database(), tmp_path)
    first, second = (
        {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
        for out in (folder, tmp_path)
    )
    assert first.keys() == second.keys()
    assert [path for path in first if first[path] != second[path]] == []
    assert {path.suffix for path in first} == {".md", ".tex", ".csv", ".pdf", ".png", ".html", ".json"}


def test_figures_are_not_blank(folder: Path) -> None:
    for name in ("stages", "clients"):
        pixels = matplotlib.image.imread(folder / f"toy/table1/{name}.png")
        assert len(np.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0)) > 20
        assert (folder / f"toy/table1/{name}.pdf").read_bytes().startswith(b"%PDF")


def read(folder: Path, kind: str) -> Rows:
    with (folder / f"toy/table1/{kind}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_cost_figures_hold_medians_and_the_pareto_front(folder: Path) -> None:
    # FedAvg's means over clients: 75, 75.5, 15.
    found = {row["method"]: row for row in read(folder, "megabytes") if row["clients"] == "10"}
    assert {name: (row["mean"], row["megabytes"], row["front"]) for name, row in found.items()} == {
        "local": ("75.0000", "0.0000", "1"),
        "fedavg": (f"{165.5 / 3:.4f}", "8.0000", "0"),
        "fedpub": ("55.0000", "8.0000", "0"),
    }
    assert found["fedavg"]["std"] == f"{np.std([75, 75.5, 15], ddof=1):.4f}"
    seconds = {row["method"]: row["seconds"] for row in read(folder, "seconds")}
    assert seconds == {"local": "4.0000", "fedavg": "2.0000", "fedpub": "8.0000"}  # of 2, 6 and 0


def test_a_column_of_one_method_has_no_cost_panel(folder: Path) -> None:
    assert {row["clients"] for row in read(folder, "megabytes")} == {"10"}
    assert {row["clients"] for row in read(folder, "stages")} == {"10", "20"}


def test_stages_are_read_each_by_itself(folder: Path) -> None:
    found = {(row["method"], row["kind"]): row for row in read(folder, "stages") if row["clients"] == "10"}
    trained, received = found["fedavg", "trained"], found["fedavg", "received"]
    assert (trained["n"], received["n"]) == ("3", "3")
    assert trained["mean"] == f"{(75 + 75.5 + 15) / 3:.4f}"
    assert received["mean"] == f"{(65 + 63.5 + 15) / 3:.4f}"
    assert received["std"] == f"{np.std([65, 63.5, 15], ddof=1):.4f}"
    assert [found["local", kind]["mean"] for kind in ("trained", "received")] == ["75.0000", "75.0000"]


def test_differences_are_paired_by_seed_and_client_and_sorted(folder: Path) -> None:
    rows = [(row["method"], row["client"], row["difference"]) for row in read(folder, "differences")]
    # Client 0: 60 - 70 in both seeds; client 1: 90 - 80 and 91 - 80. The third seed has no Local.
    assert rows == [
        ("fedavg", "0", "-10.0000"),
        ("fedavg", "1", "10.5000"),
        ("fedpub", "0", "-20.0000"),
        ("fedpub", "1", "-20.0000"),
    ]


def test_differences_are_those_of_the_tables_own_methods(tmp_path: Path) -> None:
    made = database()
    for seed in (0, 1):
        made.add("fedala", seed, [60, 70])
    report_of(made, tmp_path)
    assert {row["method"] for row in read(tmp_path, "clients")} >= {"fedala", "fedpub"}
    assert {row["method"] for row in read(tmp_path, "differences")} == {"fedavg", "fedpub"}


def test_clients_of_other_partitions_are_not_averaged(tmp_path: Path) -> None:
    made = MemoryStore()
    for seed, (alone, other) in enumerate([(70, 60), (50, 80)]):
        for method, right in (("local", alone), ("fedpub", other)):
            made.add(
                method,
                seed,
                [right],
                protocol=CORA.model_copy(update={"partition_seed": seed}),
                artefacts={"collaboration": np.full((10, 10), 0.1 + seed)},
                partition_hash=f"{seed:064d}",
            )
    column, specs = (
        Column("cora", "non-overlapping", 10),
        map(RunSpec.model_validate_json, made.runs()["spec"]),
    )
    usual = {(column, spec.method): PlannedCell(settings_of(spec, per_seed=True)) for spec in specs}
    build(made, Request(), {"toy": ToyStudy}, tmp_path, usual)
    rows = [(row["client"], row["difference"]) for row in read(tmp_path, "differences")]
    assert rows == [("0 of seed 0", "-10.0000"), ("0 of seed 1", "30.0000")]
    weights = read(tmp_path, "collaboration")
    assert {(row["n"], row["weight"]) for row in weights} == {("1", "0.1000")}


def test_collaboration_is_the_mean_of_seeds_on_one_partition(folder: Path) -> None:
    rows = read(folder, "collaboration")
    assert len(rows) == 100
    assert {(row["method"], row["n"], row["weight"]) for row in rows} == {("fedpub", "2", "0.2000")}
    assert [(row["client"], row["from"]) for row in rows[:11]][-2:] == [("0", "9"), ("1", "0")]


def test_captions_name_stage_rule_average_and_seeds(folder: Path) -> None:
    text = (folder / "toy/table1/table.md").read_text(encoding="utf-8").replace("\\", "")
    captions = {
        name: text.split(f"![{name}]")[1].split("*")[1]
        for name in ("differences", "stages", "megabytes", "seconds", "collaboration", "clients")
    }
    for name, caption in captions.items():
        assert caption.endswith("Seeds: 0-2."), name
    for name in ("differences", "clients", "megabytes", "seconds"):
        assert "(stage trained, rule best_val)" in captions[name]
    for name in ("stages", "megabytes", "seconds"):
        assert "unweighted mean over clients" in captions[name]
    assert "(rule best_val, for each stage by itself)" in captions["stages"]


def test_a_report_of_one_method_draws_what_there_is(tmp_path: Path) -> None:
    made = MemoryStore()
    made.add("fedavg", 0, [50])  # one seed, one client, one evaluation, no cost
    report_of(made, tmp_path, Request(methods=("fedavg",)))
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.png")} == {
        "toy/table1/clients.png",
        "toy/table1/convergence.png",
        "toy/table1/stages.png",
    }


def test_lines_of_an_experiment_stand_beside_the_published_ones(tmp_path: Path) -> None:
    made = MemoryStore()
    for seed in (0, 1):
        for where in (("cora", "non-overlapping", 20), ("ogbn-arxiv", "overlapping", 30)):
            spec = plan(load_grid("ablation"), *where, "fedsheafhn", {}, seed).spec
            assert spec is not None
            made.add_run(spec, [70 + seed])
    report_of(made, tmp_path, Request(grid="ablation"), FedSheafHN)
    with (tmp_path / "fedsheafhn/ablation/lines.csv").open(encoding="utf-8", newline="") as file:
        rows = {
            (row["dataset"], row["scenario"], row["method"], row["kind"]): row for row in csv.DictReader(file)
        }
    whole = ("ogbn-arxiv", "overlapping", "+ Dynamic embedding")
    measured, published = rows[*whole, "measured"], rows[*whole, "published"]
    assert (measured["n"], measured["mean"], measured["std"]) == ("2", "70.5000", "0.7071")
    assert (measured["low"], measured["high"]) == ("", "")  # two seeds have no interval
    assert (published["mean"], published["std"]) == ("67.8900", "")  # as printed in Table 4
    assert ("cora", "non-overlapping", "+ Dynamic embedding", "published") not in rows
    unrun = ("ogbn-arxiv", "non-overlapping", "+ Hypernetwork")
    assert (*unrun, "measured") not in rows
    assert rows[*unrun, "published"]["mean"] == "61.2600"


def test_every_method_looks_the_same_in_every_kind_of_figure(folder: Path) -> None:
    composed = compose(database(), Request(), {"toy": ToyStudy})
    looks = {
        (mark.method, mark.look)
        for document in composed.documents
        for figure in document.figures
        for panel in figure.panels
        for mark in panel.marks
    }
    assert {method for method, _ in looks} == {"local", "fedavg", "fedpub"}
    assert len(looks) == 3
    assert len({look for _, look in looks}) == 3


def test_fedhgn_compares_trimmings_and_lengths_in_figures() -> None:
    assert {each.name for each in FedHGN.experiments if "lines" in each.figures} == {"trimming", "longer"}
    assert {each.name for each in FedSheafHN.experiments if "lines" in each.figures} == {
        "ablation",
        "collaboration_gnn",
    }


def test_the_pareto_front_by_brute_force() -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        costs, means = (pd.Series(random.integers(0, 6, 8).astype(float)) for _ in range(2))
        best = []
        for cost, mean in zip(costs, means, strict=True):
            others = [pair for pair in zip(costs, means, strict=True) if pair != (cost, mean)]
            best.append(not any(other <= cost and better >= mean for other, better in others))
        assert pareto_front(costs, means) == [int(good) for good in best]
