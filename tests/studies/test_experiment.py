"""Experiments: a grid's runs as lines by points, beside what the paper prints."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from stored_runs import MemoryStore
from study_cells import CORA_20, NON, cells_of, experiments, one, printed_beside, shown, spec, unrelated

from bench.frames.graded_cells import collect, values_of
from bench.frames.stored_runs import usual_of
from bench.grids import expand, load_grid, plan
from bench.report import tables
from bench.report.request import Request
from bench.reports.fedhgn import FedHGN
from bench.reports.fedsheafhn import FedSheafHN
from bench.reports.fedsheafhn.measures import EPOCHS_TO_LEVEL, NEW_LESS_TRAINED, OF_TRAINED_CLIENTS
from bench.resolve import resolve
from bench.spec import Attack, Newcomers
from bench.studies.experiment import Experiment
from bench.studies.measures import Measure
from bench.studies.published import published
from bench.studies.settings import Column

EXPERIMENTS = experiments(FedSheafHN)
OVER = "overlapping"
CORA_20_NAMES = ("cora", NON, 20)
PUBLISHED_20 = Column("cora", "published", 20)
ARXIV_20 = Column("ogbn-arxiv", NON, 20)


def cell(
    cells: pd.DataFrame, line: str, column: Column = CORA_20, point: str = "", measure: str = "accuracy"
) -> Any:
    where = {"dataset": column.dataset, "scenario": column.scenario, "clients": column.clients}
    return one(cells, line=line, point=point, measure=measure, **where)


def values(name: str, database: MemoryStore, line: str, *measures: Measure) -> list[list[float]]:
    """What the runs of a line have under measures, by seed."""
    found = shown(FedSheafHN, name, database)
    is_meant = (found.cells["line"] == line) & (found.cells["position"] == 0) & (found.cells["n"] > 0)
    of_measures = (values_of(found.results, found.cells[is_meant], measure) for measure in measures)
    return [each.sort_values("seed")["value"].tolist() for each in of_measures]


@pytest.mark.parametrize(
    "experiment", [*EXPERIMENTS, *experiments(FedHGN)], ids=lambda experiment: experiment.name
)
def test_lines_and_points_show_exactly_the_runs_of_the_grid(experiment: Experiment) -> None:
    own = {digest for runs in experiment.runs.values() for digest in runs.hashes}
    planned = [run.spec for run in expand(load_grid(experiment.grid))]
    shown = [(column.dataset, column.scenario, column.clients) for column in experiment.columns]
    assert own == {spec.hash for spec in planned if (spec.dataset, spec.scenario, spec.clients) in shown}
    assert {line for _, line, _ in experiment.runs} == set(experiment.lines)
    assert {point for _, _, point in experiment.runs} == set(experiment.points)


def test_every_accuracy_printed_for_an_experiment_has_its_cell() -> None:
    """An experiment may measure a part of what a main table prints, again."""
    mains = [table for table in FedSheafHN.experiments if table.main]
    named = {target for table in mains for targets in table.comparisons.values() for target in targets}
    cells = collect(unrelated(), [FedSheafHN()]).cells
    for experiment in EXPERIMENTS:
        beside = printed_beside(cells[cells["document"] == experiment.name], FedSheafHN)
        for paper, table in set(next(iter(experiment.comparisons.values()))) - named:
            for value in published(paper):
                twice = value.table == "Fig. 1 (caption)" and not value.setting  # Table 3 prints it, too
                if value.table == table and not twice:
                    assert value in beside


def test_honest_clients_are_those_that_the_run_did_not_mark() -> None:
    database = MemoryStore()
    attack = Attack(kind="gaussian", ratio=0.4, tau=20.0)
    database.add_run(
        spec("malicious", "fedpub", 0, attack=attack), [50, 60, 70, 90], artefacts={"malicious": [1, 0, 0, 1]}
    )
    database.add_run(spec("malicious", "fedpub", 0, attack=None), [80, 82])
    cells = cells_of(FedSheafHN, "malicious", database)
    title = "FED-PUB (gaussian, tau 20)"
    assert cell(cells, title, point="0.4").mean == pytest.approx(67.5)
    assert cell(cells, title, point="0.4", measure="honest").mean == pytest.approx(65)
    for kind in ("same", "gaussian"):  # nobody attacks: one run for every kind
        for measure in ("accuracy", "honest"):
            plain = cell(cells, f"FED-PUB ({kind}, tau 5)", point="0", measure=measure)
            assert plain.mean == pytest.approx(81)


def test_server_seconds_are_a_rounds_share() -> None:
    database = MemoryStore()
    for seed, seconds in ((0, 2.0), (1, 3.0)):
        run_spec = spec("server_cost", "fedavg", seed, rounds=10)
        database.add_run(run_spec, [50], peak_memory=300 * 2**20, seconds={"server": seconds})
    cells = cells_of(FedSheafHN, "server_cost", database)
    assert cell(cells, "Base model (FedAvg)", measure="server_seconds").mean == pytest.approx(0.25)
    assert cell(cells, "Base model (FedAvg)", measure="peak_memory").mean == pytest.approx(300)
    large = cell(cells, "FedSheafHN", Column("ogbn-arxiv", NON, 100), measure="server_seconds")
    assert large.published_mean == 0.614
    assert 50 in set(cells.loc[cells["dataset"] == "cora", "clients"])


def test_new_clients_are_read_before_and_after_their_local_epochs() -> None:
    database = MemoryStore()
    control = spec("new_clients", "local", 0, newcomers=Newcomers(ratio=0.2, epochs=53))
    database.add_run(control, [[85], [80]], received=[[0], [30]], validation=[[100], [90]])
    database.add_run(spec("new_clients", "fedavg", 0, newcomers=Newcomers(ratio=0.2, epochs=3)), [70])
    late = Newcomers(ratio=0.2, epochs=3)
    refused = spec("new_clients", "fedsheafhn", 0, newcomers=late, initial="own")
    database.add_run(refused, None, state="not_applicable", reason="tied to client numbers")
    cells = cells_of(FedSheafHN, "new_clients", database)
    assert cell(cells, "Local (53 epochs)", point="0.2", measure="after_training").mean == pytest.approx(80)
    assert cell(cells, "Local (53 epochs)", point="0.2", measure="zero_shot").mean == pytest.approx(30)
    unknown = cell(cells, "Local (53 epochs)", point="0.2", measure="trained_clients")
    assert unknown.verdict == "not applicable"  # a run made before these were kept
    none = cell(cells, "FedSheafHN (50 + 3 epochs)", point="0.2", measure="after_training")
    assert (none.verdict, none.reason) == ("not applicable", "seed 0: tied to client numbers")


def test_new_clients_are_set_beside_those_that_trained() -> None:
    database = MemoryStore()
    for seed, shares in ((0, [0.9, np.nan, 0.7]), (1, [0.6, 0.6, 0.6])):
        run = spec("new_clients", "fedavg", seed, newcomers=Newcomers(ratio=0.2, epochs=53))
        database.add_run(run, [50, 52], artefacts={"trained_clients": shares})
    measures = OF_TRAINED_CLIENTS, NEW_LESS_TRAINED
    trained, less = values("new_clients", database, "FedAvg (53 epochs)", *measures)
    assert trained == pytest.approx([80, 60])
    assert less == pytest.approx([51 - 80, 51 - 60])


def test_epochs_near_local_count_the_warm_up_and_end_with_the_run() -> None:
    database = MemoryStore()
    for seed in (0, 1):
        database.add_run(spec("convergence", "local", seed), [[10], [80]])
    slow = spec("convergence", "fedsheafhn", 0)
    database.add_run(slow, [[71], [73], [79]])  # 72 is nine tenths of Local's
    database.add_run(spec("convergence", "fedsheafhn", 1), [[50], [60], [60]])
    before, step = int(slow.hyper["warm_up_epochs"]), slow.protocol.local_epochs
    (epochs,) = values("convergence", database, "FedSheafHN", EPOCHS_TO_LEVEL)
    assert epochs == [before + 2 * step, before + 3 * step]


def test_choices_show_validation_beside_test() -> None:
    database = MemoryStore()
    column = Column("cora", OVER, 30)
    run_spec = spec("fedsheafhn_choices", "fedsheafhn", 0, column, stalk=2)
    database.add_run(run_spec, [80], validation=[90])
    cells = cells_of(FedSheafHN, "choices", database)
    title = "FedSheafHN [method.stalk=2]"
    assert cell(cells, title, column, measure="validation").mean == pytest.approx(90)
    assert cell(cells, title, column).mean == pytest.approx(80)


def test_the_best_are_found_among_cells_with_the_same_seeds() -> None:
    """Redrawn partitions: most methods on 0-3, one on 0-2 with the highest mean, one lost a run."""
    database = MemoryStore()
    where = Column("cora", OVER, 50)

    def add(method: str, seed: int, right: int | None) -> None:
        run_spec = spec("robust", method, seed, where)
        if right is None:
            database.add_run(run_spec, None, state="diverged")
        else:
            database.add_run(run_spec, [right])

    for seed in range(4):
        add("local", seed, 80)
        add("fedavg", seed, 70)
        add("fedpub", seed, 82 if seed else None)
        if seed < 3:
            add("flow", seed, 85)
    add("majority", 0, 90)
    found = shown(FedSheafHN, "robust", database)
    (view,) = tables.document_of(found).views
    entries = {name: (row[0].text, row[0].rank) for name, row in view.rows if row[0].text != "-"}
    assert entries == {
        "Local": ("80.00 ± 0.00", 1),
        "FedAvg": ("70.00 ± 0.00", 2),
        "FED-PUB": ("82.00 ± 0.00 (n=3)", 0),
        "Flow": ("85.00 ± 0.00 (n=3)", 0),
        "Majority class": ("90.00 (n=1)", 0),
    }
    lost = cell(found.cells, "FED-PUB", where, "one a seed")
    assert lost.reason.endswith("4 of 5 planned seeds; 1 of 4 runs without numbers (diverged, seed 0)")
    assert cell(found.cells, "Flow", where, "one a seed").reason.endswith("3 of 5 planned seeds")


def test_only_the_values_without_attack_were_taken_over() -> None:
    """FED-PUB's own paper attacks nobody."""
    database = MemoryStore()
    attack = Attack(kind="same", ratio=0.2, tau=5.0)
    for seed in (0, 1):
        for run_attack in (None, attack):
            database.add_run(spec("malicious", "fedpub", seed, ARXIV_20, attack=run_attack), [60])
    cells = cells_of(FedSheafHN, "malicious", database)
    reasons = {ratio: cell(cells, "FED-PUB (same, tau 5)", ARXIV_20, ratio).reason for ratio in ("0", "0.2")}
    assert "taken over from the FED-PUB paper" in reasons["0"]
    assert "taken over" not in reasons["0.2"]
    assert "the paper has protocol.rounds=200" in reasons["0.2"]
    assert "split" not in reasons["0.2"]


