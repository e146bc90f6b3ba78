"""Every number of a table with its verdict, of runs in memory, against numbers worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from stored_runs import CORA, MemoryStore
from study_cells import plan_of, shown
from toy_study import PlannedToy, ToyStudy

from bench.engine import NUMERICS
from bench.engine.methods import METHODS
from bench.engine.result import Code
from bench.frames.graded_cells import collect
from bench.frames.stored_runs import UsualRuns
from bench.grids import load_grid
from bench.report.tables import document_of
from bench.reports.fedhgn import FedHGN
from bench.resolve import resolve
from bench.spec import Protocol, RunSpec
from bench.store.tables import Tables
from bench.studies.experiment import PlannedCell
from bench.studies.published import published
from bench.studies.settings import Column, settings_of
from bench.studies.study import Study

CORACA = {"dataset": "coraca", "scenario": "label-dirichlet"}


def usual(method: str, **hyper: float) -> UsualRuns:
    """What is usual on Cora with ten clients: two seeds of a method."""
    spec = RunSpec(
        dataset="cora", scenario="s", clients=1, method="m", seed=0, protocol=CORA, hyper=dict(hyper)
    )
    planned = PlannedCell(settings_of(spec), (0, 1), cell="usual", grid=load_grid("quickstart"))
    return {("cora", "non-overlapping", 10, method): planned}


def twice(database: MemoryStore, method: str, correct: list[Any], **options: Any) -> None:
    """Add runs of seeds 0 and 1 that have the same counts."""
    for seed in (0, 1):
        database.add(method, seed, correct, **options)


def board(
    database: Tables,
    usual_runs: UsualRuns | None = None,
    study: type[Study] = ToyStudy,
    name: str = "table1",
) -> pd.DataFrame:
    """The cells of a main table."""
    plans = {study.name: [plan_of(study, name)]}
    return collect(database, [study()], plans=plans, usual_runs=usual_runs).cells


def find(cells: pd.DataFrame, method: str, **wanted: str | int) -> list[Any]:
    """Cells of a method on Cora with ten clients beside the main published table, under the primary reading,
    unless named.
    """
    wanted = {
        "method": method,
        "dataset": "cora",
        "scenario": "non-overlapping",
        "clients": 10,
        "table": "Table 1",
        "stage": "trained",
        "rule": "best_val",
        **wanted,
    }
    for column, value in wanted.items():
        cells = cells[cells[column] == value]
    return list(cells.itertuples())


def one(cells: pd.DataFrame, method: str, **wanted: str | int) -> Any:
    (cell,) = find(cells, method, **wanted)
    return cell


def test_mean_over_clients_then_sample_std_over_seeds() -> None:
    database = MemoryStore()
    database.add("local", 0, [60, 80])  # 70 %
    database.add("local", 1, [70, 76])  # 73 %
    database.add("local", 2, [71, 72])  # 71.5 %
    database.add("fedper", 0, [50, 100, 0], samples=[100, 100, 0])
    cells = board(database)
    cell = one(cells, "local")
    assert cell.n == 3
    assert cell.mean == pytest.approx(71.5)
    assert cell.std == pytest.approx(1.5)  # sqrt((1.5² + 1.5² + 0²) / 2)
    assert one(cells, "fedper").mean == pytest.approx(75)  # a client without samples has no say


def test_average_over_clients_ignores_their_sizes_and_samples_does_not() -> None:
    database = MemoryStore()
    twice(database, "local", [10, 90], samples=[10, 190])  # 100 % of 10, 47.37 % of 190
    protocol = Protocol(rounds=200, local_epochs=3, split=(10, 20, 40))
    twice(database, "local_hgnn", [10, 90], samples=[10, 190], clients=3, protocol=protocol, **CORACA)
    assert one(board(database), "local").mean == pytest.approx((100 + 100 * 90 / 190) / 2)
    cells = board(database, study=FedHGN, name="table2")
    pooled = cells[
        (cells["method"] == "local_hgnn") & (cells["rule"] == "client_best_val") & (cells["n"] > 0)
    ]
    assert pooled["mean"].tolist() == [pytest.approx(100 * 100 / 200)]


def test_readings_and_lines_of_one_stage_are_read_from_their_own_stage_and_rule() -> None:
    database = MemoryStore()
    twice(database, "fedavg", [[72, 76], [70, 74]], received=[[0, 0], [40, 44]])
    cells = board(database)
    means = [
        one(cells, "fedavg", stage=stage, rule=rule).mean
        for stage, rule in (("trained", "best_val"), ("trained", "best_test"), ("received", "best_val"))
    ]
    assert means == pytest.approx([72.0, 74.0, 42.0])
    assert one(cells, "fedavg_ft").mean == 72.0  # FedAvg's own runs, after training
    assert find(cells, "fedavg_ft", stage="received") == []


def test_cells_that_older_numbers_went_into_say_so() -> None:
    database = MemoryStore()
    fedavg, fggp = (METHODS.named(name).numerics for name in ("fedavg", "fggp"))
    for seed in (0, 1):
        database.add("local", seed, [70, 74])
        database.add("fedavg", seed, [70, 74], code=Code(fedavg, NUMERICS - seed, "s"))
        database.add("fggp", seed, [70, 74], code=Code(fggp - 1, NUMERICS - 1, "s"))
    database.add("fedper", 0, None, state="failed", reason="x", code=Code(0, NUMERICS, "s"))
    lines = document_of(shown(ToyStudy, "table1", database)).fine_print
    assert "Older numbers, which a sweep makes again: FGGP, FedAvg." in lines


def test_every_published_cell_is_there_with_the_reason_why_it_is_missing() -> None:
    database = MemoryStore()
    database.add("local", 0, [72, 72])
    database.add("flow", 0, None, state="failed", reason="ValueError: bad\nmore")
    database.add("flow", 1, None, state="failed", reason="ValueError: bad\nmore")
    database.add("fedper", 0, None, state="diverged", reason="round 7")
    database.add("pfedhn", 0, None, state="oom", reason="out of memory")
    database.add("fedavg", 0, None, dataset="pubmed", state="no_data", reason="ind.pubmed.x is missing")
    cells = board(database)
    assert one(cells, "local").reason == "1 seed: a verdict needs at least two"
    first = (cells["table"] == "Table 1") & (cells["stage"] == "trained") & (cells["rule"] == "best_val")
    reasons = {
        (cell.method, cell.dataset, cell.clients): (cell.verdict, cell.reason)
        for cell in cells[first & (cells["n"] == 0)].itertuples()
    }
    known = {method: reasons[method, "cora", 10] for method in ("flow", "fedper", "pfedhn", "fedprox")}
    assert known == {
        "flow": ("failed", "seed 0: ValueError: bad"),
        "fedper": ("diverged", "seed 0: round 7"),
        "pfedhn": ("oom", "seed 0: out of memory"),
        "fedprox": ("not run", ""),
    }
    assert reasons["fedavg", "pubmed", 10] == ("no data", "seed 0: ind.pubmed.x is missing")
    printed = {
        (value.method, value.dataset, value.clients)
        for value in published("toy", ToyStudy.published)
        if value.table == "Table 1"
    }
    assert len(printed) == 2 * 10 + 5 * 2 + 2
    assert set(reasons) - {("fedavg_ft", "pubmed", 10)} == printed - {("local", "cora", 10)}


def test_runs_of_different_specs_are_never_mixed() -> None:
    database = MemoryStore()
    short, half = (CORA.model_copy(update=other) for other in ({"rounds": 8}, {"participation": 0.5}))
    twice(database, "fedavg", [72, 72], hyper={})
    twice(database, "fedavg", [40, 40], protocol=short)
    twice(database, "fedavg", [72, 72], protocol=half)
    cells = {cell.setting: cell for cell in find(board(database, usual("fedavg")), "fedavg")}
    full, eight = cells[""], cells["protocol.rounds=8"]
    assert (full.mean, eight.mean) == (pytest.approx(72), pytest.approx(40))
    assert (full.verdict, eight.verdict) == ("compatible", "not comparable")
    assert eight.reason == "protocol differs: run with protocol.rounds=8, the paper has protocol.rounds=100"
    some = cells["protocol.participation=0.5"]  # no paper states a share, which means all clients
    assert (some.n, some.verdict) == (2, "not comparable")
    database.add("fedprox", 0, [70], hyper={"mu": 0.1})
    cells = {cell.setting: cell for cell in find(board(database, usual("fedprox", mu=0.01)), "fedprox")}
    verdicts = {setting: cell.verdict for setting, cell in cells.items()}
    assert verdicts == {"": "not run", "method.mu=0.1": "not comparable"}


def on_partition(seed: int) -> dict[str, Any]:
    """The protocol and the clients of a partition seed."""
    return {"protocol": CORA.model_copy(update={"partition_seed": seed}), "partition_hash": f"clients {seed}"}


def test_spread_between_partitions_widens_the_tolerance() -> None:
    # Published pFedHN on Cora/10: 65.24 ± 0.21 over five runs.
    database = MemoryStore()
    twice(database, "pfedhn", [68, 68], **on_partition(123))

    def judged() -> Any:
        return one(board(database, usual("pfedhn")), "pfedhn", setting="")

    cell = judged()
    assert (cell.verdict, cell.s_d_source, cell.partitions) == ("above", "none", 1)
    twice(database, "pfedhn", [64, 64], **on_partition(1))
    cell = judged()  # two partitions say nothing yet
    assert (cell.verdict, cell.s_d_source, cell.partitions) == ("above", "none", 2)
    database.add("pfedhn", 0, [66, 66], **on_partition(2))
    # Means 68, 64 and 66, and no difference between runs on one of them.
    cell = judged()
    assert (cell.verdict, cell.s_d_source, cell.partitions) == ("compatible", "own", 3)
    assert cell.s_d == pytest.approx(2.0)
    assert (cell.n_p, cell.margin, cell.draws) == (5, 2.0, 2)
    assert cell.difference == pytest.approx(68 - 65.24)
    # The interval is that of the published mean: 0.21 / sqrt(5), four degrees of freedom.
    half = 2.1318 * 0.21 / math.sqrt(5)
    assert cell.low_difference == pytest.approx(68 - 65.24 - half, abs=1e-4)
    # The tolerance is almost that of 2 * s_d² alone, with two degrees of freedom.
    assert cell.tolerance == pytest.approx(4.3027 * math.sqrt(8), rel=0.01)


def test_cells_without_partitions_have_the_pooled_spread_of_their_scenario() -> None:
    database = MemoryStore()
    for method, step in (("local", 3), ("fedper", 4)):
        for place, partition in enumerate((123, 1, 2)):
            twice(database, method, [70 + step * place], **on_partition(partition))
    twice(database, "majority", [20], **on_partition(123))  # trains nothing: has no say
    twice(database, "flow", [70], **on_partition(123))
    twice(database, "flow", [70], scenario="overlapping", clients=30)
    flow = one(board(database), "flow")
    # Local 70, 73, 76: 3 points; FedPer 70, 74, 78: 4.
    assert (flow.s_d_source, flow.s_d) == ("pooled", pytest.approx(math.sqrt((9 + 16) / 2)))
    assert flow.s_d_freedom == 2  # the three partitions of one column
    # No partitions of this scenario were run: all of the study's.
    where = {"scenario": "overlapping", "clients": 30, "table": "Table 2"}
    elsewhere = one(board(database, name="table2"), "flow", **where)
    assert (elsewhere.s_d_source, elsewhere.s_d) == ("pooled", flow.s_d)


class OwnClients(ToyStudy):
    """Cora on the clients of FED-PUB's authors."""

    experiments = tuple(
        replace(table, columns=(Column("cora", "published", 10),)) for table in ToyStudy.experiments
    )


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ((20.0, 40.0, 40.0), ("same clients", [])),
        # Roles that the partition seed deals: means 73, 71 and 72 of runs without a spread of their own.
        ((40.0, 30.0, 30.0), ("split", [pytest.approx(1.0)])),
    ],
)
def test_on_the_papers_own_clients_only_a_dealt_split_explains_anything(
    split: tuple[float, float, float], expected: tuple[str, Any]
) -> None:
    database = MemoryStore()
    for partition in (123, 1, 2):
        place = on_partition(partition)
        place["protocol"] = place["protocol"].model_copy(update={"split": split})
        twice(database, "local", [70 + partition % 4], scenario="published", **place)
    cells = board(database, study=OwnClients)
    is_local = (cells["method"] == "local") & ~cells["setting"].str.contains("partition_seed")
    cell = cells[is_local & cells["primary"] & (cells["n"] > 0)].iloc[:1]
    assert (cell["s_d_source"].item(), cell["s_d"].dropna().tolist()) == expected


