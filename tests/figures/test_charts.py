"""The figures of an experiment and of what clients hold: which frames they show, and in how many files."""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import product
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from stored_runs import CORA, MemoryStore
from study_cells import cells_in, csv_rows, report_of
from toy_study import ToyStudy

from bench.data import Images
from bench.dataset import DATASETS
from bench.errors import RequestError
from bench.federation.prepared import Prepared, prepare
from bench.figures import style
from bench.figures.charts import DRAWINGS, class_figure, figures, pareto_front
from bench.figures.panels import Figure
from bench.grids import load_grid, plan
from bench.report.report import build
from bench.report.request import Request
from bench.reports.fedhgn import FedHGN
from bench.reports.fedsheafhn import FedSheafHN
from bench.spec import RunSpec
from bench.studies.cell_builder import cells_of
from bench.studies.cells import Selection
from bench.studies.experiment import FIGURES, ExperimentPlan, Line
from bench.studies.experiment_files import read as experiments_in
from bench.studies.planned import PlannedCell
from bench.studies.results import Results
from bench.studies.settings import Column, Reading, settings_of
from bench.studies.study import Study

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


@pytest.mark.slow
def test_unchanged_results_give_byte_identical_files(folder: Path, tmp_path: Path) -> None:
    report_of(database(), tmp_path)
    first, second = (
        {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
        for out in (folder, tmp_path)
    )
    assert first.keys() == second.keys()
    assert [path for path in first if first[path] != second[path]] == []
    assert {path.suffix for path in first} == {".md", ".tex", ".txt", ".csv", ".png", ".html", ".json"}


def test_figures_are_not_blank(folder: Path) -> None:
    for name in ("stages", "clients"):
        pixels = matplotlib.image.imread(folder / f"toy/table1/{name}.png")
        assert len(np.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0)) > 20


def read(folder: Path, kind: str) -> Rows:
    return csv_rows(folder / f"toy/table1/{kind}.csv")


def test_cost_figures_hold_what_a_run_costs_and_the_pareto_front(folder: Path) -> None:
    # FedAvg's means over clients: 75, 75.5, 15.
    found = {row["method"]: row for row in read(folder, "megabytes") if row["clients"] == "10"}
    assert {name: (row["mean"], row["megabytes"], row["front"]) for name, row in found.items()} == {
        "local": ("75.0000", "0.0000", "1"),
        "fedavg": (f"{165.5 / 3:.4f}", "10.0000", "0"),  # the mean of 8, 8 and 14
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


def test_a_main_table_is_drawn_beside_its_published_values_in_the_usual_settings(tmp_path: Path) -> None:
    made = MemoryStore()
    for seed in (0, 1, 2):
        made.add("local", seed, [60])
        made.add("fedavg", seed, [70])
    for seed in (0, 1):  # fewer runs: not the usual setting
        made.add("local", seed, [30], hyper={"rate": 0.5})
    report_of(made, tmp_path, Request())
    found = {(row["method"], row["kind"]): row["mean"] for row in read(tmp_path, "lines")}
    assert {key: mean for key, mean in found.items() if key[1] == "measured"} == {
        ("local", "measured"): "60.0000",
        ("fedavg", "measured"): "70.0000",
        ("fedavg_ft", "measured"): "70.0000",  # reads the same runs
    }
    assert ("local", "published") in found


def test_a_report_of_one_method_draws_what_there_is(tmp_path: Path) -> None:
    made = MemoryStore()
    made.add("fedavg", 0, [50])  # one seed, one client, one evaluation, no cost
    report_of(made, tmp_path, Request(methods=("fedavg",)))
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.png")} == {
        "toy/table1/clients.png",
        "toy/table1/convergence.png",
        "toy/table1/lines.png",
        "toy/table1/stages.png",
    }


def test_lines_of_an_experiment_stand_beside_the_published_ones(tmp_path: Path) -> None:
    made = MemoryStore()
    for seed in (0, 1):
        for where in (("cora", "non-overlapping", 20), ("ogbn-arxiv", "overlapping", 30)):
            spec = plan(load_grid("ablation"), *where, "fedsheafhn", {}, seed).spec
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


