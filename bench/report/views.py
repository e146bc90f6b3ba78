"""From a board's cells to tables and notes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby

from bench.report.captions import caption
from bench.report.cells import Cell, Cells
from bench.report.experiment import Comparison, Line
from bench.report.measures import Measure
from bench.report.places import compared_seeds, measured_places, other_seeds, places
from bench.report.results import Results
from bench.report.settings import PARTITION, Column
from bench.report.study import Study
from bench.report.table import Document, Entry, Summary, Table
from bench.report.verdicts import STATES
from bench.report.wording import MARKS, RULES, STAGES, label, printed, signed, with_std

Entries = Callable[[Mapping[Line, Cell]], dict[Line, Entry]]
"""From a column's cells to its entries."""


def _competing(cells: Mapping[Line, Cell]) -> dict[Line, Cell]:
    return {line: cell for line, cell in cells.items() if line.competes}


def _measured_entries(cells: Mapping[Line, Cell]) -> dict[Line, Entry]:
    """Mean and standard deviation with their places, and how many seeds those have that have others."""
    ranks, seeds = measured_places(_competing(cells)), compared_seeds(_competing(cells).values())
    return {
        line: Entry(_measured_text(cell) + other_seeds(cell, seeds), ranks.get(line, 0))
        for line, cell in cells.items()
    }


def _published_entries(cells: Mapping[Line, Cell]) -> dict[Line, Entry]:
    ranks = places(
        {
            line: cell.target.mean
            for line, cell in _competing(cells).items()
            if cell.target and cell.target.mean is not None
        }
    )
    return {line: Entry(printed(cell.target), ranks.get(line, 0)) for line, cell in cells.items()}


def _verdict_entries(cells: Mapping[Line, Cell]) -> dict[Line, Entry]:
    return {line: Entry(_verdict_text(cell)) for line, cell in cells.items()}


def _overview_entries(cells: Mapping[Line, Cell]) -> dict[Line, Entry]:
    """Means with their places and the marks of their verdicts."""
    ranks = measured_places(_competing(cells))
    return {
        line: Entry(
            f"{cell.measured.mean:.2f} {MARKS.get(cell.verdict, ' ')}" if cell.measured else "-",
            ranks.get(line, 0),
        )
        for line, cell in cells.items()
    }


def _groups(study: Study, columns: Iterable[Column]) -> tuple[tuple[str, int], ...]:
    return tuple(
        (study.title_of(dataset), len(list(part))) for dataset, part in groupby(columns, lambda c: c.dataset)
    )


def _view(
    board: Cells,
    comparison: Comparison,
    measure: Measure,
    name: str,
    title: str,
    of: Entries,
) -> Table:
    """A table of the board's lines by its columns; lines without an entry are left out."""
    entries: dict[tuple[Line, Column], Entry] = {}
    for column in board.columns:
        cells = {
            line: cell
            for line in board.lines
            if (cell := board.at(column, line, None, measure, comparison)) is not None
        }
        entries.update({(line, column): entry for line, entry in of(cells).items()})
    rows = tuple(
        (board.title(line), tuple(entries.get((line, column), Entry("-")) for column in board.columns))
        for line in board.lines
        if any((line, column) in entries for column in board.columns)
    )
    columns = tuple(str(column.clients) for column in board.columns)
    return Table(name, title, "Method", _groups(board.study, board.columns), columns, rows)


def _measured_text(cell: Cell) -> str:
    return with_std(cell.measured.mean, cell.measured.std) if cell.measured else "-"


def _verdict_text(cell: Cell) -> str:
    if cell.difference is None:
        return "-" if cell.verdict == "not published" else cell.verdict
    return f"{signed(cell.difference)} {cell.verdict}"


def verdict_view(board: Cells, beside: Comparison) -> Table:
    """Difference and verdict of every cell beside one published table."""
    title = f"Measured minus published ({beside.label}), and verdict"
    return _view(board, beside, board.measures[0], f"verdict_{_slug(beside)}", title, _verdict_entries)


def measured_view(board: Cells, measure: Measure) -> Table:
    """Measured mean and standard deviation under a reading."""
    reading = measure.reading or board.study.primary
    title = f"Measured: {STAGES[reading.stage]}, {RULES[reading.rule]}"
    name = f"measured_{reading.stage}_{reading.rule}"
    return _view(board, board.experiment.comparisons[0], measure, name, title, _measured_entries)


def published_view(board: Cells, beside: Comparison) -> Table:
    """The published numbers."""
    name, title = f"published_{_slug(beside)}", f"Published ({beside.label})"
    view = _view(board, beside, board.measures[0], name, title, _published_entries)
    rows = tuple(row for row in view.rows if any(entry.text != "-" for entry in row[1]))
    return Table(view.name, view.title, view.stub, view.groups, view.columns, rows)


def _slug(beside: Comparison) -> str:
    return beside.label.lower().replace(" ", "_")


def _seeds_text(cell: Cell) -> str:
    """``3``, or ``3 of 5`` where a grid plans more."""
    if cell.measured is None:
        return "-"
    return f"{cell.measured.n} of {cell.planned}" if cell.measured.n < cell.planned else str(cell.measured.n)