def test_a_value_of_unknown_stage_is_judged_by_both_readings() -> None:
    # Published FedAvg: 72.38 ± 2.45.
    same, apart = MemoryStore(), MemoryStore()
    for seed in (0, 1, 2):
        same.add("fedavg", seed, [90, 90])
        apart.add("fedavg", seed, [90, 90], received=[72, 72])
    assert one(board(same), "fedavg").verdict == "above"
    cells = board(apart)
    for stage in ("trained", "received"):
        cell = one(cells, "fedavg", stage=stage)
        assert cell.verdict == "not comparable"
        assert {"trained above", "received compatible"} <= {*cell.reason.split(": ")[1].split(", ")}
        assert pd.notna(cell.low_difference)
        assert cell.difference == pytest.approx(cell.mean - 72.38)


def test_the_majority_class_on_the_same_clients_tells_what_is_uninformative() -> None:
    # Published FedPer: 65.24 ± 1.19; tolerance above one point, so that 66 is compatible.
    database = MemoryStore()
    for seed, right in enumerate((64, 66, 68)):
        database.add("fedper", seed, [right])
        database.add("majority", seed, [67], partition_hash="others")
    assert one(board(database), "fedper").verdict == "compatible"
    database.add("majority", 3, [67])
    cell = one(board(database), "fedper")
    assert (cell.verdict, cell.control) == ("uninformative", 67.0)


def test_a_caption_names_imported_bundles_and_whether_they_were_verified() -> None:
    database = MemoryStore()
    for seed, bundle in enumerate(("", "theirs", "theirs")):
        database.add("local", seed, [80] * 10, bundle=bundle)
    lines = document_of(shown(ToyStudy, "table1", database)).fine_print
    assert "Imported: theirs (unverified)." in lines


def test_seeds_that_nobody_planned_change_no_grade_once_all_planned_ones_are_there() -> None:
    database = MemoryStore()
    spec = resolve("cora", "non-overlapping", 10, "local", 0)
    for seed in (0, 1, 2, 3, 7):
        database.add_run(spec.model_copy(update={"seed": seed}), [70 + seed])
    assert one(board(database, study=PlannedToy), "local").n == 5
    database.add_run(spec.model_copy(update={"seed": 4}), [74])
    local = one(board(database, study=PlannedToy), "local")
    assert (local.n, local.mean) == (5, pytest.approx(72.0))  # of 70 to 74