def test_fedhgn_compares_trimmings_and_lengths_in_figures() -> None:
    assert {each.name for each in FedHGN.experiments if "lines" in each.figures} == {"trimming", "longer"}
    assert {each.name for each in FedSheafHN.experiments if "lines" in each.figures} == {
        "ablation",
        "collaboration_gnn",
        "released_settings",
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


GRID = """
title = "Two lines of one method"
seeds = [0, 1]
lines = [
  "local",
  "fedpub",
  { method = "fedpub", title = "Blunt", settings = { "method.tau" = 10.0 }, ranked = false },
]

[protocol]
rounds = 3
local_epochs = 1

[[columns]]
datasets = ["cora"]
scenario = "non-overlapping"
clients = [4, 6]

[[tables]]
title = "Toy table"
comparisons = [{ label = "none" }]
measures = ["accuracy"]
ranked = true
figures = ["convergence", "clients", "differences", "stages", "megabytes", "seconds"]
"""

LINES = (Line("local", "Local"), Line("fedpub", "FED-PUB"))

VARIANTS = (("Local", "local", {}), ("FED-PUB", "fedpub", {}), ("Blunt", "fedpub", {"method.tau": 10.0}))

CLIENTS = (4, 6)


def accuracy(clients: int, label: str, seed: int, step: int) -> int:
    """What every client of a run has right of 100 after a round, another number for each."""
    place = CLIENTS.index(clients) + 2 * [name for name, *_ in VARIANTS].index(label)
    return 10 + 12 * place + 5 * step + seed


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Figure]]:
    """The figures of the toy study by kind."""
    folder = tmp_path_factory.mktemp("grid")
    path = folder / "toy.toml"
    path.write_text(GRID, encoding="utf-8")
    (read_experiment,) = experiments_in(folder, ["toy"], LINES)
    experiment = replace(read_experiment, grid=str(path))

    class Toy(Study):
        title = "Toy"
        grids = ()
        lines = LINES
        experiments = (experiment,)
        primary = Reading("trained", "last")
        proposed = "fedpub"

    Toy.name = "toy"
    database = MemoryStore()
    for clients, (label, method, settings), seed in product(CLIENTS, VARIANTS, (0, 1)):
        place = ("cora", "non-overlapping", clients, method)
        spec = plan(load_grid(str(path)), *place, settings, seed).spec
        steps = [accuracy(clients, label, seed, step) for step in range(3)]
        database.add_run(
            spec,
            [[step] * clients for step in steps],
            bytes_up=1_000_000 * steps[-1],
            seconds={"total": float(steps[-1])},
        )
    results = Results(database, {})
    cells = cells_of(Toy(), ExperimentPlan(experiment, LINES), results, Selection())
    kinds: dict[str, list[Figure]] = {}
    for figure in figures(cells):
        kinds.setdefault(figure.name.split("_")[2], []).append(figure)
    assert kinds.keys() == set(experiment.figures)
    return kinds


def by_line(drawn: list[Figure]) -> dict[tuple[int, str], pd.DataFrame]:
    """The rows that a figure's panels draw, by number of clients and the label beside them."""
    return {
        (int(panel.data["clients"].iloc[0]), mark.label): panel.parts[mark.method]
        for figure in drawn
        for panel in figure.panels
        for mark in panel.marks
    }


def test_every_line_of_a_figure_shows_its_own_runs(drawn: dict[str, list[Figure]]) -> None:
    shown = {kind: by_line(parts) for kind, parts in drawn.items()}
    for clients, label in product(CLIENTS, ("Local", "FED-PUB", "Blunt")):
        means = [sum(accuracy(clients, label, seed, step) for seed in (0, 1)) / 2 for step in range(3)]
        alone = sum(accuracy(clients, "Local", seed, 2) for seed in (0, 1)) / 2
        rows = {kind: lines.get((clients, label)) for kind, lines in shown.items()}
        curve = rows["convergence"]
        assert curve[["clients", "round", "n"]].to_numpy().tolist() == [[clients, n, 2] for n in (1, 2, 3)]
        assert curve["mean"].tolist() == pytest.approx(means)
        assert rows["clients"]["value"].tolist() == pytest.approx([means[-1]] * clients)
        assert rows["stages"]["mean"].tolist() == pytest.approx([means[-1]] * 2)
        for cost in ("megabytes", "seconds"):
            assert rows[cost][["mean", cost]].to_numpy().tolist() == [pytest.approx([means[-1]] * 2)]
        if label != "Local":
            assert rows["differences"]["difference"].tolist() == pytest.approx([means[-1] - alone] * clients)


