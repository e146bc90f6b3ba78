import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import nan
from pathlib import Path

import pandas as pd
import pytest
from stored_runs import CORA, MemoryStore
from study_cells import csv_rows, report_of, shown, spec
from toy_study import ToyStudy

from bench.errors import RequestError
from bench.frames.graded_cells import WRITTEN
from bench.report.document import Part, Table, Value, measured
from bench.report.render import escape_latex, escape_markdown, latex_table, markdown_table
from bench.report.request import Request
from bench.report.score import MEASURED
from bench.report.tables import document_of
from bench.report.terminal import beside, brief, show, text_of
from bench.reports.fedsheafhn import FedSheafHN
from bench.studies.published import published
from bench.studies.settings import Column
from bench.studies.study import Study


def database() -> MemoryStore:
    """Two seeds of two methods on Cora/10 with curves of three rounds, and one failed run."""
    made = MemoryStore()
    for seed in (0, 1):
        made.add("local", seed, [[10, 20], [50, 60], [72, 70 + seed]])
        made.add("fedavg", seed, [[0, 10], [30, 40], [60, 62 - 2 * seed]])
    made.add("flow", 0, None, state="failed", reason="Key_Error: 100% of {x} & y")
    return made


def report(out: Path, request: Request | None = None, source: MemoryStore | None = None) -> Part:
    return report_of(source or database(), out, request)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def built(written: Path) -> Part:
    """The report of ``database``, to be read alone."""
    return report(written)


def test_cells_csv_has_one_row_a_cell_with_the_promised_columns(built: Part, written: Path) -> None:
    text = (written / "cells.csv").read_text(encoding="utf-8")
    assert text.splitlines()[0] == ",".join(WRITTEN)
    rows = csv_rows(written / "cells.csv")
    names = [tuple(row[name] for name in (*list(WRITTEN)[:7], "measure")) for row in rows]
    assert len(set(names)) == len(names)
    (local,) = [row for row in rows if names_of(row) == ("Table 1", "cora", "10", "local")]
    wanted = {
        "study": "toy",
        "table": "Table 1",
        "dataset": "cora",
        "scenario": "non-overlapping",
        "clients": "10",
        "method": "local",
        "setting": "",
        "stage": "trained",
        "rule": "best_val",
        "n": "2",
        "mean": "71.2500",  # (71 + 71.5) / 2
        "std": "0.3536",  # 0.5 / sqrt(2)
        "s_d": "",
        "partitions": "1",
        "published_mean": "71.2600",
        "published_std": "0.2900",
        "difference": "-0.0100",
        "verdict": "compatible",  # two runs
        "n_p": "5",
        "margin": "2.0000",
        "document": "table1",
        "line": "Local",
        "low": "68.0734",  # 71.25 - t(0.975, 1) * 0.25, t = 12.7062
        "high": "74.4266",
    }
    assert {name: local[name] for name in wanted} == wanted
    counts = Counter(row["table"] for row in rows if row["method"] != "fedavg_ft")
    printed = Counter(value.table for value in published("toy", ToyStudy.published))
    earlier = published("toy_earlier", ToyStudy.published)
    assert counts == {**printed, "earlier Table 1": len(earlier)}


def names_of(row: dict[str, str]) -> tuple[str, ...]:
    return row["table"], row["dataset"], row["clients"], row["method"]


def test_missing_cells_are_a_dash_with_their_reason_in_the_notes(built: Part, written: Path) -> None:
    document = built.documents[0]
    flow = next(entries for label, entries in document.views[0].rows if label == "Flow")
    (value,) = flow
    assert (value.text, value.verdict) == ("-", "failed")
    note = "failed (seed 0: Key_Error: 100% of {x} & y): Flow (Cora, 10 clients)"
    assert note in document.notes
    text = (written / "toy/table1/table.md").read_text(encoding="utf-8")
    assert note.replace("_", r"\_") in text


def test_what_is_not_in_the_caption_is_in_the_fine_print(built: Part) -> None:
    document = built.documents[0]
    caption, fine_print = " ".join(document.caption), " ".join(document.fine_print)
    assert len(document.caption) <= 4
    for part in (
        "the model after local training",
        "Cora: 100 rounds, 3 local epochs, split 40/30/30, partition seed 123",
        "Seeds: 0-1",
        "Not tuned",
    ):
        assert part in caption
    assert all(remark in fine_print for remark in ToyStudy.remarks)


def clashes(source: MemoryStore, study: type[Study] = ToyStudy) -> list[str]:
    """What a table says of runs on other clients."""
    document = document_of(shown(study, "table1", source))
    return [line for line in document.fine_print if line.startswith("Not the same clients")]


