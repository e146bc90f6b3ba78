"""Tables as a terminal shows them."""

from __future__ import annotations

import io

import pandas as pd
from rich.console import Console
from stored_runs import MemoryStore
from study_cells import shown

from bench.frames.graded_cells import DocumentCells
from bench.grids import Filters, expand, load_grid
from bench.report.document import Table, measured
from bench.report.tables import views
from bench.report.terminal import fitting, rich_table
from bench.reports.fedpub import FedPubProtocol
from bench.reports.fedsheafhn import FedSheafHN


def test_the_one_federation_of_a_table_is_named_once() -> None:
    place = "CIFAR-100 sample, case-study"
    columns = pd.MultiIndex.from_product([[place], ("Self", "Similar", "Other", "Round")])
    body = pd.DataFrame([[measured(0.25)] * 4], pd.Index(["FedAGHN"], name="Method"), columns)
    text = printed(Table("name", "Measured", body))
    assert text.count(place) == 1
    assert all(name in text for name in ("Measured", "Self", "Similar", "Other", "Round"))


def printed(table: Table) -> str:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(rich_table(table))
    return console.export_text()


def printed_of(cells: DocumentCells) -> list[Table]:
    """The tables that a terminal shows of an experiment."""
    return [table for view in views(cells) for table in fitting(view)]


def test_no_row_beside_published_values_is_empty() -> None:
    """Local alone on two federations with published values."""
    database = MemoryStore()
    for clients in (5, 10):
        place = Filters(("citeseer",), ("non-overlapping",), (clients,), ("local",), (0,))
        for run in expand(load_grid("fedpub_protocol"), place):
            database.add_run(run.spec, [70] * clients)
    tables = printed_of(shown(FedPubProtocol, "protocol", database))
    assert [row for table in tables for row, _ in table.rows] == ["Local"] * len(tables)


def test_no_word_of_a_heading_is_cut() -> None:
    names = ["non-overlapping, 10 clients", "overlapping, 30 clients", "overlapping, 50 clients"]
    columns = pd.MultiIndex.from_product([["CiteSeer"], names])
    body = pd.DataFrame([[measured(70.0, 1.0)] * 3], pd.Index(["Local"], name="Method"), columns)
    parts = fitting(Table("name", "Measured", body))
    assert [name for part in parts for name in part.columns] == names
    for part in parts:
        assert printed(part).count("overlapping,") == len(part.columns)


def test_a_table_without_published_numbers_has_its_points_side_by_side() -> None:
    """Of five numbers of local epochs two were run; of these one alone in another database."""
    both, one = MemoryStore(), MemoryStore()
    runs = expand(load_grid("local_epochs"), Filters(("cora",), (), (20,), ("local",), (0, 1)))
    for run in runs:
        epochs = run.spec.protocol.local_epochs
        for database in [both] * (epochs in (3, 5)) + [one] * (epochs == 5):
            database.add_run(run.spec, [60 + epochs + run.spec.seed] * 20)
    (side_by_side,) = printed_of(shown(FedSheafHN, "local_epochs", both))
    assert [(value.text, value.rank) for _, row in side_by_side.rows for value in row] == [
        ("63.50 ± 0.71", 1),  # 63 and 64
        ("65.50 ± 0.71", 1),
    ]
    (alone,) = printed_of(shown(FedSheafHN, "local_epochs", one))
    assert [value.text for _, row in alone.rows for value in row] == ["65.50 ± 0.71"]
    assert "5" in alone.columns[0]
