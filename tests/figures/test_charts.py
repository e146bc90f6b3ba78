"""The figures of an experiment: which frames they show, and in how many files."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from stored_runs import CORA, MemoryStore
from study_cells import figures_of
from toy_study import PlannedToy, ToyStudy

from bench.figures import style
from bench.figures.charts import DRAWINGS
from bench.figures.panels import Figure
from bench.grids import load_grid, plan
from bench.reports.fedsheafhn import FedSheafHN
from bench.spec import RunSpec
from bench.studies.experiment import Figure as FigureName
from bench.studies.experiment import Line, usual_cell
from bench.studies.experiment import read as experiments_in
from bench.studies.settings import Reading
from bench.studies.study import Study

Kinds = dict[str, list[Figure]]


def database() -> MemoryStore:
    """Local and two more methods on Cora with 10 and 20 clients, hand-made."""
    made = MemoryStore()
    for seed in (0, 1):
        made.add("local", seed, [70, 80])
        made.add("fedavg", seed, [60, 90 + seed], received=[50 - 2 * seed, 80 - seed])
        made.add("fedpub", seed, [50, 60])
    made.add("fedavg", 2, [10, 20])  # no Local of this seed
    made.add("local", 0, [50, 60], clients=20)
    made.add("local", 1, [52, 62], clients=20)
    made.add("fedala", 0, [60, 70])  # none of the table's own methods
    return made


def kinds_of(figures: list[Figure]) -> Kinds:
    """Figures by the kind that their name says."""
    kinds: Kinds = {}
    for figure in figures:
        kinds.setdefault(figure.name.split("_")[2], []).append(figure)
    return kinds


@pytest.fixture(scope="module")
def toy() -> Kinds:
    """The figures of the toy study's first table."""
    return kinds_of(figures_of(ToyStudy, "table1", database()))


def rows_of(figures: list[Figure]) -> pd.DataFrame:
    """All rows that figures show."""
    return pd.concat([figure.data for figure in figures], ignore_index=True)


def test_differences_of_the_tables_methods_are_paired_by_seed_and_client_and_sorted(toy: Kinds) -> None:
    # Client 0: 60 - 70 in both seeds; client 1: 90 - 80 and 91 - 80. The third seed has no Local.
    (figure,) = toy["differences"]
    rows = rows_of([figure])[["method", "client", "difference"]]
    fedavg, fedpub = [("0", -10.0), ("1", 10.5)], [("0", -20.0), ("1", -20.0)]
    expected = [("fedavg", *each) for each in fedavg] + [("fedpub", *each) for each in fedpub]
    assert list(rows.itertuples(index=False, name=None)) == expected
    assert "(stage trained, rule best_val)" in figure.caption
    assert figure.caption.endswith("Seeds: 0-2.")


def test_clients_of_other_partitions_are_not_averaged() -> None:
    made = MemoryStore()
    for seed, (alone, other) in enumerate([(70, 60), (50, 80)]):
        for method, right in (("local", alone), ("fedpub", other)):
            made.add(
                method,
                seed,
                [right],
                protocol=CORA.model_copy(update={"partition_seed": seed}),
                partition_hash=f"{seed:064d}",
            )
    usual = {}
    for spec in map(RunSpec.model_validate_json, made.runs()["spec"]):
        where = ("cora", "non-overlapping", 10, spec.method)
        usual[where] = usual_cell(spec, True, load_grid(PlannedToy.grids[0]))
    kinds = kinds_of(figures_of(ToyStudy, "table1", made, usual=usual))
    found = rows_of(kinds["differences"])
    assert found["client"].tolist() == ["0 of seed 0", "0 of seed 1"]
    assert found["difference"].tolist() == [-10.0, 30.0]


def test_lines_of_an_experiment_stand_beside_the_published_ones() -> None:
    made = MemoryStore()
    for seed in (0, 1):
        for where in (("cora", "non-overlapping", 20), ("ogbn-arxiv", "overlapping", 30)):
            spec = plan(load_grid("ablation"), *where, "fedsheafhn", {}, seed).spec
            made.add_run(spec, [70 + seed])
    figures = figures_of(FedSheafHN, "ablation", made)
    rows = rows_of(figures).set_index(["dataset", "scenario", "method", "kind"])
    whole = ("ogbn-arxiv", "overlapping", "+ Dynamic embedding")
    measured, published = rows.loc[(*whole, "measured")], rows.loc[(*whole, "published")]
    assert measured[["n", "mean", "std"]].tolist() == pytest.approx([2, 70.5, 0.5**0.5])
    assert measured[["low", "high"]].isna().all()  # two seeds have no interval
    assert published["mean"] == 67.89  # as printed in Table 4
    assert np.isnan(published["std"])
    assert ("cora", "non-overlapping", "+ Dynamic embedding", "published") not in rows.index
    assert rows["mean"]["ogbn-arxiv", "non-overlapping", "+ Hypernetwork", "published"] == 61.26
    (only_cora,) = figures_of(FedSheafHN, "ablation", made, ("cora",))
    assert "blation" in only_cora.title


