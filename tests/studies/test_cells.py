import math
from pathlib import Path
from typing import Any

import pytest
from stored_runs import CORA, MemoryStore
from study_cells import main_tables, report_of
from toy_study import FOREIGN, PlannedToy, ToyStudy

from bench.engine import NUMERICS
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.grids import Filters, expand, load_grid
from bench.report import tables
from bench.report.notes import notes
from bench.reports.fedhgn import FedHGN
from bench.resolve import resolve
from bench.spec import Protocol, RunSpec
from bench.studies.cells import Cell, Cells, Selection
from bench.studies.frame import frame
from bench.studies.grading import grade_runs
from bench.studies.measures import TEST, CellReading
from bench.studies.planned import PlannedCell, UsualCells, usual_cells
from bench.studies.published import published
from bench.studies.results import Results
from bench.studies.settings import PER_SEED, Column, difference_text, settings_of
from bench.studies.verdicts import PublishedRuns

CORA_10 = Column("cora", "non-overlapping", 10)
CORA_20 = Column("cora", "non-overlapping", 20)


def usual(protocol: Protocol = CORA, **hyper: float) -> PlannedCell:
    spec = RunSpec(
        dataset="cora", scenario="s", clients=1, method="m", seed=0, protocol=protocol, hyper=dict(hyper)
    )
    return PlannedCell(settings_of(spec))


def board(database: MemoryStore, expected: UsualCells | None = None, **selection: frozenset[Any]) -> Cells:
    results = Results(database, expected or {})
    return main_tables(ToyStudy(), results, Selection(**selection))[0]


def find(board: Cells, method: str, column: Column = CORA_10, **wanted: str) -> list[Cell]:
    """Cells of a method beside the main published table, under the primary reading unless named."""
    wanted = {"table": "Table 1", "stage": "trained", "rule": "best_val", **wanted}
    return [
        cell
        for cell in board
        if cell.method == method
        and cell.column == column
        and all(getattr(cell, name) == value for name, value in wanted.items())
    ]


def one(board: Cells, method: str, column: Column = CORA_10, **wanted: str) -> Cell:
    (cell,) = find(board, method, column, **wanted)
    return cell


def test_mean_over_clients_then_sample_std_over_seeds() -> None:
    database = MemoryStore()
    database.add("local", 0, [60, 80])  # 70 %
    database.add("local", 1, [70, 76])  # 73 %
    database.add("local", 2, [71, 72])  # 71.5 %
    measured = one(board(database), "local").measured
    assert measured is not None
    assert measured.n == 3
    assert measured.mean == pytest.approx(71.5)
    assert measured.std == pytest.approx(1.5)  # sqrt((1.5² + 1.5² + 0²) / 2)


def test_average_over_clients_ignores_their_sizes_and_samples_does_not() -> None:
    database = MemoryStore()
    for seed in (0, 1):
        database.add("local", seed, [10, 90], samples=[10, 190])  # 100 % of 10, 47.37 % of 190
        database.add(
            "local_hgnn",
            seed,
            [10, 90],
            samples=[10, 190],
            dataset="coraca",
            scenario="label-dirichlet",
            clients=3,
            protocol=Protocol(rounds=200, local_epochs=3, split=(10, 20, 40)),
        )
    clients = one(board(database), "local").measured
    assert clients is not None
    assert clients.mean == pytest.approx((100 + 100 * 90 / 190) / 2)
    hypergraphs = main_tables(FedHGN(), Results(database, {}), Selection())[0]
    cells = [cell for cell in hypergraphs if cell.method == "local_hgnn" and cell.measured]
    (pooled,) = [cell for cell in cells if cell.rule == "client_best_val"]
    assert pooled.measured is not None
    assert pooled.measured.mean == pytest.approx(100 * 100 / 200)


