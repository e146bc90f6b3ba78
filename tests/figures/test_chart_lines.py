"""Figures of lines that share a method: each shows its own runs, under its own name and in its own look."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pandas as pd
import pytest
from stored_runs import MemoryStore
from study_cells import cells_in

from bench.figures import style
from bench.figures.charts import figures
from bench.figures.layout import Figure
from bench.grids import load_grid, plan
from bench.reports.fedsheafhn import FedSheafHN
from bench.studies.cell_builder import cells_of
from bench.studies.cells import Selection
from bench.studies.experiment import ExperimentPlan, Line
from bench.studies.experiment_files import read
from bench.studies.results import Results
from bench.studies.settings import Reading
from bench.studies.study import Study

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
    (read_experiment,) = read(folder, ["toy"], LINES)
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
        assert spec is not None
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
    for figure in figures(cells, results):
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
    assert looks["Local"] == style.look_of("local")
    assert looks["FED-PUB"] == style.look_of("fedpub")
    assert style.PROPOSED not in {looks["Local"].colour, looks["Blunt"].colour}


def test_a_title_says_of_published_values_where_there_are_some_and_of_which_experiment_it_is() -> None:
    def title(*datasets: str) -> str:
        database = MemoryStore()
        for seed in (0, 1):
            spec = plan(load_grid("ablation"), "cora", "non-overlapping", 20, "fedsheafhn", {}, seed).spec
            assert spec is not None
            database.add_run(spec, [70 + seed])
        results = Results(database, {})
        cells = cells_in(FedSheafHN, "ablation", results, Selection(datasets=frozenset(datasets)))
        (figure,) = figures(cells, results)
        kinds = {kind for panel in figure.panels for kind in panel.data["kind"]}
        assert ("published" in figure.title) == ("published" in kinds)
        return figure.title

    for text in (title("cora"), title("cora", "ogbn-arxiv")):
        assert "ablation" in text
        assert "2 seeds" in text
    assert title("cora") != title("cora", "ogbn-arxiv")
