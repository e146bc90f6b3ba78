"""Spread, paired comparison and ranking in the report."""

import csv
import hashlib
import io
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy import stats
from stored_runs import CORA, MemoryStore
from study_cells import main_tables, report_of
from toy_study import ToyStudy

from bench.figures.plots import Ranks
from bench.report.captions import Document
from bench.report.ranking_views import ranking_document
from bench.report.report import Report, printed_document
from bench.report.request import Request
from bench.report.spread import spread
from bench.report.terminal import show
from bench.reports.fedaghn import FedAGHN
from bench.reports.fedhgn import FedHGN
from bench.spec import Protocol
from bench.studies.cells import Selection
from bench.studies.ranking import TABLE, Ranking, cell_groups, competitors, rank, tasks
from bench.studies.results import Results
from bench.studies.study import Study

NON, OVER = "non-overlapping", "overlapping"
CORA_TASKS = ((NON, 10), (NON, 20), (OVER, 30), (OVER, 50))


LEVELS = {"local": 80, "fedavg": 60, "fedper": 60, "fedsheafhn": 80}
"""Correct of 100 before the draws of ``filled``: two good methods, two bad ones."""


def filled(where: Sequence[tuple[str, int]] = CORA_TASKS) -> MemoryStore:
    """Two seeds of four methods and the majority: differences of 20 points with little noise.

    With overlap five clients are samples of one part: six parts, whose samples score the same.
    """
    database = MemoryStore()
    draw = np.random.default_rng(0)
    for scenario, clients in where:
        for method, level in {**LEVELS, "majority": 90}.items():
            for seed in (0, 1):
                drawn = [level + int(noise) for noise in draw.integers(-2, 3, 6)]
                correct = [value for value in drawn for _ in range(5 if scenario == OVER else 1)]
                database.add(method, seed, correct, scenario=scenario, clients=clients)
    return database


def ranking_of(
    database: MemoryStore, study: Study | None = None, **selection: frozenset[Any]
) -> Ranking | None:
    study = study or ToyStudy()
    results, chosen = Results(database, {}), Selection(**selection)
    return rank(study, main_tables(study, results, chosen), results, chosen)


