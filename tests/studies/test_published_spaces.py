"""What papers say that they searched stands beside the searches."""

from __future__ import annotations

from pathlib import Path

from toy_study import ToyStudy

from bench.reports.fedsheafhn import FedSheafHN
from bench.resolve import resolve
from bench.studies.published_spaces import printed_settings, published_lines
from bench.tune.tuning import Tuning, search_space

HEAD = "paper,component,name,values,method,setting\n"
CELL = resolve("cora", "non-overlapping", 10, "fedsheafhn", 0)


def study_with(folder: Path, text: str) -> ToyStudy:
    folder.mkdir()
    (folder / "hyperparameters.csv").write_text(text)
    return type("Own", (ToyStudy,), {"published": folder})()


def test_a_study_has_the_rows_of_its_papers_that_the_suite_has_a_setting_for(tmp_path: Path) -> None:
    found = printed_settings(
        study_with(
            tmp_path / "published",
            HEAD
            + "toy,client,rate,0.1;0.2,fedsheafhn,client.learning_rate\n"
            + "toy,client,colour,red,,\n"
            + "another_paper,client,rate,7,fedsheafhn,client.learning_rate\n",
        )
    )
    assert [(row["component"], row["values"]) for row in found] == [("client", "0.1;0.2")]


def test_every_setting_of_the_shipped_papers_is_one_of_the_method_named() -> None:
    rows = printed_settings(FedSheafHN())
    assert len(rows) == 9, "Table 9 of the paper has nine lines"
    for row in rows:
        assert row["setting"] in resolve("cora", "non-overlapping", 10, row["method"], 0).settings()


def test_a_search_to_be_done_says_what_its_paper_had() -> None:
    lines = published_lines([Tuning(CELL, search_space(CELL), (1000,), 2)])
    (line,) = [line for line in lines if line.startswith("fedsheafhn method.hypernetwork_learning_rate: ")]
    assert "0.02, 0.01, 0.001 in fedsheafhn_final" in line
    assert line.endswith("here 0.001, 0.01, 0.02")
    local = CELL.model_copy(update={"method": "local", "hyper": {}})
    assert published_lines([Tuning(local, search_space(local), (1000,), 2)]) == []
