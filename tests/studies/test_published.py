import csv
from collections import Counter
from pathlib import Path

import pytest

from bench.errors import RequestError
from bench.studies.published import COLUMNS, Key, Published, published, values

FOLDER = Path(__file__).parents[2] / "results" / "published"
PAPERS = [file.stem for file in sorted(FOLDER.glob("*.csv")) if file.read_text().startswith("paper,table,")]


def accuracies(paper: str) -> dict[Key, Published]:
    """The accuracies that a paper prints without a further setting."""
    return {
        key: value
        for (key, setting, metric), value in values(paper).items()
        if (setting, metric) == ("", "accuracy")
    }


def test_percent_stays_and_fractions_become_percent() -> None:
    value = accuracies("fedsheafhn_final")[("Table 1", "cora", "non-overlapping", 10, "local")]
    assert (value.mean, value.std, value.unit) == (71.26, 0.29, "percent")
    value = accuracies("fedhgn")[("Table 2", "coauthorship_cora", "label-dirichlet", 3, "local_hgnn")]
    assert (value.mean, value.std, value.unit) == (53.53, 2.34, "percent")


def test_out_of_memory_has_a_status_and_no_mean() -> None:
    value = accuracies("fedsheafhn_final")[("Table 1", "ogbn-arxiv", "non-overlapping", 10, "fggp")]
    assert (value.mean, value.std, value.status) == (None, None, "OOM")
    lost = [value for paper in PAPERS for value in published(paper) if value.mean is None]
    assert len(lost) == 4
    assert {value.status for value in lost} == {"OOM"}


def test_a_value_over_the_whole_data_set_has_no_number_of_clients() -> None:
    value = accuracies("fedhgn")[("Table 2", "coauthorship_cora", "global", None, "global_hgnn")]
    assert value.mean == 69.53


def test_what_is_no_accuracy_stays_as_printed() -> None:
    shares = [value for value in published("fedsheafhn_final") if value.unit == "fraction"]
    assert len(shares) == 60
    assert all(value.metric != "accuracy" for value in shares)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_row_is_read(paper: str) -> None:
    with (FOLDER / f"{paper}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert Counter(row["table"] for row in rows) == Counter(value.table for value in published(paper))
    no_std = sum(row["std"] == "" for row in rows)
    assert sum(value.std is None for value in published(paper)) == no_std


def test_main_tables_are_complete() -> None:
    final = [key for key in accuracies("fedsheafhn_final") if key.table in ("Table 1", "Table 2")]
    assert len(final) == 6 * 4 * 11
    earlier = [key for key in accuracies("fedsheafhn_earlier") if key.table in ("Table 1", "Table 2")]
    assert len(earlier) == 6 * 4 * 8


@pytest.mark.parametrize(
    ("wrong", "said"), [("status", "the column 'status' is missing"), ("mean", "line 2: not a number")]
)
def test_a_file_of_ones_own_is_checked(tmp_path: Path, wrong: str, said: str) -> None:
    row = dict.fromkeys(COLUMNS, "1") | {"mean": "many" if wrong == "mean" else "1"}
    columns = [name for name in COLUMNS if name != wrong or wrong == "mean"]
    text = "\n".join([",".join(columns), ",".join(row[name] for name in columns)])
    (tmp_path / "mine.csv").write_text(text, encoding="utf-8")
    with pytest.raises(RequestError, match=said):
        published("mine", tmp_path)


@pytest.mark.parametrize("column", ["mean", "std"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_what_is_not_finite_is_no_value_to_be_judged_by(tmp_path: Path, column: str, value: str) -> None:
    row = dict.fromkeys(COLUMNS, "1") | {column: value}
    (tmp_path / "mine.csv").write_text(
        "\n".join([",".join(COLUMNS), ",".join(row[name] for name in COLUMNS)])
    )
    with pytest.raises(RequestError, match="line 2: "):
        published("mine", tmp_path)


def test_a_second_value_of_one_place_is_refused_with_both_lines(tmp_path: Path) -> None:
    row = dict.fromkeys(COLUMNS, "1")
    place = ("table", "dataset", "scenario", "clients", "method", "setting", "metric")
    other_rows = [row | {name: "2"} for name in place]
    for rows in ([row, *other_rows], [row, *other_rows, row | {"mean": "3", "study": "another"}]):
        lines = [",".join(each[name] for name in COLUMNS) for each in rows]
        file = tmp_path / f"rows{len(rows)}.csv"
        file.write_text("\n".join([",".join(COLUMNS), *lines]), encoding="utf-8")
    assert len(published("rows8", tmp_path)) == 8
    with pytest.raises(RequestError, match=r"rows9\.csv: line 10: .* line 2 "):
        published("rows9", tmp_path)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_bytes(b"paper,table\n\xff\xfe,1\n")
    with pytest.raises(RequestError, match=r"mine\.csv"):
        published("mine", tmp_path)


def test_unknown_paper_names_the_nearest() -> None:
    with pytest.raises(RequestError, match="did you mean 'fedhgn'"):
        published("fedhgnn")
