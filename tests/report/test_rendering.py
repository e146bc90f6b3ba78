import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fake_database import CORA, FakeDatabase
from rich.console import Console
from study_cells import tables

from bench.errors import RequestError
from bench.report import report as building
from bench.report import style, terminal
from bench.report.captions import describe
from bench.report.frame import TYPES
from bench.report.planned import usual
from bench.report.render import escape_latex, escape_markdown, latex_table, markdown_table
from bench.report.report import Report, Request, build
from bench.report.settings import Column
from bench.report.table import NOWHERE, Entry, Table
from bench.report.terminal import brief, closing, show
from bench.report.wording import signed, with_std
from bench.reports.fedsheafhn import FedSheafHN

STUDIES = {"fedsheafhn": FedSheafHN}


@pytest.fixture(autouse=True)
def no_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "usual", lambda grids: {})
    monkeypatch.setattr(FedSheafHN, "experiments", tables(FedSheafHN))


def database() -> FakeDatabase:
    """Two seeds of two methods on Cora/10 with curves of three rounds, and one failed run."""
    made = FakeDatabase()
    for seed in (0, 1):
        made.add("local", seed, [72, 70 + seed], curve=[[10, 20], [50, 60], [72, 70 + seed]])
        made.add("fedavg", seed, [60, 62], curve=[[0, 10], [30, 40], [60, 62 - 4 * seed]])
    made.add("flow", 0, None, state="failed", reason="Key_Error: 100% of {x} & y")
    return made


def report(out: Path, request: Request | None = None, source: FakeDatabase | None = None) -> Report:
    return build(source or database(), request or Request(), dict(STUDIES), out)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_cells_csv_has_one_row_a_cell_with_the_promised_columns(tmp_path: Path) -> None:
    report(tmp_path)
    text = (tmp_path / "cells.csv").read_text(encoding="utf-8")
    assert text.splitlines()[0] == ",".join(TYPES)
    rows = read(tmp_path / "cells.csv")
    names = [tuple(row[name] for name in (*list(TYPES)[:7], "measure")) for row in rows]
    assert len(set(names)) == len(names)
    (local,) = [row for row in rows if names_of(row) == ("Table 1", "cora", "10", "local")]
    wanted = {
        "study": "fedsheafhn",
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
        "verdict": "reproduced",
        "reason": "",
        "document": "table1",
        "line": "Local",
        "low": "68.0734",  # 71.25 - t(0.975, 1) * 0.25, t = 12.7062
        "high": "74.4266",
    }
    assert {name: local[name] for name in wanted} == wanted
    assert sum(row["table"] == "Table 1" and row["method"] != "fedavg_ft" for row in rows) == 132
    assert sum(row["table"] == "earlier Table 2" for row in rows) == 96


def names_of(row: dict[str, str]) -> tuple[str, ...]:
    return row["table"], row["dataset"], row["clients"], row["method"]


def test_published_out_of_memory_keeps_its_status(tmp_path: Path) -> None:
    report(tmp_path)
    text = (tmp_path / "fedsheafhn_table1.md").read_text(encoding="utf-8")
    line = next(
        line for line in text.split("## Published")[1].splitlines() if "FGGP" in line and "OOM" in line
    )
    assert line.count("OOM") == 2


def test_missing_cells_are_a_dash_with_their_reason_in_the_notes(tmp_path: Path) -> None:
    built = report(tmp_path)
    document = built.documents[0]
    flow = next(entries for label, entries in document.views[0].rows if label == "Flow")
    assert {entry.text for entry in flow} == {"-"}
    assert "failed (seed 0: Key_Error: 100% of {x} & y): Flow (Cora 10)" in document.notes
    text = (tmp_path / "fedsheafhn_table1.md").read_text(encoding="utf-8")
    assert r"failed (seed 0: Key\_Error: 100% of {x} & y): Flow (Cora 10)" in text


def test_captions_name_every_protocol_of_a_table_the_commonest_first(tmp_path: Path) -> None:
    source = database()
    source.add("fedper", 0, [60, 62], protocol=CORA.model_copy(update={"rounds": 600}))
    source.add("majority", 0, [60, 62], protocol=CORA.model_copy(update={"rounds": 1}))
    caption = " ".join(report(tmp_path, source=source).documents[0].caption)
    rest = "3 local epochs, split 40/30/30, partition seed 123"
    assert f"Protocol: Cora: 100 rounds, {rest}; also 600 rounds, {rest} (FedPer). Seeds: 0-1." in caption


