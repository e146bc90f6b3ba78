"""The document of a study's score."""

import csv
from pathlib import Path

import pytest
from ranked_runs import beside_print
from stored_runs import MemoryStore
from study_cells import report_of

from bench.report.document import Document
from bench.report.request import Request
from bench.reports.fedsheafhn import FedSheafHN

PAPER = FedSheafHN().paper_title("fedsheafhn_final")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def cora(folder: Path) -> Document:
    """The score of what is on Cora."""
    report = report_of(beside_print(), folder, Request(datasets=("cora",)), FedSheafHN)
    (document,) = (each for each in report.documents if each.name == "reproduction")
    return document


def test_experiments_are_counted_and_never_twice(cora: Document, folder: Path) -> None:
    with (folder / "fedsheafhn/reproduction/score.csv").open(encoding="utf-8") as file:
        rows = {(row["paper"], row["verdict"]): int(row["cells"]) for row in csv.DictReader(file)}
    # 'robust' shows Tables 1 and 2 again; the other experiments print numbers of ogbn-arxiv alone.
    assert sum(count for (paper, _), count in rows.items() if paper == "fedsheafhn_final") == 44
    # Local; the runs of Flow lack its hyper-parameters, so they are not in the usual setting.
    assert rows["fedsheafhn_final", "reproduced"] == 1


def test_a_paper_is_a_column_of_the_score(cora: Document) -> None:
    table = cora.views[0]
    place = table.columns.index(PAPER)
    column = {label: entries[place].text for label, entries in table.rows}
    assert (column["published cells"], column["reproduced"]) == ("44", "1 (2.3 %)")
    assert column["columns with tau"] == "0"
    assert "no table here" not in column  # filters leave cells out on purpose


def test_values_that_only_experiments_have_are_counted(tmp_path: Path) -> None:
    report_of(beside_print(), tmp_path, study=FedSheafHN)
    lines = (tmp_path / "fedsheafhn/reproduction/table.md").read_text(encoding="utf-8").splitlines()
    heads, rows = (
        next(line for line in lines if line.startswith(start)).strip("| ").split(" | ")
        for start in ("| Table |", f"| {PAPER}, Table 4 |")
    )
    counts = dict(zip(heads, rows, strict=True))
    assert heads.count("not run") == 1, "a verdict that several states share is counted once"
    assert (counts["cells"], counts["not run"], counts["reproduced"]) == ("12", "12", "0")


def test_one_published_cell_has_no_score(tmp_path: Path) -> None:
    database = MemoryStore()
    database.add("fedprox", 0, [70], dataset="citeseer")
    one = Request(datasets=("citeseer",), clients=(10,), scenarios=("non-overlapping",), methods=("fedprox",))
    report = report_of(database, tmp_path, one, FedSheafHN)
    assert "reproduction" not in {document.name for document in report.documents}
