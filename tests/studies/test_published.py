"""The papers' numbers: read as printed, accuracies in percent, every row once."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from bench.errors import RequestError
from bench.studies.published import FOLDER, Published, published

PAPERS = [file.stem for file in sorted(FOLDER.glob("*.csv")) if file.read_text().startswith("paper,table,")]
PLACE = ("table", "dataset", "scenario", "clients", "method", "setting", "metric")


def accuracies(paper: str) -> dict[tuple[object, ...], Published]:
    """The accuracies that a paper prints without a further setting, by their place."""
    return {
        (value.table, value.dataset, value.scenario, value.clients, value.method): value
        for value in published(paper)
        if (value.setting, value.metric) == ("", "accuracy")
    }


@pytest.mark.parametrize(
    ("paper", "place", "printed"),
    [
        ("fedsheafhn_final", ("Table 1", "cora", "non-overlapping", 10, "local"), (71.26, 0.29, "")),
        # Printed as fractions.
        ("fedhgn", ("Table 2", "coauthorship_cora", "label-dirichlet", 3, "local_hgnn"), (53.53, 2.34, "")),
        ("fedhgn", ("Table 2", "coauthorship_cora", "global", None, "global_hgnn"), (69.53, 2.16, "")),
        ("fedsheafhn_final", ("Table 1", "ogbn-arxiv", "non-overlapping", 10, "fggp"), (None, None, "OOM")),
    ],
)
def test_accuracies_are_in_percent_and_a_missing_one_says_why(
    paper: str, place: tuple[object, ...], printed: tuple[object, ...]
) -> None:
    value = accuracies(paper)[place]
    assert (value.mean, value.std, value.status) == printed
    assert value.unit == "percent"


def test_only_accuracies_become_percent() -> None:
    shares = [value for value in published("fedsheafhn_final") if value.unit == "fraction"]
    assert len(shares) == 60
    assert all(value.metric != "accuracy" for value in shares)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_row_is_read_and_stands_once(paper: str) -> None:
    with (FOLDER / f"{paper}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    values = published(paper)
    assert Counter(row["table"] for row in rows) == Counter(value.table for value in values)
    assert len({tuple(getattr(value, name) for name in PLACE) for value in values}) == len(values)
    assert sum(value.std is None for value in values) == sum(row["std"] == "" for row in rows)
    assert {value.status for value in values if value.mean is None} <= {"OOM"}


def test_main_tables_are_complete() -> None:
    for paper, methods in (("fedsheafhn_final", 11), ("fedsheafhn_earlier", 8)):
        main = [table for table, *_ in accuracies(paper) if table in ("Table 1", "Table 2")]
        assert len(main) == 6 * 4 * methods


@pytest.mark.parametrize(
    ("rows", "said"), [("paper\nmine", "metric"), ("mean,metric,unit\nmany,,", "mine.csv")]
)
def test_a_file_of_ones_own_that_cannot_be_read_is_named(tmp_path: Path, rows: str, said: str) -> None:
    (tmp_path / "mine.csv").write_text(rows, encoding="utf-8")
    with pytest.raises(RequestError, match=said):
        published("mine", tmp_path)