def test_difference_and_verdict_against_both_versions() -> None:
    # Final: 71.26 ± 0.29; earlier: 79.94, another paper's number.
    database = MemoryStore()
    for seed, right in enumerate((72, 71, 72, 71)):
        database.add("local", seed, [right, right])
    final = one(board(database), "local")
    assert final.difference == pytest.approx(71.5 - 71.26)
    assert (final.verdict, final.reason) == ("reproduced", "")
    earlier = one(board(database), "local", table="earlier Table 1")
    assert earlier.difference == pytest.approx(71.5 - 79.94)
    assert earlier.verdict == "not comparable"
    assert FOREIGN in earlier.reason


def test_the_earlier_version_has_only_its_own_cells() -> None:
    cells = board(one_run())
    assert find(cells, "fedprox") != []
    assert find(cells, "fedprox", table="earlier Table 1") == []


def one_run() -> MemoryStore:
    database = MemoryStore()
    database.add("local", 0, [72, 72])
    return database


def test_other_readings_are_read_from_their_own_stage_and_rule() -> None:
    database = MemoryStore()
    for seed in (0, 1):
        database.add("fedavg", seed, [[72, 76], [70, 74]], received=[[0, 0], [40, 44]])
    cells = board(database)
    means = {
        reading: one(cells, "fedavg", stage=reading[0], rule=reading[1]).measured
        for reading in (("trained", "best_val"), ("trained", "best_test"), ("received", "best_val"))
    }
    assert [round(aggregate.mean, 6) for aggregate in means.values() if aggregate] == [72.0, 74.0, 42.0]


def test_cells_that_older_numbers_went_into_say_so() -> None:
    database = MemoryStore()
    now = METHODS.named("fggp").numerics
    for seed in (0, 1):
        database.add("local", seed, [70, 74])
        database.add("fedavg", seed, [70, 74], engine_numerics=NUMERICS - seed)
        database.add("fggp", seed, [70, 74], method_numerics=now - 1, engine_numerics=NUMERICS - 1)
    database.add("fedper", 0, None, state="failed", reason="x", method_numerics=0)
    cells = board(database, columns=frozenset({CORA_10}))
    older_notes = [note for note in notes(cells) if note.startswith("older numbers")]
    engine = f"engine numerics {NUMERICS - 1}, now {NUMERICS}"
    tail = "; a sweep makes them again)"
    assert older_notes == [
        f"older numbers ({engine}{tail}: FedAvg, FedAvg + fine-tuning (Cora, 10 clients)",
        f"older numbers (method numerics {now - 1}, now {now} and {engine}{tail}: FGGP (Cora, 10 clients)",
    ]


def test_fedavg_ft_reads_fedavgs_own_runs_after_training() -> None:
    database = MemoryStore()
    for seed in (0, 1):
        database.add("fedavg", seed, [70, 74], received=[40, 44])
    cells = board(database)
    assert one(cells, "fedavg_ft").measured == one(cells, "fedavg").measured
    assert find(cells, "fedavg_ft", stage="received") == []


def test_a_method_beyond_the_paper_has_a_row_of_its_own_where_it_was_run() -> None:
    database = MemoryStore()
    database.add("fedsheafhn_released", 0, [80, 82])
    cells = board(database)
    assert [line.method for line in cells.lines][-1] == "fedsheafhn_released"
    assert one(cells, "fedsheafhn_released").verdict == "not published"
    assert find(cells, "fedsheafhn_released", CORA_20) == []


