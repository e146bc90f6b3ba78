"""The FedHGN study: its experiments' plans, what they measure, and which value stands beside which row."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import study_cells
from stored_runs import MemoryStore
from study_cells import cells_of, figures_of, one, printed_beside, unrelated

from bench.frames.graded_cells import collect
from bench.reports.fedhgn import FedHGN
from bench.spec import RunSpec
from bench.studies.experiment import Experiment
from bench.studies.measures import TEST
from bench.studies.published import published
from bench.studies.settings import Column

STUDY = FedHGN()
CORACA = Column("coraca", "label-dirichlet", 3)
CORA = Column("cora-whole", "label-dirichlet", 3)


def spec(grid: str, method: str, seed: int, column: Column = CORACA, **hyper: Any) -> RunSpec:
    return study_cells.spec(grid, method, seed, column, **hyper)


def means(found: pd.DataFrame, line: str) -> dict[str, float]:
    """Measure -> mean of a line on CoraCA."""
    here = found[(found["dataset"] == "coraca") & (found["clients"] == 3) & (found["line"] == line)]
    return dict(zip(here["measure"], here["mean"], strict=True))


def test_every_published_accuracy_has_a_planned_cell_beside_it() -> None:
    cells = collect(unrelated(), [STUDY]).cells
    in_main_tables = cells["document"].isin([table.name for table in STUDY.experiments if table.competes])
    beside = printed_beside(cells[in_main_tables & (cells["setting"] == "")], FedHGN)
    wanted = {
        value
        for value in published("fedhgn")
        if value.metric == "accuracy" and value.table in ("Table 2", "Table 3")
    }
    assert len(wanted) == 4 * 13 + 3 * 14
    assert beside == wanted


def test_cost_is_split_by_layer_and_coding() -> None:
    database = MemoryStore()
    for seed, more in ((0, 0), (1, 2_000_000)):
        exchanged = np.array([[[1e6, 3e6], [5e5, 2e6]], [[1e6, 3e6 + more], [1e6, 3e6]]])
        database.add_run(
            spec("fedhgn_cost", "fedhgn_hc", seed),
            [60, 60, 60],
            bytes_up=30_000_000,
            bytes_down=40_000_000,
            artefacts={"exchanged_bytes": exchanged},
        )
    database.add_run(spec("fedhgn_cost", "fedhgn", 0), [50, 50, 50], bytes_up=10_000_000)
    cells = cells_of(FedHGN, "cost", database)
    without = means(cells, "FedHGN w/o HC, released")
    assert without.pop("total_megabytes") == without.pop("total_megabytes_coded") == 10
    assert without.pop("accuracy") == 50
    assert set(without.values()) == {0.0}
    assert means(cells, "FedHGN with HC") == pytest.approx(
        {
            "accuracy": 60,
            "total_megabytes": 70,
            "total_megabytes_coded": 67.5,  # 1.5 and 3.5 less than dense
            "layer1_dense": 4,
            "layer1_coded": 2.5,
            "layer2_dense": 5,
            "layer2_coded": 4,
        }
    )


def test_exposure_is_in_percent_of_the_border_nodes() -> None:
    """An older audit lacks only what was not measured then."""
    database = MemoryStore()
    for seed, exposure in ((0, [200, 100, 150, 10, 40, 55]), (1, [200, 104, 150, 10, 40, 55, 120])):
        made = spec("fedhgn_privacy", "fedhgn_hc", seed, least_upload=1)
        database.add_run(made, [50, 50, 50], artefacts={"exposure": exposure})
    assert means(cells_of(FedHGN, "privacy", database), "HC, every part sent") == pytest.approx(
        {
            "accuracy": 50,
            "alone": 51,
            "recoverable": 75,
            "recoverable_from_sums": 5,
            "peer": 20,
            "pairs": 55,
            "recoverable_by_peers": 60,
        }
    )


def test_a_model_of_all_data_is_drawn_beside_the_others_as_far_as_they_go() -> None:
    database = MemoryStore()
    for method, clients, rows in (("fedhgn", 6, 600), ("global_hgnn", 1, 1800)):
        made = spec("fedhgn_convergence", method, 0, Column("coraca", "label-dirichlet", clients))
        database.add_run(made, [[50] * clients] * rows)
    (figure,) = figures_of(FedHGN, "convergence", database)
    assert len(figure.panels) == 1
    assert figure.data.groupby("method").size().to_dict() == {"fedhgn": 600, "global_hgnn": 600}
    own = figure.data[figure.data["method"] == "fedhgn"]
    assert own["round"].iloc[[0, 2, -1]].tolist() == [pytest.approx(1 / 3), 1, 200]  # an evaluation an epoch


def test_the_table_of_repeats_stands_beside_every_value_of_dblp4k() -> None:
    """Global is printed once, for the whole data set."""
    beside = printed_beside(cells_of(FedHGN, "repeats"), FedHGN)
    wanted = {value for value in published("fedhgn") if (value.table, value.dataset) == ("Table 2", "dblp4k")}
    assert len(wanted) == 13
    assert beside == wanted
    database = MemoryStore()
    where = Column("dblp4k-repeats", "label-dirichlet", 1)
    for seed, right in ((0, 84), (1, 86)):
        database.add_run(spec("fedhgn_repeats", "global_hgnn", seed, where), [right])
    cells = cells_of(FedHGN, "repeats", database)
    cell = one(cells, line="Global HGNN", dataset="dblp4k-repeats", clients=1)
    assert (cell.verdict, cell.difference) == ("compatible", pytest.approx(85 - 85.15))


def test_experiments_name_methods_and_data_sets_as_the_main_tables_do() -> None:
    """The published name of a method is its row's; data sets have their titles."""
    column = Column("cora-whole", "label-dirichlet", 3)
    database = MemoryStore()
    methods = "fedsage_plus_standin", "fedsage_plus", "fedhgn"
    for seed in (0, 1):
        for method in methods:
            database.add_run(spec("fedhgn_simple", method, seed, column), [81] * 3)

    def beside(table: str) -> dict[str, Any]:
        simple = Experiment(
            name="simple",
            title="simple",
            comparisons={"simple": (("fedhgn", table),)},
            grid="fedhgn_simple",
            measures=(TEST,),
            columns=(column,),
            lines=tuple(line for line in STUDY.lines if line.method in methods),
        )
        cells = collect(database, [STUDY], plans={"fedhgn": [simple]}).cells
        return {cell.method: cell for cell in cells[cells["n"] > 0].itertuples()}

    third = beside("Table 3")
    assert third["fedsage_plus_standin"].published_mean == pytest.approx(81.2)
    # The paper has no generator.
    assert np.isnan(third["fedsage_plus"].published_mean)
    assert third["fedsage_plus"].reason == "2 of 20 planned seeds"
    assert beside("Table 2")["fedhgn"].no_grade == "published on 20News, CoraCA, DBLP4k, IMDB4k"