def test_captions_say_what_is_compared_and_how_it_was_run(tmp_path: Path) -> None:
    caption = " ".join(report(tmp_path).documents[0].caption)
    for part in (
        "stage trained, rule best_val",
        "100 rounds, 3 local epochs, split 40/30/30, partition seed 123",
        "Seeds: 0-1.",
        "Partitions: Cora 10: abcdef01.",
        "Tuning budget: none (default settings, not tuned); FedSheafHN's own defaults",
        "Devices: cpu.",
        "A_CPU, 1 thread, Python 3.11.0, torch 2.13.0",
        "measures every method after local training, FedAvg too",
    ):
        assert part in caption


def test_captions_warn_of_different_clients_under_one_partition_seed(tmp_path: Path) -> None:
    source, other = database(), CORA.model_copy(update={"partition_seed": 7})
    source.add("fedper", 0, [60, 62], protocol=other, partition="0123456789abcdef")  # as it should be
    assert "Not the same clients" not in " ".join(report(tmp_path / "a", source=source).documents[0].caption)
    source.add("pfedgraph", 1, [60, 62], partition="fedcba9876543210")
    caption = report(tmp_path / "b", source=source).documents[0].caption
    assert (
        "Not the same clients, and not to be compared, in Cora 10, partition seed 123: abcdef01, fedcba98."
        in caption
    )


def test_captions_know_a_partition_drawn_for_every_seed(tmp_path: Path) -> None:
    source = FakeDatabase()
    for seed, partition in enumerate(("aaaaaaaa", "bbbbbbbb")):
        drawn = CORA.model_copy(update={"partition_seed": seed})
        source.add("local", seed, [60, 62], protocol=drawn, partition=partition)
        source.add("fedavg", seed, [60, 62], protocol=drawn, partition=partition)
    assert "Not the same clients" not in " ".join(report(tmp_path / "a", source=source).documents[0].caption)
    source.add(
        "fedper", 1, [60, 62], protocol=CORA.model_copy(update={"partition_seed": 1}), partition="c" * 8
    )
    caption = " ".join(report(tmp_path / "b", source=source).documents[0].caption)
    assert "Cora 10, partition seed 1: bbbbbbbb, cccccccc." in caption


def test_latex_is_complete_and_escaped(tmp_path: Path) -> None:
    report(tmp_path)
    text = (tmp_path / "fedsheafhn_table1.tex").read_text(encoding="utf-8")
    assert text.count(r"\begin{table*}") == text.count(r"\end{table*}") > 0
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") >= text.count(r"\begin{table*}")
    assert r"\textbf{71.25 $\pm$ 0.35}" in text
    assert r"\underline{61.00 $\pm$ 0.00}" in text
    body = [line for line in text.splitlines() if not line.startswith(("%", r"\label"))]
    assert not re.search(r"(?<!\\)_", "\n".join(body))
    assert all(character.isascii() for character in "\n".join(body))
    for columns, table in re.findall(r"\\begin{tabular}{(l+r*)}(.*?)\\end{tabular}", "\n".join(body), re.S):
        rows = [line for line in table.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
        assert {len(re.findall(r"(?<!\\)&", line)) for line in rows} == {len(columns) - 1}


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("100% of A_B & C#1", r"100\% of A\_B \& C\#1"),
        ("{x}$y^2~", r"\{x\}\$y\textasciicircum{}2\textasciitilde{}"),
        ("a\\b", r"a\textbackslash{}b"),
        ("1.0 ± 0.5", r"1.0 $\pm$ 0.5"),
    ],
)
def test_latex_special_characters(text: str, escaped: str) -> None:
    assert escape_latex(text) == escaped


def test_markdown_cannot_break_out_of_a_table() -> None:
    assert escape_markdown("a|b\n<script>*x*") == r"a\|b \<script\>\*x\*"


def small() -> Table:
    rows = (
        ("A", (Entry("90.00", 1), Entry("-1.50"))),
        ("B|", (Entry("80.00", 2), Entry("-"))),
    )
    return Table("t", "T", "Method", (("Cora", 1), ("Pub_Med", 1)), ("10", "20"), rows)


def test_best_is_bold_and_second_underlined() -> None:
    assert markdown_table(small()) == (
        "| Method | Cora 10 | Pub\\_Med 20 |\n"
        "| --- | ---: | ---: |\n"
        "| A | **90.00** | -1.50 |\n"
        "| B\\| | <u>80.00</u> | - |"
    )
    assert latex_table(small()).splitlines() == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r" & \multicolumn{1}{c}{Cora} & \multicolumn{1}{c}{Pub\_Med} \\",
        r"\cmidrule(lr){2-2}\cmidrule(lr){3-3}",
        r"Method & 10 & 20 \\",
        r"\midrule",
        r"A & \textbf{90.00} & $-$1.50 \\",
        r"B\textbar{} & \underline{80.00} & - \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_wide_tables_are_cut_between_groups() -> None:
    entries = tuple(Entry(str(number)) for number in range(5))
    table = Table("t", "T", "M", (("a", 2), ("b", 2), ("c", 1)), tuple("12345"), (("r", entries),))
    blocks = list(table.blocks(4))
    assert [block.groups for block in blocks] == [(("a", 2), ("b", 2)), (("c", 1),)]
    assert [entry.text for block in blocks for entry in block.rows[0][1]] == list("01234")
    assert [block.columns for block in table.blocks(1)] == [("1", "2"), ("3", "4"), ("5",)]


