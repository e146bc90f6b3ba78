"""The document of a study's score."""

from __future__ import annotations

import pandas as pd
import pytest
from ranked_runs import beside_print

from bench.frames.graded_cells import Results, collect
from bench.report.document import Document
from bench.report.reproduction import reproduction
from bench.report.table import Table
from bench.reports.fedsheafhn import FedSheafHN

STUDY = FedSheafHN()
PAPER = STUDY.paper_title("fedsheafhn_final")


@pytest.fixture(scope="module")
def results() -> Results:
    return collect(beside_print(), [STUDY])


def score_of(results: Results, cells: pd.DataFrame, is_whole: bool = False) -> Document | None:
    return reproduction(STUDY, results, cells, is_whole)


def column(table: Table, head: str) -> dict[str, str]:
    place = table.columns.index(head)
    return {label: str(cells[place]) for label, cells in table.rows if cells[place]}


def test_experiments_are_counted_and_never_twice(results: Results) -> None:
    cora = score_of(results, results.cells[results.cells["dataset"] == "cora"])
    assert cora is not None
    score = cora.records["score"]
    counts = score[score["paper"] == "fedsheafhn_final"].set_index("verdict")["cells"]
    # 'robust' shows Tables 1 and 2 again; the other experiments print numbers of ogbn-arxiv alone.
    assert counts.sum() == 44
    # Local; the runs of Flow lack its hyper-parameters, so they are not in the usual setting.
    assert counts["reproduced"] == 1
    texts = column(cora.views[0], PAPER)
    assert (texts["published cells"], texts["reproduced"]) == ("44", "1 (2.3 %)")
    assert texts["columns with tau"] == "0"
    assert "no table here" not in texts  # filters leave cells out on purpose


def test_values_that_only_experiments_have_are_counted(results: Results) -> None:
    whole = score_of(results, results.cells, is_whole=True)
    assert whole is not None
    table = next(table for table in whole.views if table.name == "tables")
    assert table.columns.count("not run") == 1, "a verdict that several states share is counted once"
    entries = zip(table.columns, dict(table.rows)[f"{PAPER}, Table 4"], strict=True)
    counts = {head: cell for head, cell in entries if cell}
    assert (counts["cells"], counts["not run"], counts["reproduced"]) == ("12", "12", "0")


def test_one_published_cell_has_no_score(results: Results) -> None:
    cells = results.cells
    one = cells[(cells["dataset"] == "citeseer") & (cells["clients"] == 10) & (cells["method"] == "fedprox")]
    assert score_of(results, one[one["document"] == "table1"]) is None