def test_every_published_cell_is_there_with_the_reason_why_it_is_missing() -> None:
    database = one_run()
    database.add("flow", 0, None, state="failed", reason="ValueError: bad\nmore")
    database.add("flow", 1, None, state="failed", reason="ValueError: bad\nmore")
    database.add("fedper", 0, None, state="diverged", reason="round 7")
    database.add("pfedhn", 0, None, state="oom", reason="out of memory")
    database.add("fedavg", 0, None, dataset="pubmed", state="no_data", reason="ind.pubmed.x is missing")
    expected = {
        (CORA_10, "fedprox"): usual(),
    }
    cells = board(database, expected)
    assert one(cells, "local").reason == "1 seed: a verdict needs at least two"
    reasons = {
        (cell.method, cell.column.dataset, cell.column.clients): (cell.verdict, cell.reason)
        for cell in cells
        if cell.measured is None
        and cell.table == "Table 1"
        and (cell.stage, cell.rule) == ("trained", "best_val")
    }
    assert reasons["flow", "cora", 10] == ("failed", "seed 0: ValueError: bad")
    assert reasons["fedper", "cora", 10] == ("diverged", "seed 0: round 7")
    assert reasons["pfedhn", "cora", 10] == ("oom", "seed 0: out of memory")
    assert reasons["fedavg", "pubmed", 10] == ("no data", "seed 0: ind.pubmed.x is missing")
    assert reasons["fedprox", "cora", 10] == ("not run", "")
    printed = {
        (value.method, value.dataset, value.clients)
        for value in published("toy", ToyStudy.published)
        if value.table == "Table 1"
    }
    assert len(printed) == 2 * 10 + 5 * 2 + 2
    assert set(reasons) - {("fedavg_ft", "pubmed", 10)} == printed - {("local", "cora", 10)}


def test_runs_without_numbers_are_named_beside_those_with() -> None:
    database = MemoryStore()
    database.add("fedavg", 0, [72, 72])
    database.add("fedavg", 1, [73, 73])
    database.add("fedavg", 2, None, state="diverged", reason="round 4")
    cell = one(board(database), "fedavg")
    assert cell.measured is not None
    assert cell.measured.n == 2
    assert cell.verdict == "compatible"
    assert "1 of 3 runs without numbers (diverged, seed 2: round 4)" in cell.reason


def test_runs_of_different_specs_are_never_mixed() -> None:
    database = MemoryStore()
    short = CORA.model_copy(update={"rounds": 8})
    for seed in (0, 1):
        database.add("fedavg", seed, [72, 72], hyper={})
        database.add("fedavg", seed, [40, 40], protocol=short)
    cells = board(database, {(CORA_10, "fedavg"): usual()})
    assert [cell.setting for cell in find(cells, "fedavg")] == ["", "protocol.rounds=8"]
    full, eight = find(cells, "fedavg")
    assert full.measured is not None
    assert eight.measured is not None
    assert (full.measured.mean, eight.measured.mean) == (pytest.approx(72), pytest.approx(40))
    assert eight.verdict == "not comparable"
    assert eight.reason == "protocol differs: run with protocol.rounds=8, the paper has protocol.rounds=100"


def test_runs_in_which_only_some_clients_train_are_not_comparable() -> None:
    """No paper states a share of the clients, which means all of them."""
    database = MemoryStore()
    for seed in (0, 1):
        database.add("fedavg", seed, [72, 72], hyper={})
        database.add("fedavg", seed, [72, 72], protocol=CORA.model_copy(update={"participation": 0.5}))
    everybody, half = find(board(database, {(CORA_10, "fedavg"): usual()}), "fedavg")
    assert half.measured is not None
    assert (everybody.verdict, half.verdict) == ("compatible", "not comparable")
    assert half.evidence is None


def test_only_unusual_runs_leave_the_usual_cell_unrun() -> None:
    database = MemoryStore()
    database.add("fedprox", 0, [70], hyper={"mu": 0.1})
    table_cells = board(database, {(CORA_10, "fedprox"): usual(mu=0.01)})
    cells = {cell.setting: cell.verdict for cell in find(table_cells, "fedprox")}
    assert cells == {"": "not run", "method.mu=0.1": "not comparable"}


def on_partition(seed: int) -> dict[str, Any]:
    """The protocol and the clients of a partition seed."""
    return {"protocol": CORA.model_copy(update={"partition_seed": seed}), "partition_hash": f"clients {seed}"}