def test_a_block_leaves_out_rows_that_have_no_place_in_its_columns() -> None:
    rows = (("a", (Entry("1"), NOWHERE)), ("b", (Entry("2"), Entry("3"))), ("c", (NOWHERE, Entry("-"))))
    first, second = Table("t", "T", "M", (("x", 1), ("y", 1)), ("1", "2"), rows).blocks(1)
    assert [label for label, _ in first.rows] == ["a", "b"]
    assert [label for label, _ in second.rows] == ["b", "c"]  # c was to be run there


def test_ties_share_a_place(tmp_path: Path) -> None:
    source = FakeDatabase()
    for method, right in (("local", 72), ("fedavg", 72), ("fedper", 70), ("fedprox", 60)):
        source.add(method, 0, [right])
    view = report(tmp_path, source=source).documents[0].views[0]
    places = {label: entries[0].place for label, entries in view.rows}
    assert [places[name] for name in ("Local", "FedAvg", "FedPer", "FedProx")] == [1, 1, 2, 0]


def test_numbers_as_text() -> None:
    assert with_std(71.256, 0.344) == "71.26 ± 0.34"
    assert with_std(71.256, None) == "71.26"
    assert (signed(1.0), signed(-0.5), signed(None)) == ("+1.00", "-0.50", "-")


def test_environment_on_one_line() -> None:
    assert describe({"processor": "P", "threads": 2, "packages": {"torch": "2"}}) == "P, 2 threads, torch 2"


def test_convergence_csv_holds_mean_and_std_over_seeds(tmp_path: Path) -> None:
    report(tmp_path)
    rows = read(tmp_path / "fedsheafhn_table1_convergence.csv")
    fedavg = [row for row in rows if row["method"] == "fedavg"]
    # Clients (0, 10), (30, 40), (60, 62) of 100 in seed 0; the last is (60, 58) in seed 1.
    assert [(row["round"], row["mean"], row["std"], row["n"]) for row in fedavg] == [
        ("1", "5.0000", "0.0000", "2"),
        ("2", "35.0000", "0.0000", "2"),
        ("3", "60.0000", "1.4142", "2"),
    ]


def test_clients_csv_holds_every_clients_mean_over_seeds(tmp_path: Path) -> None:
    report(tmp_path)
    rows = read(tmp_path / "fedsheafhn_table1_clients.csv")
    values = {(row["method"], row["client"]): float(row["value"]) for row in rows}
    assert values == {
        ("local", "0"): 72.0,
        ("local", "1"): 70.5,
        ("fedavg", "0"): 60.0,
        ("fedavg", "1"): 62.0,
    }


def test_a_filter_gives_a_table_of_just_that(tmp_path: Path) -> None:
    source = database()
    source.add("local", 0, [60], dataset="citeseer")
    report(tmp_path, Request(datasets=("cora",), clients=(10,), methods=("local", "flow")), source)
    rows = read(tmp_path / "cells.csv")
    assert {names_of(row)[1:] for row in rows} == {("cora", "10", "local"), ("cora", "10", "flow")}
    assert not (tmp_path / "fedsheafhn_table2.md").exists()


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(datasets=("coar",)), "unknown dataset 'coar': did you mean 'cora'"),
        (Request(methods=("locla",)), "did you mean 'local'"),
        (Request(scenarios=("overlaping",)), "did you mean 'overlapping'"),
        (Request(clients=(11,)), "unknown number of clients '11'"),
        (Request(studies=("fedsheaf",)), "did you mean 'fedsheafhn'"),
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


def test_runs_of_no_table_are_told_from_cells_of_none(tmp_path: Path) -> None:
    source = database()
    source.add("fedavg", 0, [60] * 7, clients=7)
    with pytest.raises(
        RequestError, match=r"runs are in no table of the studies .*: 'bench runs list' shows"
    ):
        report(tmp_path / "out", Request(clients=(7,)), source)
    assert not (tmp_path / "out").exists()


