import csv
from collections import Counter
from pathlib import Path

import pytest

from bench.errors import RequestError
from bench.studies.published import COLUMNS, PLACE, Published, published

FOLDER = Path(__file__).parents[2] / "results" / "published"
PAPERS = [file.stem for file in sorted(FOLDER.glob("*.csv")) if file.read_text().startswith("paper,table,")]


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
        (
            "fedhgn",
            ("Table 2", "coauthorship_cora", "label-dirichlet", 3, "local_hgnn"),
            (53.53, 2.34, ""),
        ),
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


def test_only_accuracies_become_percent_and_all_that_lack_a_mean_ran_out_of_memory() -> None:
    shares = [value for value in published("fedsheafhn_final") if value.unit == "fraction"]
    assert len(shares) == 60
    assert all(value.metric != "accuracy" for value in shares)
    lost = [value for paper in PAPERS for value in published(paper) if value.mean is None]
    assert [value.status for value in lost] == ["OOM"] * 4


@pytest.mark.parametrize("paper", PAPERS)
def test_every_row_is_read(paper: str) -> None:
    with (FOLDER / f"{paper}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert Counter(row["table"] for row in rows) == Counter(value.table for value in published(paper))
    no_std = sum(row["std"] == "" for row in rows)
    assert sum(value.std is None for value in published(paper)) == no_std


def test_main_tables_are_complete() -> None:
    for paper, methods in (("fedsheafhn_final", 11), ("fedsheafhn_earlier", 8)):
        main = [table for table, *_ in accuracies(paper) if table in ("Table 1", "Table 2")]
        assert len(main) == 6 * 4 * methods


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("status", None, "line 2: 'status'"),
        ("mean", "many", "line 2: "),
        ("mean", "inf", "line 2: inf is no finite number"),
    ],
)
def test_a_file_of_ones_own_is_checked(tmp_path: Path, column: str, value: str | None, said: str) -> None:
    row = {name: value if name == column else "1" for name in COLUMNS}
    texts = {name: text for name, text in row.items() if text is not None}
    text = "\n".join([",".join(texts), ",".join(texts.values())])
    (tmp_path / "mine.csv").write_text(text, encoding="utf-8")
    with pytest.raises(RequestError, match=said):
        published("mine", tmp_path)


def test_a_second_value_of_one_place_is_refused(tmp_path: Path) -> None:
    row = dict.fromkeys(COLUMNS, "1")
    other_rows = [row | {name: "2"} for name in PLACE]
    for rows in ([row, *other_rows], [row, *other_rows, row | {"mean": "3", "study": "another"}]):
        lines = [",".join(each[name] for name in COLUMNS) for each in rows]
        file = tmp_path / f"rows{len(rows)}.csv"
        file.write_text("\n".join([",".join(COLUMNS), *lines]), encoding="utf-8")
    assert len(published("rows8", tmp_path)) == 8
    with pytest.raises(RequestError, match=r"rows9\.csv: line 10: a second value"):
        published("rows9", tmp_path)


def test_unknown_paper_names_the_nearest() -> None:
    with pytest.raises(RequestError, match="did you mean 'fedhgn'"):
        published("fedhgnn")