def test_spread_between_partitions_widens_the_tolerance() -> None:
    # Published pFedHN on Cora/10: 65.24 ± 0.21 over five runs.
    database = MemoryStore()
    for seed in (0, 1):
        database.add("pfedhn", seed, [68, 68], **on_partition(123))
    expected = {(CORA_10, "pfedhn"): usual()}

    def judged() -> tuple[str, float | None, str, int]:
        cell = next(cell for cell in find(board(database, expected), "pfedhn") if not cell.setting)
        return cell.verdict, cell.spread.std, cell.spread.source, cell.spread.partitions

    assert judged() == ("above", None, "none", 1)
    for seed in (0, 1):
        database.add("pfedhn", seed, [64, 64], **on_partition(1))
    # Two partitions say nothing yet: their standard deviation has one degree of freedom.
    assert judged() == ("above", None, "none", 2)
    database.add("pfedhn", 0, [66, 66], **on_partition(2))
    # Means 68, 64 and 66, and no difference between runs on one of them.
    assert judged() == ("compatible", pytest.approx(2.0), "own", 3)
    (row,) = frame(cell for cell in find(board(database, expected), "pfedhn") if not cell.setting).to_dict(
        "records"
    )
    assert (row["n_p"], row["margin"], row["draws"], row["s_d_source"]) == (5, 2.0, 2, "own")
    assert row["difference"] == pytest.approx(68 - 65.24)
    # The interval is that of the published mean: 0.21 / sqrt(5), four degrees of freedom.
    half = 2.1318 * 0.21 / math.sqrt(5)
    assert row["low_difference"] == pytest.approx(68 - 65.24 - half, abs=1e-4)
    # The tolerance is almost that of 2 * s_d² alone, with two degrees of freedom.
    assert row["tolerance"] == pytest.approx(4.3027 * math.sqrt(8), rel=0.01)


def test_cells_without_partitions_have_the_pooled_spread_of_their_scenario() -> None:
    database = MemoryStore()
    for method, step in (("local", 3), ("fedper", 4)):
        for place, partition in enumerate((123, 1, 2)):
            for seed in (0, 1):
                database.add(method, seed, [70 + step * place], **on_partition(partition))
    for seed in (0, 1):
        database.add("majority", seed, [20], **on_partition(123))  # trains nothing: has no say
        database.add("flow", seed, [70], **on_partition(123))
        database.add("flow", seed, [70], scenario="overlapping", clients=30)
    main_boards = main_tables(ToyStudy(), Results(database, {}), Selection())
    flow = one(main_boards[0], "flow")
    # Local 70, 73, 76: 3 points; FedPer 70, 74, 78: 4.
    assert (flow.spread.source, flow.spread.std) == ("pooled", pytest.approx(math.sqrt((9 + 16) / 2)))
    assert flow.spread.freedom == 2  # the three partitions of one column
    # No partitions of this scenario were run: all of the study's.
    (elsewhere,) = find(main_boards[1], "flow", Column("cora", "overlapping", 30), table="Table 2")
    assert (elsewhere.spread.source, elsewhere.spread.std) == ("pooled", flow.spread.std)


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ((20.0, 40.0, 40.0), ("same clients", None, 0)),
        # Roles that the partition seed deals: means 73, 71 and 72 of runs without a spread of their own.
        ((40.0, 30.0, 30.0), ("split", pytest.approx(1.0), 2)),
    ],
)
def test_on_the_papers_own_clients_only_a_dealt_split_explains_anything(
    split: tuple[float, float, float], expected: tuple[str, Any, int]
) -> None:
    database = MemoryStore()
    for partition in (123, 1, 2):
        place = on_partition(partition)
        place["protocol"] = place["protocol"].model_copy(update={"split": split})
        for seed in (0, 1):
            database.add("local", seed, [70 + partition % 4], scenario="published", **place)
    results = Results(database, {})
    column = Column("cora", "published", 10)
    group = next(
        group for group in results.groups(column, "local") if "protocol.partition_seed" not in group.setting
    )
    target = published("toy", ToyStudy.published)[0]
    reading = ToyStudy.primary
    read = CellReading(results, group, reading.stage, reading.rule, ToyStudy.average)
    graded = grade_runs(ToyStudy(), TEST, [read], target)
    assert (graded.spread.source, graded.spread.std, graded.spread.draws) == expected