def test_an_empty_database_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="bench sweep"):
        report(tmp_path / "out", source=FakeDatabase())
    assert not (tmp_path / "out").exists()


def test_out_may_not_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(RequestError, match="expected a folder"):
        report(tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


def test_runs_of_no_study_are_mentioned(tmp_path: Path) -> None:
    source = database()
    source.add("local", 0, [50], dataset="mine", clients=3)
    assert report(tmp_path, source=source).elsewhere == ("mine non-overlapping 3: local",)


def printed(built: Report, width: int = 80) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    for document in built.documents:
        show(document, console)
    return console.export_text()


def test_the_terminal_shows_measured_published_difference_and_verdict(tmp_path: Path) -> None:
    text = printed(report(tmp_path))
    line = next(line for line in text.splitlines() if "Local" in line)
    assert [part.strip() for part in line.strip("│").split("│")] == [
        "Local",
        "71.25 ± 0.35",
        "71.26 ± 0.29",
        "-0.01",
        "reproduced",
    ]
    assert max(map(len, text.splitlines())) <= 80
    assert "Cora, non-overlapping, 10 clients" in text
    assert "CiteSeer, non-overlapping" not in text


def test_many_columns_become_an_overview_with_marks(tmp_path: Path) -> None:
    source = database()
    for dataset in ("citeseer", "pubmed", "computers", "photo"):
        for seed in (0, 1):
            source.add("fedavg", seed, [50, 50], dataset=dataset)
    text = printed(report(tmp_path, source=source))
    row = next(line for line in text.splitlines() if "FedAvg " in line and "tuning" not in line)
    # Published 72.38 (std 2.45), 65.71, 79.88, 66.78, 79.61; only Cora has the paper's local epochs.
    assert "61.00 v" in row
    assert "50.00" in row
    assert max(map(len, text.splitlines())) <= 80


def in_brief(built: Report, out: Path) -> str:
    console = Console(width=80, record=True, file=io.StringIO())
    brief(built, console)
    closing(built, {}, out, console)
    return console.export_text()


def test_short_tables_are_printed_unasked_and_long_ones_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = in_brief(report(tmp_path), tmp_path)
    assert "71.25 ± 0.35" in short
    source = database()
    for dataset in ("citeseer", "pubmed", "computers", "photo"):
        for seed in (0, 1):
            source.add("fedavg", seed, [50, 50], dataset=dataset)
            source.add("local", seed, [60, 50], dataset=dataset)
    built = report(tmp_path, source=source)
    monkeypatch.setattr(terminal, "ROOM", 15)
    long = in_brief(built, tmp_path)
    assert printed(built).count("\n") > 15
    assert long.count("\n") <= 15
    assert "71.25" not in long
    # Two seeds of two methods in five columns, and one failed run.
    assert "21 runs" in long
    assert "fedsheafhn_table1" in long
    # Local before FedAvg in all five: (71.25 > 60), (55 > 50).
    (ranks,) = [line for line in long.splitlines() if "mean rank" in line]
    assert "Local 1.00" in ranks
    assert "FedAvg" in ranks + long[long.index(ranks) :].splitlines()[1]
    for text in (short, long):
        assert "fedsheafhn_table1_convergence.png" in "".join(text.split())
        assert "report.html" in "".join(text.split())


def test_an_unknown_table_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    built = report(tmp_path)
    assert built.document("fedsheafhn_table1").name == "fedsheafhn_table1"
    with pytest.raises(RequestError, match="fedsheafhn_table1'"):
        built.document("fedsheafhn_tabel1")


def test_a_methods_look_never_depends_on_the_others() -> None:
    assert style.of("local") == style.of("local")
    for order in style.orders():
        listed = [style.of(name) for name in order]
        assert len({(look.colour, look.dashes) for look in listed}) == len(listed)
    script = "from bench.report import style; print(style.of('a_new_method'))"
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == str(style.of("a_new_method"))


def test_the_report_imports_without_torch() -> None:
    script = (
        "import sys, json, bench.report.report, bench.report.terminal, bench.cli.report, "
        "bench.reports.fedsheafhn, bench.reports.fedhgn, bench.reports.fedaghn;"
        "print(json.dumps('torch' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is False


def test_grids_plan_the_papers_cells() -> None:
    cells = usual(["paper_tables"])
    columns = {column for column, _ in cells}
    assert set(FedSheafHN().columns) == columns
    cora = cells[Column("cora", "non-overlapping", 10), "fedavg"]
    assert cora.settings["protocol.rounds"] == 100
    assert not cora.per_seed
    assert all(cell.settings or cell.state == "not_implemented" for cell in cells.values())
    assert all(cell.per_seed for cell in usual(["fedhgn_tables"]).values() if cell.settings)
