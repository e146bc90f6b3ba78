"""From a board's cells to tables and notes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby

from bench.report.captions import caption
from bench.report.cells import Board, Cell, Line
from bench.report.layout import Reading, Target
from bench.report.places import compared_seeds, measured_places, other_seeds, places
from bench.report.results import PARTITION, Results
from bench.report.settings import Column
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
    study: Study,
    board: Board,
    target: Target,
    reading: Reading,
    name: str,
    title: str,
    of: Entries,
) -> Table:
    """A table of the board's lines by its columns; lines without an entry are left out."""
    entries: dict[tuple[Line, Column], Entry] = {}
    for column in board.columns:
        cells = {
            line: cell
            for line in board.rows
            if (cell := board.cells.get((target, reading, column, line))) is not None
        }
        entries.update({(line, column): entry for line, entry in of(cells).items()})
    rows = tuple(
        (line.title, tuple(entries.get((line, column), Entry("-")) for column in board.columns))
        for line in board.rows
        if any((line, column) in entries for column in board.columns)
    )
    columns = tuple(str(column.clients) for column in board.columns)
    return Table(name, title, "Method", _groups(study, board.columns), columns, rows)


def _measured_text(cell: Cell) -> str:
    return with_std(cell.measured.mean, cell.measured.std) if cell.measured else "-"


def _verdict_text(cell: Cell) -> str:
    if cell.difference is None:
        return "-" if cell.verdict == "not published" else cell.verdict
    return f"{signed(cell.difference)} {cell.verdict}"


def verdict_view(study: Study, board: Board, target: Target) -> Table:
    """Difference and verdict of every cell beside one published table."""
    title = f"Measured minus published ({target.label}), and verdict"
    return _view(study, board, target, study.primary, f"verdict_{_slug(target)}", title, _verdict_entries)


def measured_view(study: Study, board: Board, reading: Reading) -> Table:
    """Measured mean and standard deviation under a reading."""
    first = board.table.targets[0]
    title = f"Measured: {STAGES[reading.stage]}, {RULES[reading.rule]}"
    name = f"measured_{reading.stage}_{reading.rule}"
    return _view(study, board, first, reading, name, title, _measured_entries)


def published_view(study: Study, board: Board, target: Target) -> Table:
    """The published numbers."""
    name, title = f"published_{_slug(target)}", f"Published ({target.label})"
    view = _view(study, board, target, study.primary, name, title, _published_entries)
    rows = tuple(row for row in view.rows if any(entry.text != "-" for entry in row[1]))
    return Table(view.name, view.title, view.stub, view.groups, view.columns, rows)


def _slug(target: Target) -> str:
    return target.label.lower().replace(" ", "_")


def _seeds_text(cell: Cell) -> str:
    """``3``, or ``3 of 5`` where a grid plans more."""
    if cell.measured is None:
        return "-"
    return f"{cell.measured.n} of {cell.planned}" if cell.measured.n < cell.planned else str(cell.measured.n)


def detail(study: Study, board: Board, column: Column, full: bool) -> Table:
    """One column of a table with everything beside each other, a row a method.

    ``full`` adds the number of seeds, the spread over partitions and how many there are, the other readings
    and further published tables.
    """
    main, *others = board.table.targets
    heads = ["Measured", "Published", "Difference" if full else "Diff.", "Verdict"]
    if full:
        heads = ["Seeds", "Measured", "s_d", "Partitions", *heads[1:]]
        heads += [f"{reading.stage}, {reading.rule}" for reading in study.readings]
        heads += [f"Published ({target.label})" for target in others]
    lines = [line for line in board.rows if (main, study.primary, column, line) in board.cells]
    cells = {line: board.cells[main, study.primary, column, line] for line in lines}
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
            beside = [board.cells.get((main, reading, column, line)) for reading in study.readings]
            earlier = [board.cells.get((target, study.primary, column, line)) for target in others]
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
        rows.append((line.title, tuple(entries)))
    title = column.described(study.title_of(column.dataset))
    name = f"{column.dataset}_{column.scenario}_{column.clients}"
    return Table(name, title, "Method", (("", len(heads)),), tuple(heads), tuple(rows))


def notes(study: Study, board: Board) -> tuple[str, ...]:
    """Why cells are missing or not comparable: one note a verdict and reason, with its cells."""
    main = board.table.targets[0]
    cells = [
        (line.title, label(study, column), cell)
        for (target, reading, column, line), cell in board.cells.items()
        if target is main and reading == study.primary
    ]
    found = noted(cells, [label(study, column) for column in board.columns])
    if board.beside:
        found = (
            *found,
            f"{board.beside} further runs of these columns stand in the tables of their experiments, or "
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


def _with_runs(board: Board) -> Board:
    """The board's columns where anything was run."""
    ran = {group.column for group in board.groups()}
    columns = tuple(column for column in board.columns if column in ran)
    return replace(
        board, columns=columns, cells={key: cell for key, cell in board.cells.items() if key[2] in ran}
    )


def _without_other_partitions(board: Board) -> Board:
    """The board without rows that differ in the partition alone; they give s_d, and stand in the files."""

    def kept(line: Line) -> bool:
        return {part.partition("=")[0] for part in line.setting.split(";")} != {PARTITION}

    return replace(
        board,
        rows=tuple(line for line in board.rows if kept(line)),
        cells={key: cell for key, cell in board.cells.items() if kept(key[3])},
    )


def summary(study: Study, board: Board) -> Summary | None:
    """What a terminal shows of a table; None where nothing was run."""
    ran = _without_other_partitions(_with_runs(board))
    if not ran.columns:
        return None
    overview = _view(
        study,
        ran,
        board.table.targets[0],
        study.primary,
        "overview",
        "Measured; against published: " + ", ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items()),
        _overview_entries,
    )
    details = tuple(detail(study, ran, column, full=False) for column in ran.columns)
    return Summary(details, overview, notes(study, ran))


def document(study: Study, board: Board, results: Results) -> Document:
    """Everything about one table of the paper."""
    main, *others = board.table.targets
    views = [
        measured_view(study, board, study.primary),
        published_view(study, board, main),
        verdict_view(study, board, main),
    ]
    for target in others:
        views += [published_view(study, board, target), verdict_view(study, board, target)]
    views += [measured_view(study, board, reading) for reading in study.readings]
    return Document(
        name=f"{study.name}_{board.table.name}",
        title=f"{study.title}: {board.table.title}",
        caption=caption(study, board, results),
        notes=notes(study, board),
        views=tuple(view for view in views if view.rows),
        details=tuple(detail(study, board, column, full=True) for column in _with_runs(board).columns),
        summary=summary(study, board),
        primary=tuple(cell for key, cell in board.cells.items() if key[1] == study.primary),
        cells=tuple(board.cells.values()),
    )