def test_a_value_of_unknown_stage_is_judged_by_both_readings() -> None:
    # Published FedAvg: 72.38 ± 2.45.
    database = MemoryStore()
    for seed in (0, 1, 2):
        database.add("fedavg", seed, [90, 90])
    cell = one(board(database), "fedavg")
    assert cell.verdict == "above"
    database = MemoryStore()
    for seed in (0, 1, 2):
        database.add("fedavg", seed, [90, 90], received=[72, 72])
    for stage in ("trained", "received"):
        cell = one(board(database), "fedavg", stage=stage)
        assert cell.verdict == "not comparable"
        assert cell.evidence is not None
        assert cell.measured is not None
        assert cell.evidence.difference == pytest.approx(cell.measured.mean - 72.38)


def test_the_majority_class_on_the_same_clients_tells_what_is_uninformative() -> None:
    # Published FedPer: 65.24 ± 1.19; tolerance above one point, so that 66 is compatible.
    database = MemoryStore()
    for seed, right in enumerate((64, 66, 68)):
        database.add("fedper", seed, [right])
        database.add("majority", seed, [67], partition_hash="others")
    assert one(board(database), "fedper").verdict == "compatible"
    database.add("majority", 3, [67])
    cell = one(board(database), "fedper")
    assert cell.control is not None
    assert (cell.verdict, cell.control.values) == ("uninformative", (67.0, 67.0, 67.0))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("margin", math.nan),
        ("published_runs", lambda *_: PublishedRuns(0)),
        ("published_runs", lambda *_: 3),
    ],
)
def test_a_study_with_a_wrong_rule_is_refused_by_name(name: str, wrong: object) -> None:
    study = type("Wrong", (ToyStudy,), {name: wrong})()
    database = MemoryStore()
    for seed in (0, 1):
        database.add("local", seed, [70])
    with pytest.raises(RequestError, match=r"^study toy: "):
        main_tables(study, Results(database, {}), Selection())


def test_the_spread_between_partitions_stands_in_details() -> None:
    database = MemoryStore()
    expected = {(CORA_10, method): usual() for method in ("local", "fedavg")}
    for seed in (0, 1):
        for place, partition in enumerate((123, 1, 2)):
            database.add("local", seed, [70 + 3 * place], **on_partition(partition))
        database.add("fedavg", seed, [70], **on_partition(123))
    results = Results(database, expected)
    cells = main_tables(ToyStudy(), results, Selection())[0]
    table = tables.every_number(cells)
    texts = {
        title: dict(zip(table.columns, (entry.text for entry in entries), strict=True))
        for title, entries in table.rows
    }
    assert (texts["Local"]["s_d"], texts["Local"]["Partitions"]) == ("3.00", "3")
    assert texts["FedAvg"]["Partitions"] == "1"


def test_a_partition_for_every_seed_is_one_cell() -> None:
    column = Column("coraca", "label-dirichlet", 3)
    protocol = Protocol(rounds=200, local_epochs=3, split=(10, 20, 40), evaluate="epoch")
    database = MemoryStore()
    for seed in (0, 1, 2):
        database.add(
            "fedhgn",
            seed,
            [58, 57 + seed, 59],
            dataset="coraca",
            scenario="label-dirichlet",
            clients=3,
            protocol=protocol.model_copy(update={"partition_seed": seed}),
        )
    settings = {**usual(protocol).settings, "protocol.partition_seed": PER_SEED}
    cells = main_tables(
        FedHGN(), Results(database, {(column, "fedhgn"): PlannedCell(settings)}), Selection()
    )[0]
    (cell,) = [
        cell for cell in cells if cell.method == "fedhgn" and cell.rule == "client_best_val" and cell.measured
    ]
    assert cell.setting == ""
    assert cell.measured is not None
    assert cell.measured.n == 3
    assert cell.measured.mean == pytest.approx((174 + 175 + 176) / 9)
    assert cell.verdict == "reproduced"  # published 58.31 ± 2.29