def test_captions_know_a_partition_drawn_for_every_seed() -> None:
    source = MemoryStore()
    for seed, partition in enumerate(("aaaaaaaa", "bbbbbbbb")):
        drawn = CORA.model_copy(update={"partition_seed": seed})
        for method in ("local", "fedavg"):
            source.add(method, seed, [60, 62], protocol=drawn, partition_hash=partition)
    assert clashes(source) == []
    source.add("fedper", 1, [60, 62], protocol=drawn, partition_hash="c" * 8)
    (note,) = clashes(source)
    assert "partition seed 1" in note
    assert "partition seed 0" not in note


def test_a_map_without_a_comparable_cell_is_left_out() -> None:
    source = MemoryStore()
    ten = Column("cora", "non-overlapping", 10)
    for seed in (0, 1):  # the printed value is taken over from another paper
        source.add_run(spec("quickstart", "fedprox", seed, ten), [60, 60])
    assert document_of(shown(FedSheafHN, "table1", source)).verdicts is None
    for seed in (0, 1):
        source.add_run(spec("quickstart", "local", seed, ten), [72, 70])
    filled = document_of(shown(FedSheafHN, "table1", source)).verdicts
    assert filled is not None
    assert [label for label, _ in filled.rows] == ["Local", "FedProx"]


def test_latex_needs_booktabs_alone_and_is_plain_ascii(built: Part, written: Path) -> None:
    text = (written / "toy/table1/table.tex").read_text(encoding="utf-8")
    assert text.count(r"\begin{table*}") == text.count(r"\end{table*}") > 0
    assert r"\textbf{71.25 $\pm$ 0.35}" in text
    assert re.findall(r"\\usepackage\{([^}]*)\}", text) == ["booktabs"]
    assert "resizebox" not in text  # which would need graphicx
    body = "\n".join(line for line in text.splitlines() if not line.startswith(("%", r"\label")))
    assert body.isascii()
    assert not re.search(r"(?<!\\)_", body)


@pytest.mark.parametrize(
    ("escape", "text", "escaped"),
    [
        (escape_latex, "100% of A_B & C#1", r"100\% of A\_B \& C\#1"),
        (escape_latex, "{x}$y^2~", r"\{x\}\$y\textasciicircum{}2\textasciitilde{}"),
        (escape_latex, "a\\b", r"a\textbackslash{}b"),
        (escape_latex, "-1.0 ± 0.5", r"$-$1.0 $\pm$ 0.5"),
        (escape_markdown, "a|b\n<script>*x*", r"a\|b \<script\>\*x\*"),
    ],
)
def test_special_characters(escape: Callable[[str], str], text: str, escaped: str) -> None:
    assert escape(text) == escaped


def table_of(
    heads: Iterable[tuple[str, str]], rows: Mapping[str, Sequence[Value | None]], stub: str = "M"
) -> Table:
    columns = pd.MultiIndex.from_tuples(list(heads))
    return Table("t", "T", pd.DataFrame(rows.values(), pd.Index(rows, name=stub), columns, dtype=object))


def small() -> Table:
    rows = {"A": [measured(90, rank=1), measured(-1.5)], "B|": [measured(80, rank=2), measured(nan)]}
    return table_of([("Pub_Med", "10"), ("Pub_Med", "20")], rows, "Method")