def test_a_method_without_a_grid_is_named_by_what_differs_from_its_defaults() -> None:
    """Most of its runs have another setting, which no grid names; one has its defaults."""
    database = MemoryStore()
    for seed in (0, 1, 2):
        scaled = {"method.output_scale": 0.3}
        database.add_run(resolve(*CORA_20_NAMES, "fedsheafhn_released", seed, scaled), [90])
    database.add_run(resolve(*CORA_20_NAMES, "fedsheafhn_released", 0), [80])
    for grids in (FedSheafHN.grids, ()):
        found = shown(FedSheafHN, "table1", database, usual=usual_of(grids)).cells
        found = found[(found["method"] == "fedsheafhn_released") & (found["n"] > 0) & found["primary"]]
        means = dict(zip(found["setting"], found["mean"], strict=True))
        assert means == {"method.output_scale=0.3": 90, "": 80}


def test_a_method_without_a_grid_is_usual_in_the_protocol_of_its_columns_grid() -> None:
    database, names = MemoryStore(), ("coraca", "label-dirichlet", 3, "fedcog")
    database.add_run(plan(load_grid("fedhgn_tables"), *names, {}, 0).spec, [60] * 3)
    for seed in (0, 1):
        short = plan(load_grid("fedhgn_tables"), *names, {"protocol.rounds": 8}, seed).spec
        database.add_run(short, [50] * 3)
    cells = cells_of(FedHGN, "table2", database)
    found = cells[(cells["method"] == "fedcog") & (cells["n"] > 0)]
    seeds = dict(zip(found["setting"], found["done_seeds"], strict=True))
    assert seeds == {"": (0,), "protocol.rounds=8": (0, 1)}