def test_the_global_model_is_set_beside_the_papers_single_value() -> None:
    database = MemoryStore()
    for seed in (0, 1):
        database.add(
            "global_hgnn",
            seed,
            [70],
            dataset="coraca",
            scenario="label-dirichlet",
            clients=1,
            protocol=Protocol(rounds=600, local_epochs=3, split=(10, 20, 40)),
        )
    table_cells = main_tables(FedHGN(), Results(database, {}), Selection())[0]
    cells = [
        cell
        for cell in table_cells
        if (cell.method, cell.column.dataset, cell.rule) == ("global_hgnn", "coraca", "client_best_val")
    ]
    (cell,) = cells
    assert cell.target is not None
    assert cell.target.mean == 69.53
    assert cell.verdict == "compatible"


def test_settings_are_named_as_on_the_command_line() -> None:
    reference = settings_of(
        RunSpec(dataset="d", scenario="s", clients=1, method="m", seed=0, hyper={"mu": 0.1})
    )
    other = {**reference, "method.mu": 0.5, "protocol.rounds": 8}
    assert difference_text(other, reference) == "method.mu=0.5;protocol.rounds=8"
    assert difference_text(reference, reference) == ""


def test_clients_without_test_samples_do_not_count() -> None:
    database = MemoryStore()
    database.add("local", 0, [50, 100, 0], samples=[100, 100, 0])
    measured = one(board(database), "local").measured
    assert measured is not None
    assert measured.mean == pytest.approx(75)


def test_a_caption_names_imported_bundles_and_whether_they_were_verified(tmp_path: Path) -> None:
    database = MemoryStore()
    for seed, bundle in enumerate(("", "theirs", "theirs")):
        database.add("local", seed, [80] * 10, bundle=bundle)
    built = report_of(database, tmp_path)
    table = next(document for document in built.documents if document.key == "toy_table1")
    assert "Imported: theirs (2 runs, unverified)." in table.fine_print


def test_seeds_that_nobody_planned_change_no_grade_once_all_planned_ones_are_there() -> None:
    database = MemoryStore()
    spec = resolve("cora", "non-overlapping", 10, "local", 0)
    for seed in (0, 1, 2, 3, 7):
        database.add_run(spec.model_copy(update={"seed": seed}), [70 + seed])
    results = Results(database, usual_cells(PlannedToy.grids))
    assert one(main_tables(PlannedToy(), results, Selection())[0], "local").seeds == (0, 1, 2, 3, 7)
    database.add_run(spec.model_copy(update={"seed": 4}), [74])
    results = Results(database, usual_cells(PlannedToy.grids))
    board = main_tables(PlannedToy(), results, Selection())[0]
    local = one(board, "local")
    assert (local.seeds, local.measured and local.measured.mean) == ((0, 1, 2, 3, 4), pytest.approx(72.0))
    assert board.other_runs == 1


def test_the_spread_between_partitions_is_that_of_the_grids_protocol(tmp_path: Path) -> None:
    """Local's runs of three epochs have 70, 73, 76 on three partitions, those of one epoch 70, 71, 72."""
    grid = tmp_path / "one_epoch.toml"
    grid.write_text(
        'title = "One epoch"\nmethods = ["local"]\nseeds = [0, 1]\n[protocol]\nlocal_epochs = 1\n'
        '[[settings]]\ndatasets = ["cora"]\nscenario = "non-overlapping"\nclients = 10\n'
    )
    (planned,) = expand(load_grid(str(grid)), Filters(seeds=(0,)))
    database = MemoryStore()
    for place, partition in enumerate((123, 1, 2)):
        for epochs, step in ((3, 3), (1, 1)):
            protocol = {"partition_seed": partition, "local_epochs": epochs}
            spec = planned.spec.model_copy(
                update={"protocol": planned.spec.protocol.model_copy(update=protocol)}
            )
            for seed in (0, 1):
                run = spec.model_copy(update={"seed": seed})
                database.add_run(run, [70 + step * place], partition_hash=str(partition))
    results = Results(database, {})
    where = {CORA_10}, "trained", "best_val", ToyStudy.average
    assert results.pooled_between_partitions((str(grid),), *where) == (pytest.approx(1.0), 2, {"cora"})