GRID = """
title = "Two lines of one method"
seeds = [0, 1]
lines = [
  "local",
  "fedpub",
  { method = "fedpub", title = "Blunt", settings = { "method.tau" = 10.0 }, ranked = false },
]
protocol = { rounds = 3, local_epochs = 1 }

[[columns]]
datasets = ["cora"]
scenario = "non-overlapping"
clients = [4, 6]

[[tables]]
title = "Toy table"
comparisons.none = []
measures = ["accuracy"]
ranked = true
figures = ["convergence", "differences"]
"""

VARIANTS = (("Local", "local", {}), ("FED-PUB", "fedpub", {}), ("Blunt", "fedpub", {"method.tau": 10.0}))


def accuracy(clients: int, label: str, seed: int, step: int) -> int:
    """What every client of a run has right of 100 after a round, another number for each."""
    place = clients // 6 + 2 * [name for name, *_ in VARIANTS].index(label)
    return 10 + 12 * place + 5 * step + seed


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Kinds:
    """The figures of a study with two lines of one method, by kind."""
    folder = tmp_path_factory.mktemp("grid")
    path = folder / "toy.toml"
    path.write_text(GRID, encoding="utf-8")
    study_lines = (Line("local", "Local"), Line("fedpub", "FED-PUB"))
    (experiment,) = experiments_in(folder, ["toy"], study_lines)
    experiment = replace(experiment, grid=str(path))

    class Toy(Study):
        name = "toy"
        title = "Toy"
        grids = ()
        lines = study_lines
        experiments = (experiment,)
        primary = Reading("trained", "last")
        proposed = "fedpub"

    made = MemoryStore()
    for clients, (label, method, settings), seed in product((4, 6), VARIANTS, (0, 1)):
        place = ("cora", "non-overlapping", clients, method)
        spec = plan(load_grid(str(path)), *place, settings, seed).spec
        steps = [accuracy(clients, label, seed, step) for step in range(3)]
        made.add_run(spec, [[step] * clients for step in steps])
    kinds = kinds_of(figures_of(Toy, experiment.name, made))
    assert kinds.keys() == set(experiment.figures)
    return kinds


def test_every_line_of_a_figure_shows_its_own_runs_alone(drawn: Kinds) -> None:
    for clients, (label, *_) in product((4, 6), VARIANTS):
        rows = {
            kind: figure.data[(figure.data["method"] == method) & (figure.data["clients"] == clients)]
            for kind, (figure,) in drawn.items()
            for method, look in figure.looks.items()
            if look.label == label
        }
        means = [sum(accuracy(clients, label, seed, step) for seed in (0, 1)) / 2 for step in range(3)]
        alone = sum(accuracy(clients, "Local", seed, 2) for seed in (0, 1)) / 2
        curve = rows["convergence"]
        assert curve[["clients", "round", "n"]].to_numpy().tolist() == [[clients, n, 2] for n in (1, 2, 3)]
        assert curve["mean"].tolist() == pytest.approx(means)
        if label != "Local":
            assert rows["differences"]["difference"].tolist() == pytest.approx([means[-1] - alone] * clients)


def test_a_line_has_one_look_in_all_figures_and_that_of_its_method_where_it_is_plain(drawn: Kinds) -> None:
    every = [figure.looks for figures in drawn.values() for figure in figures]
    pairs = {(look.label, look) for looks in every for look in looks.values()}
    looks = dict(pairs)
    assert len(pairs) == len(looks) == len(set(looks.values())) == 3
    assert looks["Local"] == style.look_of("local", Study)
    assert looks["FED-PUB"].colour == style.PROPOSED
    assert style.PROPOSED not in {looks["Local"].colour, looks["Blunt"].colour}


def test_every_figure_that_an_experiment_may_name_is_drawn() -> None:
    assert tuple(DRAWINGS) == get_args(FigureName)
