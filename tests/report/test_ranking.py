"""The ranking as a document: its tables, figure, files and what a terminal shows of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranked_runs import LEVELS, filled, ranking_of
from stored_runs import CORA, MemoryStore
from study_cells import csv_rows, report_of
from toy_study import ToyStudy

from bench.report.document import Document, Part
from bench.report.report import compose
from bench.report.request import Request


def document(database: MemoryStore) -> Document:
    (report,) = compose(database, Request(), {"toy": ToyStudy})
    (found,) = (each for each in report.documents if each.name == "ranking")
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Part, Path]:
    """The report over the four tasks of Cora, and its folder."""
    folder = tmp_path_factory.mktemp("ranking")
    return report_of(filled(), folder, Request(datasets=("cora",))), folder


def test_a_method_without_a_task_is_ranked_on_what_it_has() -> None:
    database = filled()
    for seed in (0, 1):
        database.add("flow", seed, [95, 96, 94, 95, 97, 95])  # the best, in one task
    database.add("fggp", 0, None, state="oom", reason="too large")
    doc = document(database)
    table = doc.views[0]
    entries = {label: [entry.text for entry in row] for label, row in table.rows}
    assert table.columns[:4] == ["Group", "Mean rank", "95 % interval", "Tasks"]
    # Planned are the cells that the paper prints: Flow's on Cora, Local's on all data sets.
    assert (entries["Flow"][:2], entries["Flow"][3]) == (["-", "1.00"], "1/4")
    assert (entries["Local"][0], entries["Local"][3]) == ("1", "4/9")
    assert list(entries)[-1] == "Flow"  # those that lack tasks stand last, whatever their rank
    assert "FGGP" not in entries
    assert "Majority class" not in entries
    assert "nothing is imputed" in " ".join(doc.fine_print)
    assert "FGGP" in next(note for note in doc.notes if note.startswith("without numbers"))


def test_captions_name_the_reading_and_count_tasks(built: tuple[Part, Path]) -> None:
    (found,) = (each for each in built[0].documents if each.name == "ranking")
    caption = " ".join((*found.caption, *found.fine_print))
    for part in ("stage trained, rule best_val", "4 tasks", f"Cora: {CORA.rounds} rounds"):
        assert part in caption


def test_too_few_units_are_not_tested() -> None:
    """Two runs in common are a test, one is none; a single run has no group."""
    database = MemoryStore()
    runs = {"local": (0, 1), "fedavg": (0, 1), "fedprox": (1, 2), "fedper": (3, 4), "pfedhn": (0,)}
    for method, seeds in runs.items():
        for seed in seeds:
            database.add(method, seed, [70, 80])
    doc = document(database)
    tests = doc.records["pairs"].query("first == 'local'").set_index("second")
    assert tests["difference"].dropna().to_dict() == {"fedavg": 0.0, "fedprox": 0.0, "pfedhn": 0.0}
    verdicts = dict.fromkeys(["fedprox", "fedper", "pfedhn"], "no test")
    assert tests["verdict"].to_dict() == {"fedavg": "equivalent", **verdicts}
    groups = {label: values[0].text for label, values in doc.views[0].rows}
    assert (groups["FedPer"], groups["pFedHN"]) == ("1", "-")


def test_the_numbers_behind_the_tables_are_written(built: tuple[Part, Path]) -> None:
    folder = built[1]
    cora_ranking = ranking_of(filled())
    assert cora_ranking is not None
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
