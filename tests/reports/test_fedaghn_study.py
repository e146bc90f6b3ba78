"""FedAGHN's study: its collaboration weights, its published cells, and the runs of its grids."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from stored_runs import MemoryStore
from study_cells import cells_of, one, printed_beside, unrelated

from bench.frames.graded_cells import collect
from bench.grids import expand, load_grid
from bench.report.score import judged_once
from bench.reports.fedaghn import FedAGHN
from bench.reports.fedaghn.measures import best_rounds, shares, stage_round
from bench.store.tables import Tables
from bench.studies.members import Members, client_rows
from bench.studies.published import published
from bench.studies.settings import Column

GROUPS = np.arange(20) // 4
TOGETHER = (GROUPS[:, None] == GROUPS[None, :]).astype(float)


def test_weights_are_averaged_over_layers_and_obey_the_identity() -> None:
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(20), (6, 20))
    found = shares(weights, GROUPS)
    mean = weights.mean(axis=0)
    assert found["self"] == pytest.approx(np.trace(mean) / 20)
    assert found["similar"] == pytest.approx((mean * TOGETHER).sum() / 60 - np.trace(mean) / 60)
    assert found["self"] + 3 * found["similar"] + 16 * found["other"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("best", "rounds"), [(36, (1, 6, 18, 36)), (11, (1, 1, 5, 11)), (1, (1, 1, 1, 1)), (0, (1, 1, 1, 1))]
)
def test_stages_are_a_sixth_and_half_of_the_best_round_and_one_at_least(
    best: int, rounds: tuple[int, ...]
) -> None:
    assert tuple(stage_round(stage, best) for stage in ("First", "Prior", "Middle", "Final")) == rounds


def layered(rounds: int, layers: int) -> np.ndarray:
    """Weights by round and layer whose self weight is ``round`` hundredths in the first layer and one
    hundredth more in every further one, the rest spread evenly over the others.
    """
    own = (np.arange(rounds)[:, None] + np.arange(layers)[None, :]) / 100
    eye = np.eye(20)
    return own[..., None, None] * eye + (1 - own[..., None, None]) * (1 - eye) / 19


def database(best: int, weights: np.ndarray, alike: Sequence[int] = (12,)) -> MemoryStore:
    """One run of FedAGHN in the reduced case study whose best validation round is ``best``.

    On the test split it has as many right after the rounds that are ``alike``, and fewer after all others.
    """
    made = MemoryStore()
    spec = next(
        run.spec
        for run in expand(load_grid("case_study_reduced"))
        if (run.method, run.spec.seed) == ("fedaghn", 0)
    )
    rows = np.arange(len(weights))[:, None] + np.zeros((1, 20), int)
    made.add_run(
        spec,
        np.where(np.isin(rows, alike), 50, 10),
        received=np.full_like(rows, 10),
        validation=np.where(rows < best, 10, 40),
        artefacts={"collaboration_by_round": weights},
    )
    return made


def rounds_read(source: Tables, stage: str) -> list[int]:
    rows = pd.DataFrame({"run": source.runs()["id"]})
    read = client_rows(source, rows["run"], "accuracy", stage, "test", "best_val")
    return best_rounds(Members(rows, source, "accuracy", stage, "best_val", read, {})).tolist()


@pytest.mark.parametrize(("alike", "found"), [((12,), [12]), ((3, 12), [])])
def test_the_best_round_is_the_only_one_with_its_counts(alike: tuple[int, ...], found: list[int]) -> None:
    source = database(12, layered(20, 6), alike)
    assert rounds_read(source, "trained") == found
    assert rounds_read(source, "received") == []  # all rounds have the same counts


def test_weights_are_read_by_stage_and_by_depth() -> None:
    cells = cells_of(FedAGHN, "collaboration_weights_reduced", database(12, layered(20, 6)))
    cells = cells[(cells["method"] == "fedaghn") & (cells["comparison_number"] == 0)]
    for point, round in (("First", 1), ("Prior", 2), ("Middle", 6), ("Final", 12)):
        # Self is round + layer hundredths; means over all, the first three and the last three layers.
        for name, depth in (("self", 2.5), ("self_shallow", 1.0), ("self_deep", 4.0)):
            cell = one(cells, point=point, measure=name)
            assert cell.mean == pytest.approx((round + depth) / 100, abs=1e-6)
            assert cell.printed >= 0
            assert cell.verdict == "not comparable"
        assert one(cells, point=point, measure="stage_round").mean == round


def test_a_method_of_one_matrix_has_it_in_every_layer() -> None:
    weights = np.broadcast_to(TOGETHER / 4, (20, 20, 20))
    cells = cells_of(FedAGHN, "collaboration_weights_reduced", database(12, weights))
    found = cells[(cells["point"] == "Final") & (cells["n"] > 0)].set_index("measure")["mean"]
    for layers in ("", "_shallow", "_deep"):
        assert found[f"self{layers}"] == found[f"similar{layers}"] == pytest.approx(0.25)
        assert found[f"other{layers}"] == pytest.approx(0.0)


def test_every_published_value_stands_beside_a_cell_of_the_whole_protocol() -> None:
    names = [experiment.name for experiment in FedAGHN.experiments if not experiment.reduced]
    cells = collect(unrelated(), [FedAGHN()]).cells
    assert printed_beside(cells[cells["document"].isin(names)], FedAGHN) == set(published("fedaghn"))


def test_planned_rounds_are_those_that_the_paper_states() -> None:
    study = FedAGHN()
    for cell in cells_of(FedAGHN, "table1").dropna(subset="printed").itertuples():
        column = Column(cell.dataset, cell.scenario, cell.clients)
        stated = study.paper_protocol(published(cell.paper)[cell.printed], column)
        assert {key: cell.settings[key] for key in stated} == stated, cell.line


def test_reduced_runs_measure_no_published_value() -> None:
    cells = collect(database(12, layered(20, 6)), [FedAGHN()]).cells
    reduced = cells[cells["document"] == "collaboration_weights_reduced"]
    assert (reduced["printed"].notna() & (reduced["n"] > 0)).any()
    assert not judged_once(FedAGHN(), cells)["n"].any()