def test_methods_found_in_the_database_and_single_seeds_take_no_place() -> None:
    database = MemoryStore()
    for seed in (0, 1):
        database.add_run(spec("paper_tables", "local", seed), [70])
        database.add_run(spec("paper_tables", "fedavg", seed), [60])
        database.add_run(resolve(*CORA_20_NAMES, "fedsheafhn_released", seed), [90])
    database.add_run(spec("paper_tables", "flow", 0), [80])

    def marked(*methods: str) -> dict[str, tuple[str, int]]:
        board = shown(FedSheafHN, "table1", database, Request(methods=methods))
        table = tables.views(board)[0]
        place = table.body.columns.get_loc(("Cora", "20 clients"))
        return {
            title: (entries[place].text, entries[place].rank)
            for title, entries in table.rows
            if entries[place].text not in ("-", "")
        }

    every = {
        "Local": ("70.00 ± 0.00", 1),
        "FedAvg": ("60.00 ± 0.00", 2),
        "FedAvg + fine-tuning": ("60.00 ± 0.00", 2),
        "Flow": ("80.00 (n=1)", 0),
        "FedSheafHN released": ("90.00 ± 0.00", 0),
    }
    assert marked() == every
    assert marked("local", "fedsheafhn_released") == {
        "Local": ("70.00 ± 0.00", 2),
        "FedSheafHN released": ("90.00 ± 0.00", 1),
    }


def test_main_tables_have_no_lines_for_experiments_and_attacks() -> None:
    database = MemoryStore()
    for seed in (0, 1):
        database.add_run(spec("paper_tables", "fedsheafhn", seed), [80])
        database.add_run(spec("ablation", "fedsheafhn", seed, refresh=0, attention="qkv"), [10])
        attack = Attack(kind="same", ratio=0.2, tau=5.0)
        database.add_run(spec("malicious", "fedsheafhn", seed, attack=attack), [20])
        database.add_run(spec("local_epochs", "local", seed, local_epochs=20), [30])
        mine = spec("paper_tables", "local", seed)
        short = mine.model_copy(update={"protocol": mine.protocol.model_copy(update={"rounds": 8})})
        database.add_run(short, [40])
    board = shown(FedSheafHN, "table1", database)
    measured = board.cells.loc[board.cells["n"] > 0, ["method", "setting"]]
    assert set(measured.itertuples(index=False, name=None)) == {
        ("fedsheafhn", ""),
        ("local", "protocol.rounds=8"),
    }