def test_best_is_bold_and_second_underlined() -> None:
    assert markdown_table(small()) == (
        "| Method | Pub\\_Med, 10 | Pub\\_Med, 20 |\n"
        "| --- | ---: | ---: |\n"
        "| A | **90.00** | -1.50 |\n"
        "| B\\| | <u>80.00</u> | - |"
    )
    assert latex_table(small(), "A_B", "tab:small").splitlines() == [
        r"\begin{table}",
        r"\caption{A\_B}",
        r"\label{tab:small}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r" & \multicolumn{2}{c}{Pub\_Med} \\",
        r"Method & 10 & 20 \\",
        r"\midrule",
        r"A & \textbf{90.00} & $-$1.50 \\",
        r"B\textbar{} & \underline{80.00} & - \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def test_what_stands_beside_a_number_is_in_brackets() -> None:
    value = Value("90.00", "± 1.00", 1, "89.50 ± 0.20", "+0.50", "reproduced")
    lost = Value("-", published_text="80.00", verdict="failed")
    table = table_of([("", "a"), ("", "b")], {"A": [value, lost], "B": [None, Value("1")]})
    assert markdown_table(table).splitlines()[2:] == [
        r"| A | **90.00 ± 1.00** (89.50 ± 0.20, +0.50 =) | - (80.00, failed) |",
        "| B |  | 1 |",
    ]
    row = r"A & \textbf{90.00 $\pm$ 1.00} (89.50 $\pm$ 0.20, +0.50 =) & - (80.00, failed) \\"
    assert row in latex_table(table, "", "t").splitlines()


def test_wide_tables_are_cut_between_groups_and_within_wider_ones() -> None:
    table = table_of(zip("aabbbc", "123456", strict=True), {"r": list(map(Value, "012345"))})
    blocks = table.by_group(2)
    assert [block.groups for block in blocks] == [[("a", 2)], [("b", 2)], [("b", 1)], [("c", 1)]]
    assert [cell.text for block in blocks for cell in block.rows[0][1]] == list("012345")


def test_a_block_leaves_out_rows_that_have_no_place_in_its_columns() -> None:
    value = Value("1")
    rows: dict[str, list[Value | None]] = {"a": [value, None], "b": [value, value], "c": [None, Value("-")]}
    first, second = table_of([("x", "1"), ("y", "2")], rows).by_group()
    assert [label for label, _ in first.rows] == ["a", "b"]
    assert [label for label, _ in second.rows] == ["b", "c"]  # c was to be run there


def test_ties_share_a_place() -> None:
    source = MemoryStore()
    for method, right in (("local", 72), ("fedavg", 72), ("fedper", 70), ("fedprox", 60)):
        source.add(method, 0, [right])
    view = document_of(shown(ToyStudy, "table1", source)).views[0]
    places = {label: values[0].rank for label, values in view.rows}
    assert [places[name] for name in ("Local", "FedAvg", "FedPer", "FedProx")] == [1, 1, 2, 0]


def test_a_filter_gives_a_table_of_just_that(tmp_path: Path) -> None:
    source = database()
    source.add("local", 0, [60], dataset="citeseer")
    report(tmp_path, Request(datasets=("cora",), clients=(10,), methods=("local", "flow")), source)
    rows = csv_rows(tmp_path / "cells.csv")
    assert {names_of(row)[1:] for row in rows} == {("cora", "10", "local"), ("cora", "10", "flow")}
    assert not (tmp_path / "toy/table2/table.md").exists()


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(datasets=("coar",)), "unknown dataset 'coar': did you mean 'cora'"),
        (Request(methods=("locla",)), "did you mean 'local'"),
        (Request(scenarios=("overlaping",)), "did you mean 'overlapping'"),
        (Request(clients=(11,)), "unknown clients '11'"),
        (Request(studies=("toys",)), "did you mean 'toy'"),
        (
            Request(datasets=("cora",), scenarios=("overlapping",), clients=(10,)),
            "leave one of the filters away",
        ),
    ],
)
def test_wrong_requests_write_nothing(tmp_path: Path, request_: Request, message: str) -> None:
    with pytest.raises(RequestError, match=re.escape(message)):
        report(tmp_path / "out", request_)
    assert not (tmp_path / "out").exists()


def printed(built: Part, name: str = "toy_table1") -> str:
    (document,) = [document for document in built.documents if document.key == name]
    return text_of(show(document))


def test_the_terminal_shows_measured_published_difference_and_verdict(built: Part) -> None:
    text = printed(built)
    line = next(line for line in text.splitlines() if "Local" in line)
    # Two seeds: compatible at best, for a reproduction takes three.
    assert [part.strip() for part in line.strip("│").split("│")] == [
        "Local",
        "71.25 ± 0.35",
        "71.26 ± 0.29",
        "-0.01",
        "compatible",
    ]
    assert max(map(len, text.splitlines())) <= 80
    assert "Cora, 10 clients" in text
    assert "CiteSeer 10" not in text


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Part:
    """The report of five columns."""
    source = database()
    for dataset in ("citeseer", "pubmed", "computers", "photo"):
        for seed in (0, 1):
            source.add("fedavg", seed, [50, 50], dataset=dataset)
            source.add("local", seed, [60, 50], dataset=dataset)
    return report(tmp_path_factory.mktemp("wide"), source=source)


def test_every_column_of_many_stands_alone_in_eighty_columns(wide: Part) -> None:
    text = printed(wide)
    # five columns beside Table 1, one beside its earlier version, five with the clients below Local
    assert len([line for line in text.splitlines() if re.match(r"│ FedAvg +│", line)]) == 5 + 1 + 5
    assert max(map(len, text.splitlines())) <= 80


def test_a_report_in_brief_says_who_is_first_and_what_was_measured(wide: Part) -> None:
    text = " ".join((text_of(brief([wide])) + beside([wide])).split())
    assert "21 runs" in text  # two seeds of two methods in five columns, and one failed run
    assert re.search(
        r"Local has the best mean rank of .*, 1\.0", text
    )  # Local before FedAvg in all five: (71.25 > 60), (55 > 50)
    for paper, counts in wide.counts.iterrows():
        assert f"{paper}: {counts[MEASURED].sum()} of {counts.sum()}" in text
    assert "cells.csv" in text


def test_the_report_imports_without_torch() -> None:
    script = (
        "import sys, json, bench.site.documents, bench.report.terminal, bench.cli.report, "
        "bench.reports.fedsheafhn, bench.reports.fedhgn, bench.reports.fedaghn;"
        "print(json.dumps('torch' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is False
