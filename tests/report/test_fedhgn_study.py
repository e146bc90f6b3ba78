"""The FedHGN study: its experiments' plans, what they measure, and which value stands beside which row."""

from typing import Any

import numpy as np
import pytest
from fake_database import FakeDatabase

from bench.grids import expand, load_grid
from bench.report.cells import Cell, Selection
from bench.report.expected import planned
from bench.report.experiment import Experiment, Plan
from bench.report.experiment_figures import figures
from bench.report.outcome import Outcome, outcome
from bench.report.published import published
from bench.report.results import Results
from bench.report.settings import Column
from bench.reports.fedhgn import FedHGN
from bench.spec import RunSpec

STUDY = FedHGN()
BY_NAME = {experiment.name: experiment for experiment in STUDY.experiments}
CORACA = Column("coraca", "label-dirichlet", 3)


def spec(grid: str, method: str, seed: int, column: Column = CORACA, **hyper: Any) -> RunSpec:
    found = [
        each.spec
        for each in expand(load_grid(grid))
        if each.spec
        and each.names == (column.dataset, column.scenario, column.clients, method, seed)
        and all(each.spec.hyper.get(key) == value for key, value in hyper.items())
    ]
    (only,) = found
    return only


def out(name: str, database: FakeDatabase) -> Outcome:
    return outcome(STUDY, Plan(BY_NAME[name]), Results(database, {}), Selection())


def cells(found: Outcome, title: str, column: Column = CORACA) -> dict[str, Cell]:
    return {
        measure.name: each
        for (where, line, _, measure), each in found.cells.items()
        if where == column and found.titles[line] == title
    }


def mean(cell: Cell) -> float:
    assert cell.measured is not None
    return cell.measured.mean


@pytest.mark.parametrize("experiment", STUDY.experiments, ids=lambda each: each.name)
def test_lines_and_points_show_exactly_the_runs_of_the_grid(experiment: Experiment) -> None:
    plan = Plan(experiment)
    runs = {digest for each in plan.runs.values() for digest in each.hashes}
    assert runs == {each.spec.hash for each in expand(load_grid(experiment.grid)) if each.spec}
    assert {line for _, line, _ in plan.runs} == set(plan.lines)


def test_every_published_accuracy_has_a_planned_cell_beside_it() -> None:
    boards = STUDY.boards(Results(FakeDatabase(), planned(STUDY.grids)), Selection())
    beside = {
        (cell.target.table, cell.target.dataset, cell.target.clients, cell.target.method)
        for board in boards
        for cell in board.cells.values()
        if cell.target and cell.setting == ""
    }
    wanted = {
        (value.table, value.dataset, value.clients, value.method)
        for value in published("fedhgn")
        if value.metric == "accuracy" and value.table in ("Table 2", "Table 3")
    }
    assert len(wanted) == 4 * 13 + 3 * 14
    assert beside == wanted


@pytest.mark.parametrize(
    ("grid", "dataset", "count"),
    [
        # Three client counts, twenty seeds: Local and FedHGN as released, both completed, FedHGN as worded.
        ("fedhgn_trimming", "coraca", 3 * 20 * 5),
        # Three client counts, ten seeds: FedHGN as worded and completed, under the released reading.
        ("fedhgn_longer", "dblp4k", 3 * 10 * 2),
    ],
)
def test_other_grids_share_their_runs_with_the_main_table(grid: str, dataset: str, count: int) -> None:
    main, other = (
        {each.spec.hash for each in expand(load_grid(name)) if each.spec and each.dataset == dataset}
        for name in ("fedhgn_tables", grid)
    )
    assert len(main & other) == count


def test_cost_is_split_by_layer_and_coding() -> None:
    database = FakeDatabase()
    for seed, more in ((0, 0), (1, 2_000_000)):
        exchanged = np.array([[[1e6, 3e6], [5e5, 2e6]], [[1e6, 3e6 + more], [1e6, 3e6]]])
        database.add(
            "",
            0,
            [60, 60, 60],
            spec=spec("fedhgn_cost", "fedhgn_hc", seed),
            bytes_up=30_000_000,
            bytes_down=40_000_000,
            artefacts={"exchanged_bytes": exchanged},
        )
    database.add("", 0, [50, 50, 50], spec=spec("fedhgn_cost", "fedhgn", 0), bytes_up=10_000_000)
    outcome_ = out("cost", database)
    without = {name: mean(cell) for name, cell in cells(outcome_, "FedHGN w/o HC, released").items()}
    assert without.pop("total_megabytes") == 10
    assert without.pop("accuracy") == 50
    assert set(without.values()) == {0.0}
    row = cells(outcome_, "FedHGN with HC")
    measured = {name: mean(cell) for name, cell in row.items()}
    assert measured == pytest.approx(
        {
            "accuracy": 60,
            "total_megabytes": 70,
            "layer1_dense": 4,
            "layer1_coded": 2.5,
            "layer2_dense": 5,
            "layer2_coded": 4,
        }
    )


def test_exposure_is_in_percent_of_the_border_nodes() -> None:
    database = FakeDatabase()
    database.add(
        "",
        0,
        [50, 50, 50],
        spec=spec("fedhgn_privacy", "fedhgn_hc", 0, least_upload=1),
        artefacts={"exposure": [200, 100, 150, 10, 40, 55]},
    )
    row = cells(out("privacy", database), "every part sent")
    measured = {name: mean(cell) for name, cell in row.items()}
    assert measured == pytest.approx(
        {"accuracy": 50, "alone": 50, "recoverable": 75, "recoverable_from_sums": 5, "peer": 20}
    )


def test_convergence_counts_local_steps() -> None:
    database = FakeDatabase()
    made = spec("fedhgn_convergence", "fedhgn", 0, Column("coraca", "label-dirichlet", 6))
    curve = np.arange(600 * 6).reshape(600, 6) % 100
    database.add("", 0, [50] * 6, spec=made, curve=curve.tolist())
    (figure,) = figures(STUDY, out("convergence", database), Results(database, {}))
    ((drawn,),) = [panel.curves for panel in figure.panels]
    np.testing.assert_array_equal(drawn.x, np.arange(1, 601))


def test_the_stand_in_is_what_the_paper_prints_as_fedsage_plus() -> None:
    database = FakeDatabase()
    column = Column("cora-whole", "label-dirichlet", 3)
    for seed in (0, 1):
        database.add("", 0, [81] * 3, spec=spec("fedhgn_simple", "fedsage_plus_standin", seed, column))
        database.add("", 0, [70] * 3, spec=spec("fedhgn_simple", "fedsage_plus", seed, column))
    boards = STUDY.boards(Results(database, planned(STUDY.grids)), Selection())
    found = {
        cell.method: (cell.verdict, cell.target and cell.target.mean)
        for board in boards
        for cell in board.cells.values()
        if (cell.column, cell.stage, cell.rule) == (column, "trained", "client_best_val")
    }
    assert found["fedsage_plus_standin"] == ("reproduced", pytest.approx(81.2))
    assert found["fedsage_plus"] == ("not published", None)
