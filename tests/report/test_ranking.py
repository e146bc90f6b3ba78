"""The ranking as a document: its tables, figure, files and what a terminal shows of it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ranked_runs import CORA_TASKS, LEVELS, filled, ranking_of
from rich.console import Console
from stored_runs import CORA, MemoryStore
from study_cells import csv_rows, report_of
from toy_study import ToyStudy

from bench.frames.ranking import Ranking
from bench.report.document import Document, Report
from bench.report.report import compose
from bench.report.request import Request
from bench.report.table import rank_of, text_of
from bench.report.terminal import show


def document(database: MemoryStore, **request: Any) -> Document:
    report = compose(database, Request(**request), {"toy": ToyStudy})
    (found,) = (each for each in report.documents if each.name == "ranking")
    return found


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
    return document(filled(), datasets=("cora",))


@pytest.fixture(scope="module")
def cora_ranking() -> Ranking:
    """The same as numbers."""
    ranking = ranking_of(filled())
    assert ranking is not None
    return ranking


def test_a_method_without_a_task_is_ranked_on_what_it_has() -> None:
    database = filled()
    for seed in (0, 1):
        database.add("flow", seed, [95, 96, 94, 95, 97, 95])  # the best, in one task
    database.add("fggp", 0, None, state="oom", reason="too large")
    doc = document(database)
    table = doc.views[0]
    entries = {label: [text_of(entry) for entry in row] for label, row in table.rows}
    assert table.columns[:4] == ["Group", "Mean rank", "95 % interval", "Tasks"]
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
        "4 tasks",
        "6 tests over 4 tasks",
        "2000 draws, seed 0",
        f"Protocol: Cora: {CORA.rounds} rounds",
    ):
        assert part in caption


def test_first_in_a_task_are_all_that_are_not_worse_than_the_best(cora_document: Document) -> None:
    groups = cora_document.views[1]
    for label, row in groups.rows:
        good = label in ("Local", "FedSheafHN")
        assert {text_of(entry).rpartition(" ")[2] for entry in row} == {"(1)" if good else "(2)"}
        assert {rank_of(entry) for entry in row} == {1 if good else 0}


def test_too_few_units_are_named_and_not_tested() -> None:
    """Two runs in common are a test, one is none."""
    database = MemoryStore()
    for method, seeds in {"local": (0, 1), "fedavg": (0, 1), "fedprox": (1, 2), "fedper": (3, 4)}.items():
        for seed in seeds:
            database.add(method, seed, [70, 80])
    doc = document(database)
    # FedProx with Local and FedAvg, FedPer with all.
    assert doc.notes[-1] == "no test in Cora, non-overlapping, 10 clients: 5 of 6 pairs of methods"
    tests = doc.records["pairs"].query("first == 'local'").set_index("second")
    assert tests["difference"].dropna().to_dict() == {"fedavg": 0.0, "fedprox": 0.0}
    assert tests["verdict"].to_dict() == {"fedavg": "equivalent", "fedprox": "no test", "fedper": "no test"}
    assert text_of(dict(doc.views[0].rows)["FedPer"][0]).endswith("(1)")


def test_a_single_run_has_no_group() -> None:
    database = MemoryStore()
    for method, seeds in {"local": (0, 1), "fedavg": (0, 1), "fedper": (0,)}.items():
        for seed in seeds:
            database.add(method, seed, [70, 80])
    groups = {label: text_of(entry) for label, (entry,) in document(database).views[0].rows}
    assert groups == {"Local": "75.00 (1)", "FedAvg": "75.00 (1)", "FedPer": "75.00"}


def test_the_numbers_behind_the_tables_are_written(
    built: Report, folder: Path, cora_ranking: Ranking
) -> None:
    assert built.documents
    methods = {row["method"]: row for row in csv_rows(folder / "toy/ranking/methods.csv")}
    assert list(methods) == cora_ranking.ranks["method"].tolist()
    assert methods["local"]["planned"] == methods["local"]["tasks"] == "4"
    local = cora_ranking.ranks.set_index("method").loc["local"]
    for column in ("rank", "low", "high", "minus_baseline"):
        assert float(methods["local"][column]) == pytest.approx(local[column], abs=1e-4)
    every = csv_rows(folder / "toy/ranking/pairs.csv")
    pairs = [row for row in every if row["dataset"]]
    assert (len(pairs), len(every)) == (4 * 6, 5 * 6)  # four tasks, and those over tasks
    first = cora_ranking.tests.iloc[0]
    assert (pairs[0]["first"], pairs[0]["second"]) == (first["first"], first["second"])
    assert float(pairs[0]["p_holm"]) == pytest.approx(first["p_holm"], rel=1e-5)
    assert pairs[0]["verdict"] == first["verdict"]
    assert {row["unit"] for row in every if not row["dataset"]} == {"task"}
    diagram = {row["method"]: row for row in csv_rows(folder / "toy/ranking/ranks.csv")}
    assert set(diagram) == set(LEVELS)
    numbers = csv_rows(folder / "toy/table1_spread/numbers.csv")
    assert {row["method"] for row in numbers} == {*LEVELS, "majority", "fedavg_ft"}


def test_the_terminal_shows_ranking_and_score_after_the_tables(built: Report) -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    for each in built.documents:
        show(each, console)
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


def test_one_task_is_no_ranking_on_the_terminal() -> None:
    def shown(tasks_: Sequence[tuple[str, int]]) -> str:
        written = io.StringIO()
        show(document(filled(tasks_)), Console(file=written, width=100))
        return written.getvalue()

    assert "Mean rank" not in shown(CORA_TASKS[:1])
    assert "group of ties" in shown(CORA_TASKS[:1])
    assert "Mean rank" in shown(CORA_TASKS[:2])