def document(database: MemoryStore, study: Study | None = None) -> Document:
    study = study or ToyStudy()
    results = Results(database, {})
    ranking = rank(study, main_tables(study, results, Selection()), results, Selection())
    assert ranking is not None
    return ranking_document(study, ranking, results)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cora(out: Path) -> Report:
    return report_of(filled(), out, Request(datasets=("cora",)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ranking")


@pytest.fixture(scope="module")
def built(folder: Path) -> Report:
    return cora(folder)


@pytest.fixture(scope="module")
def cora_document() -> Document:
    """The ranking over the four tasks of Cora."""
    return document(filled())


@pytest.fixture(scope="module")
def cora_ranking() -> Ranking:
    """The same as numbers."""
    ranking = ranking_of(filled())
    assert ranking is not None
    return ranking


@pytest.mark.parametrize(("count", "counts"), [(2, False), (3, True), (5, True)])
def test_a_column_that_has_only_begun_counts_for_no_rank(count: int, counts: bool) -> None:
    """Six methods compete in the fullest columns; half of them are three."""
    database = filled()
    for method, (scenario, clients) in product(("flow", "fedprox"), CORA_TASKS):
        correct = [70] * (30 if scenario == OVER else 6)
        database.add(method, 0, correct, scenario=scenario, clients=clients)
    for method in ("local", "fedavg", "fedper", "flow", "fedprox")[:count]:
        database.add(method, 0, [50, 51], dataset="citeseer", clients=10)
    ranking = ranking_of(database)
    assert ranking is not None
    assert len(ranking.methods) == 6
    assert ("citeseer" in {task.column.dataset for task in ranking.tasks}) == counts
    assert (set(ranking.groups) == {*LEVELS, "flow", "fedprox"}) == (not counts)


def named(study: Study, database: MemoryStore, **selection: frozenset[Any]) -> set[str]:
    results, chosen = Results(database, {}), Selection(**selection)
    return set(competitors(study, main_tables(study, results, chosen), chosen))


def test_the_paper_s_methods_compete_and_no_other_that_was_run() -> None:
    database = filled()
    database.add("fedsheafhn_released", 0, [99] * 6)
    assert named(ToyStudy(), database) == {
        "local",
        "fedavg",
        "fedprox",
        "fedper",
        "pfedhn",
        "fggp",
        "pfedgraph",
        "fedpub",
        "flow",
        "fedsheafhn",
    }


def test_a_method_that_the_request_names_competes_too_but_no_reference() -> None:
    database = filled()
    database.add("mine", 0, [70] * 6)
    asked = frozenset({"mine", "local", "majority", "fedavg_ft"})
    # Fine-tuned FedAvg shows FedAvg's trained models: alone here, it stands for them.
    assert named(ToyStudy(), database, methods=asked) == {"mine", "local", "fedavg_ft"}


def test_unranked_rows_are_out_and_other_stages_of_the_same_runs_are_in() -> None:
    assert "global_hgnn" not in named(FedHGN(), MemoryStore())
    assert {"fedavg", "fedavg_ft"} <= named(FedAGHN(), MemoryStore())


def test_ranks_groups_and_the_difference_to_local(cora_ranking: Ranking) -> None:
    assert len(cora_ranking.tasks) == 4
    assert list(cora_ranking.table.columns) == list(TABLE)
    rows = cora_ranking.table.set_index("method")
    assert set(rows.index[:2]) == {"local", "fedsheafhn"}
    means = [task.means for task in cora_ranking.tasks]
    for method in LEVELS:
        # Equal accuracies, but for the order in which they are added up, share the mean of their places.
        places = [
            1
            + sum(other > here[method] + 1e-6 for other in here.values())
            + (sum(abs(other - here[method]) < 1e-6 for other in here.values()) - 1) / 2
            for here in means
        ]
        assert rows.loc[method, "rank"] == pytest.approx(np.mean(places))
        assert 1 <= rows.loc[method, "low"] <= rows.loc[method, "rank"] <= rows.loc[method, "high"] <= 4
        below = [here[method] - here["local"] for here in means]
        assert rows.loc[method, "minus_baseline"] == pytest.approx(np.mean(below))
    # Twenty points apart, the bad methods are never before the good ones.
    assert rows.loc[["fedavg", "fedper"], "low"].min() > rows.loc[["local", "fedsheafhn"], "high"].max() - 1
    assert rows["group"].to_dict() == {"local": 1, "fedsheafhn": 1, "fedavg": 2, "fedper": 2}


def test_a_single_task_has_the_groups_of_its_own_tests() -> None:
    ranking = ranking_of(filled(CORA_TASKS[:1]))
    assert ranking is not None
    assert ranking.groups == cell_groups(ranking.tasks[0])
    assert {ranking.groups["local"], ranking.groups["fedavg"]} == {1, 2}


def test_two_tasks_are_ranked_but_not_tested() -> None:
    ranking = ranking_of(filled(CORA_TASKS[:2]))
    assert ranking is not None
    assert (ranking.comparisons, ranking.groups) == ([], {})
    assert ranking.table["group"].isna().all()
    assert ranking.table["low"].notna().all()


def test_paired_differences_are_those_of_the_stored_clients() -> None:
    database = MemoryStore()
    first, second = [[70, 82, 91], [72, 80, 90]], [[69, 75, 90], [70, 73, 85]]
    for seed in (0, 1):
        database.add("local", seed, first[seed])
        database.add("fedavg", seed, second[seed])
    database.add("local", 2, [10, 10, 10])  # no partner
    ranking = ranking_of(database)
    assert ranking is not None
    (pair,) = ranking.tasks[0].comparisons
    gaps = (np.array(first) - np.array(second)).mean(axis=0)
    assert (pair.first, pair.second, pair.unit, pair.units) == ("local", "fedavg", "client", 3)
    assert pair.difference == pytest.approx(gaps.mean())
    assert pair.p == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)


def test_pooled_accuracies_are_compared_pooled_over_partitions() -> None:
    database = MemoryStore()
    options: dict[str, Any] = {"dataset": "coraca", "scenario": "label-dirichlet", "clients": 3}
    for seed in (0, 1, 2):
        protocol = Protocol(rounds=200, local_epochs=3, split=(10, 20, 40))
        for method, right in (("local_hgnn", 50), ("fedhgn", 60 + seed)):
            database.add(
                method,
                seed,
                [right, 30],
                samples=[100, 300],
                protocol=protocol,
                **options,
                partition_hash=f"p{seed}",
            )
    ranking = ranking_of(database, FedHGN())
    assert ranking is not None
    (pair,) = ranking.tasks[0].comparisons
    # (10 + seed) more of 400 samples
    assert (pair.unit, pair.units, pair.difference) == ("partition", 3, pytest.approx(-100 * 11 / 400))
    assert pair.difference == pytest.approx(
        ranking.tasks[0].means["local_hgnn"] - ranking.tasks[0].means["fedhgn"]
    )


def test_runs_of_an_unknown_partition_are_not_paired() -> None:
    database = MemoryStore()
    for method in ("local", "fedavg"):
        database.add(method, 0, [70, 80], partition_hash="")
    ranking = ranking_of(database)
    assert ranking is not None
    assert [pair.verdict for pair in ranking.tasks[0].comparisons] == ["no test"]


def test_a_method_without_a_task_is_ranked_on_what_it_has() -> None:
    database = filled()
    for seed in (0, 1):
        database.add("flow", seed, [95, 96, 94, 95, 97, 95])  # the best, in one task
    database.add("fggp", 0, None, state="oom", reason="too large")
    doc = document(database)
    table = doc.views[0]
    entries = {label: [entry.text for entry in row] for label, row in table.rows}
    assert table.columns[:4] == ("Group", "Mean rank", "95 % interval", "Tasks")
    # Planned are the cells that the paper prints: Flow's on Cora, Local's on all data sets.
    assert (entries["Flow"][:2], entries["Flow"][3]) == (["-", "1.00"], "1/4")
    assert (entries["Local"][0], entries["Local"][3]) == ("1", "4/9")
    assert list(entries)[-1] == "Flow"  # those that lack tasks stand last, whatever their rank
    assert "FGGP" not in entries
    assert "Majority class" not in entries
    assert "nothing is imputed" in " ".join(doc.fine_print)
    assert "FGGP" in next(note for note in doc.notes if note.startswith("without numbers"))


def test_captions_state_reading_test_correction_region_units_and_tasks(cora_document: Document) -> None:
    assert len(cora_document.caption) <= 4
    caption = " ".join((*cora_document.caption, *cora_document.fine_print))
    for part in (
        "stage trained, rule best_val",
        "Paired t test, two-sided",
        "Holm's correction over all pairs of a task",
        "±0.5 points",
        "Cora, non-overlapping, 10 clients: 6 tests over 6 clients",
        "Cora, overlapping, 30 clients: 6 tests over 6 parts",
        "4 tasks",
        "6 tests over 4 tasks",
        "Partitions: Cora, non-overlapping, 10 clients: abcdef01",
        "2000 draws, seed 0",
        f"Protocol: Cora: {CORA.rounds} rounds",
    ):
        assert part in caption


def test_first_in_a_task_are_all_that_are_not_worse_than_the_best(cora_document: Document) -> None:
    groups = cora_document.views[1]
    for label, row in groups.rows:
        good = label in ("Local", "FedSheafHN")
        assert {entry.text.rpartition(" ")[2] for entry in row} == {"(1)" if good else "(2)"}
        assert {entry.place for entry in row} == {1 if good else 0}


def test_pair_tables_mirror_and_mark(cora_document: Document) -> None:
    table = next(view for view in cora_document.details if view.name == f"pairs_cora_{NON}_10")
    rows = {label: dict(zip(table.columns, row, strict=True)) for label, row in table.rows}
    assert rows["Local"]["Local"].text == ""
    better, worse = rows["Local"]["FedAvg"].text, rows["FedAvg"]["Local"].text
    assert (better[0], better[-1], worse[0], worse[-1]) == ("+", ">", "-", "<")
    assert better[1:-2] == worse[1:-2]
    assert {rows["Local"]["FedSheafHN"].text[-1], rows["FedSheafHN"]["Local"].text[-1]} <= {"?", "="}


def test_too_few_units_are_named_and_not_tested() -> None:
    database = MemoryStore()
    for seed, method in ((0, "local"), (0, "fedavg"), (1, "fedper")):
        database.add(method, seed, [70, 80])
    doc = document(database)
    place = "Cora, non-overlapping, 10 clients (no common seeds and partitions)"
    assert doc.notes[-1] == f"no test in {place}: Local and FedPer; FedAvg and FedPer"
    table = doc.details[0]
    assert dict(table.rows)["Local"][2].text == "-"


def test_nothing_to_compare_gives_no_ranking() -> None:
    database = MemoryStore()
    database.add("local", 0, [70, 80])
    database.add("fedavg", 0, [70, 80], clients=20)
    database.add("majority", 0, [70, 80])
    assert ranking_of(database) is None


def test_a_column_in_two_boards_is_one_task() -> None:
    study, results = ToyStudy(), Results(filled(), {})
    boards = main_tables(study, results, Selection())
    lines = competitors(study, boards, Selection())
    once = tasks(study, boards, lines, results)
    assert [task.column for task in tasks(study, [*boards, boards[0]], lines, results)] == [
        task.column for task in once
    ]


# Spread -----------------------------------------------------------------------------------------------


def spread_of(database: MemoryStore) -> Document | None:
    study, results = ToyStudy(), Results(database, {})
    return spread(main_tables(study, results, Selection())[0], results)


def test_spread_over_clients_and_seeds() -> None:
    database = MemoryStore()
    for seed, (alone, together) in enumerate(
        (([70, 80, 90], [71, 60, 85]), ([60, 80, 70], [62, 76, 72]), ([65, 75, 85], [65, 75, 85]))
    ):
        database.add("local", seed, alone)
        database.add("fedavg", seed, together)
    spread_document = spread_of(database)
    assert spread_document is not None
    (table,) = spread_document.details
    rows = {label.partition(",")[0]: [entry.text for entry in row] for label, row in table.rows}
    assert table.columns == (
        "Seeds",
        "Mean",
        "Std",
        "95 % interval",
        "Std over clients",
        "Worst client",
        "Bottom 10 %",
        "Below Local",
    )
    # Seeds' means 72, 70, 75: mean 72.33, std 2.5166, half 4.3027 * 2.5166 / sqrt(3) = 6.2516.
    assert rows["FedAvg"][:4] == ["3", "72.33", "2.52", "66.08 to 78.58"]
    # sqrt(157), sqrt(52) and 10 over clients; worst 60, 62, 65; below Local 2, 1 and 0.
    assert rows["FedAvg"][4:] == [f"{(157**0.5 + 52**0.5 + 10) / 3:.2f}", "62.33", "62.33", "1.00"]
    assert rows["Local"][-1] == "0.00"


def test_clients_of_other_partitions_are_not_set_against_local() -> None:
    database = MemoryStore()
    database.add("local", 0, [70, 80], partition_hash="p")
    database.add("local", 1, [70, 80], partition_hash="q")
    database.add("fedavg", 0, [60, 90], partition_hash="p")
    database.add("fedavg", 1, [10, 10], partition_hash="p")
    database.add("fedper", 2, [10, 10], partition_hash="q")
    spread_document = spread_of(database)
    assert spread_document is not None
    rows = {label: row[-1].text for label, row in spread_document.views[0].rows}
    assert (rows["FedAvg"], rows["FedPer"]) == ("1.00", "-")


def test_one_method_has_nothing_beside_it() -> None:
    database = MemoryStore()
    database.add("local", 0, [70])
    assert spread_of(database) is None


# Files and terminal -----------------------------------------------------------------------------------


def test_the_numbers_behind_the_tables_are_written(
    built: Report, folder: Path, cora_ranking: Ranking
) -> None:
    assert built.documents
    methods = {row["method"]: row for row in read(folder / "toy/ranking/methods.csv")}
    assert list(methods) == cora_ranking.methods
    assert methods["local"]["planned"] == methods["local"]["tasks"] == "4"
    local = cora_ranking.table.set_index("method").loc["local"]
    for column in ("rank", "low", "high", "minus_baseline"):
        assert float(methods["local"][column]) == pytest.approx(local[column], abs=1e-4)
    every = read(folder / "toy/ranking/pairs.csv")
    pairs = [row for row in every if row["dataset"]]
    assert (len(pairs), len(every)) == (4 * 6, 5 * 6)  # four tasks, and those over tasks
    first = cora_ranking.tasks[0].comparisons[0]
    assert (pairs[0]["first"], pairs[0]["second"]) == (first.first, first.second)
    assert float(pairs[0]["p_holm"]) == pytest.approx(first.corrected, rel=1e-5)
    assert pairs[0]["verdict"] == first.verdict
    assert {row["unit"] for row in every if not row["dataset"]} == {"task"}
    diagram = {row["method"]: row for row in read(folder / "toy/ranking/ranks.csv")}
    assert set(diagram) == set(LEVELS)
    numbers = read(folder / "toy/table1_spread/numbers.csv")
    assert {row["method"] for row in numbers} == {*LEVELS, "majority", "fedavg_ft"}


def test_cells_stand_once_in_cells_csv(folder: Path) -> None:
    rows = [tuple(row.items()) for row in read(folder / "cells.csv")]
    assert len(set(rows)) == len(rows)


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = {folders!r}
from test_ranking import cora
cora(Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_files_are_byte_identical_in_another_process(tmp_path: Path) -> None:
    script = SCRIPT.format(folders=[str(folder) for folder in Path(__file__).parents[:2]])
    digests = []
    for seed in ("1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        out = tmp_path / seed
        subprocess.run([sys.executable, "-c", script, str(out)], check=True, env=environment)
        digests.append(
            {
                path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in out.rglob("*")
                if path.is_file()
            }
        )
    assert digests[0] == digests[1]
    assert {f"toy/ranking/ranks.{kind}" for kind in ("pdf", "png", "csv")} <= set(digests[0])
    assert {f"toy/{name}/table.tex" for name in ("ranking", "reproduction", "table1_spread")} <= set(
        digests[0]
    )


def test_the_figure_has_every_method_with_its_rank_and_group(
    cora_document: Document, cora_ranking: Ranking
) -> None:
    (figure,) = cora_document.figures
    (panel,) = figure.panels
    assert isinstance(panel, Ranks)
    assert {mark.method: mark.label for mark in panel.marks} == {
        name: cora_ranking.titles[name] for name in LEVELS
    }
    shown = panel.data.set_index("method")
    assert shown["group"].to_dict() == {name: cora_ranking.groups[name] for name in LEVELS}
    ranks = cora_ranking.table.set_index("method")["rank"].to_dict()
    assert shown["mean_rank"].to_dict() == pytest.approx(ranks)


def test_the_terminal_shows_ranking_and_score_after_the_tables(built: Report) -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    for name in built.printout.studies["toy"].documents:
        show(built.printout.document(name), console)
    text = console.export_text()
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    heads = ["table 1 (non-overlapping)", "spread over", "ranking of methods", "reproduction score"]
    places = [next(number for number, line in enumerate(lines) if head in line.lower()) for head in heads]
    assert places == sorted(places)
    row = next(line for line in lines[places[2] :] if line.startswith("│ Local "))
    parts = [part.strip() for part in row.strip("│").split("│")]
    assert parts[0] == "Local"
    assert (parts[1], parts[4]) == ("1", "4/4")


def test_latex_of_the_statistics_is_ascii(built: Report, folder: Path) -> None:
    paths = list(folder.rglob("*.tex"))
    assert len(paths) == len(built.documents)
    for path in paths:
        body = [line for line in path.read_text(encoding="utf-8").splitlines() if line[:1] != "%"]
        assert all(line.isascii() for line in body), path.name


def test_one_task_is_no_ranking_on_the_terminal() -> None:
    def shown(tasks_: Sequence[tuple[str, int]]) -> str:
        written = io.StringIO()
        show(printed_document(document(filled(tasks_))), Console(file=written, width=100))
        return written.getvalue()

    assert "Mean rank" not in shown(CORA_TASKS[:1])
    assert "group of ties" in shown(CORA_TASKS[:1])
    assert "Mean rank" in shown(CORA_TASKS[:2])