def detail(board: Cells, column: Column, full: bool) -> Table:
    """One column of a table with everything beside each other, a row a method.

    ``full`` adds the number of seeds, the spread over partitions and how many there are, the other readings
    and further published tables.
    """
    study, others = board.study, board.experiment.comparisons[1:]
    heads = ["Measured", "Published", "Difference" if full else "Diff.", "Verdict"]
    if full:
        heads = ["Seeds", "Measured", "s_d", "Partitions", *heads[1:]]
        heads += [measure.title for measure in board.measures[1:]]
        heads += [f"Published ({beside.label})" for beside in others]
    cells = {line: cell for line in board.lines if (cell := board.at(column, line)) is not None}
    measured = _measured_entries(cells)
    rows = []
    for line, cell in cells.items():
        verdict = "-" if cell.verdict == "not published" else cell.verdict
        entries = [
            Entry(printed(cell.target)),
            Entry(signed(cell.difference)),
            Entry(verdict),
        ]
        if full:
            beside = [board.at(column, line, measure=measure) for measure in board.measures[1:]]
            earlier = [board.at(column, line, comparison=other) for other in others]
            entries = [
                Entry(_seeds_text(cell)),
                measured[line],
                Entry("-" if cell.spread.std is None else f"{cell.spread.std:.2f}"),
                Entry(str(cell.spread.partitions or "-")),
                *entries,
                *(Entry(_measured_text(other) if other else "-") for other in beside),
                *(Entry(printed(other.target) if other else "-") for other in earlier),
            ]
        else:
            entries = [measured[line], *entries]
        rows.append((board.title(line), tuple(entries)))
    title = column.described(study.title_of(column.dataset))
    name = f"{column.dataset}_{column.scenario}_{column.clients}"
    return Table(name, title, "Method", (("", len(heads)),), tuple(heads), tuple(rows))


def notes(board: Cells) -> tuple[str, ...]:
    """Why cells are missing or not comparable: one note a verdict and reason, with its cells."""
    study = board.study
    cells = [(board.title(cell.line), label(study, cell.column), cell) for cell in board.main]
    found = noted(cells, [label(study, column) for column in board.columns])
    if board.other_runs:
        found = (
            *found,
            f"{board.other_runs} further runs of these columns stand in the tables of their experiments, or "
            "were made under attack or with newcomers",
        )
    return found


def noted(cells: Iterable[tuple[str, str, Cell]], every: list[str]) -> tuple[str, ...]:
    """One note a verdict and reason, or version of numbers, with its cells: line and column. ``every`` are
    all columns.
    """
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for line, column, cell in cells:
        for head in _heads(cell):
            where = found[head][line]
            if column not in where:
                where.append(column)
    result = []
    for head, by_line in sorted(found.items()):
        by_cells: dict[str, list[str]] = defaultdict(list)
        for title, where in by_line.items():
            by_cells["all columns" if where == every and len(every) > 1 else ", ".join(where)].append(title)
        text = "; ".join(f"{', '.join(titles)} ({where})" for where, titles in by_cells.items())
        result.append(f"{head}: {text}")
    return tuple(result)


def _heads(cell: Cell) -> Iterator[str]:
    """What is to be said of a cell besides its numbers."""
    if cell.reason or cell.measured is None:
        # What is not implemented says so of itself, in other words for each.
        reason = "" if cell.verdict == STATES["not_implemented"] else cell.reason
        yield f"{cell.verdict} ({reason})" if reason else cell.verdict
    if cell.group is not None and cell.group.older:
        yield f"older numbers ({cell.group.older}; a sweep makes them again)"


def _with_runs(board: Cells) -> Cells:
    """The table's columns where anything was run."""
    return replace(
        board,
        columns=board.ran,
        by_key={key: cell for key, cell in board.by_key.items() if cell.column in board.ran},
    )


def _without_other_partitions(board: Cells) -> Cells:
    """The table without rows that differ in the partition alone; they give s_d, and stand in the files."""

    def kept(line: Line) -> bool:
        return {part.partition("=")[0] for part in line.setting.split(";")} != {PARTITION}

    return replace(
        board,
        lines=tuple(line for line in board.lines if kept(line)),
        by_key={key: cell for key, cell in board.by_key.items() if kept(cell.line)},
    )


def summary(board: Cells) -> Summary | None:
    """What a terminal shows of a table; None where nothing was run."""
    ran = _without_other_partitions(_with_runs(board))
    if not ran.columns:
        return None
    overview = _view(
        ran,
        board.experiment.comparisons[0],
        board.measures[0],
        "overview",
        "Measured; against published: " + ", ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items()),
        _overview_entries,
    )
    details = tuple(detail(ran, column, full=False) for column in ran.columns)
    return Summary(details, overview, notes(ran))


def document(board: Cells, results: Results) -> Document:
    """Everything about one table of the paper."""
    study = board.study
    views = [measured_view(board, board.measures[0])]
    for beside in board.experiment.comparisons:
        views += [published_view(board, beside), verdict_view(board, beside)]
    views += [measured_view(board, measure) for measure in board.measures[1:]]
    return Document(
        name=f"{study.name}_{board.experiment.name}",
        title=f"{study.title}: {board.experiment.title}",
        caption=caption(board, results),
        notes=notes(board),
        views=tuple(view for view in views if view.rows),
        details=tuple(detail(board, column, full=True) for column in _with_runs(board).columns),
        summary=summary(board),
        primary=tuple(board.primary),
        cells=tuple(board),
    )