def test_no_place_of_a_line_stands_twice_in_what_is_written_beside_a_figure(
    drawn: dict[str, list[Figure]],
) -> None:
    axes = {"convergence": "round", "clients": "client", "differences": "client", "stages": "kind"}
    for kind, parts in drawn.items():
        rows = pd.concat([panel.data for figure in parts for panel in figure.panels])
        keys = ["dataset", "scenario", "clients", "method", *([axes[kind]] if kind in axes else [])]
        assert not rows.duplicated(keys).any(), kind


def test_a_line_has_one_look_in_all_figures_and_that_of_its_method_where_it_is_plain(
    drawn: dict[str, list[Figure]],
) -> None:
    marks = {
        (mark.label, mark.look)
        for parts in drawn.values()
        for figure in parts
        for panel in figure.panels
        for mark in panel.marks
    }
    looks = dict(marks)
    assert len(marks) == len(looks) == len(set(looks.values())) == 3
    assert looks["Local"] == style.look_of("local", Study)
    assert looks["FED-PUB"].colour == style.PROPOSED
    assert style.PROPOSED not in {looks["Local"].colour, looks["Blunt"].colour}


def test_a_title_says_of_published_values_where_there_are_some_and_of_which_experiment_it_is() -> None:
    def title(*datasets: str) -> str:
        database = MemoryStore()
        for seed in (0, 1):
            spec = plan(load_grid("ablation"), "cora", "non-overlapping", 20, "fedsheafhn", {}, seed).spec
            database.add_run(spec, [70 + seed])
        results = Results(database, {})
        cells = cells_in(FedSheafHN, "ablation", results, Selection(datasets=frozenset(datasets)))
        (figure,) = figures(cells)
        kinds = {kind for panel in figure.panels for kind in panel.data["kind"]}
        assert ("published" in figure.title) == ("published" in kinds)
        return figure.title

    for text in (title("cora"), title("cora", "ogbn-arxiv")):
        assert "ablation" in text
        assert "2 seeds" in text
    assert title("cora") != title("cora", "ogbn-arxiv")


LABELS = np.repeat(np.arange(10), 6000)

# Images of the released code's clients at concentrations 0.1 and 0.5.
RELEASED = {
    "dirichlet0.1-released": "3062 4229 1470 6097 2424 4649 933 443 5794 4254 "
    "1728 2968 3961 4104 1532 3353 3023 362 2990 2624",
    "dirichlet0.5-released": "3337 3402 3559 1892 3363 3068 3186 4262 2007 1887 "
    "4218 1940 3401 1862 4224 3040 3371 3203 3195 1583",
}


def sample() -> Prepared:
    """One image of CIFAR-10, which knows all the others' classes."""
    data = Images(np.zeros((1, 3, 32, 32), np.uint8), LABELS[:1], 10, LABELS, np.zeros(1, np.int64))
    return Prepared(DATASETS.named("cifar10-sample"), data, "", "")


def test_clients_of_a_sample_are_those_of_the_complete_set() -> None:
    figure = class_figure(sample(), tuple(RELEASED), 20)
    for panel, sizes in zip(figure.panels, RELEASED.values(), strict=True):
        counts = panel.data.pivot(index="client", columns="class", values="items")
        assert counts.shape == (20, 10)
        assert counts.sum(axis=1).tolist() == [int(size) for size in sizes.split()]
        assert (counts.sum(axis=0) <= 6000).all()


def test_the_numbers_behind_a_panel_are_all_counts_and_the_largest_is_shared() -> None:
    figure = class_figure(sample(), ("case-study", "pathological"), 20)
    largest = max(panel.data["items"].max() for panel in figure.panels)
    assert {panel.options["most_items"] for panel in figure.panels} == {largest}
    # Two own classes a group: a quarter of 80 % of 6000, and a twentieth of the other 20 %, for each client.
    rows = figure.panels[0].data
    assert len(rows) == 200
    assert set(rows["items"]) == {1200 + 60, 60}


def test_graphs_and_their_scenarios_are_refused() -> None:
    with pytest.raises(RequestError, match="images"):
        class_figure(prepare("cora"), ("non-overlapping",), 10)
    with pytest.raises(RequestError, match="non-overlapping"):
        class_figure(sample(), ("non-overlapping",), 20)


def test_every_figure_that_an_experiment_may_name_is_drawn() -> None:
    assert tuple(DRAWINGS) == FIGURES
