"""Notes of a table: why cells are missing or not comparable, and whose runs they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product

from bench.grids.experiment import Point
from bench.studies.cells import Cell, Cells
from bench.studies.groups import Group
from bench.studies.settings import Column
from bench.studies.wording import ranges

OWN_RUNS = "runs of your own, beside those that come with the suite"

NAMED = 3
"""Up to so many columns a note names."""


def place_of(cells: Cells, column: Column) -> str:
    """A column among those of its data set: ``10 clients``, with the scenario where several are there."""
    same_scenario = len({candidate.scenario for candidate in cells.columns}) == 1
    return (
        f"{'' if same_scenario else column.scenario + ', '}"
        f"{column.clients} client{'s' if column.clients > 1 else ''}"
    )


def notes(cells: Cells) -> tuple[str, ...]:
    """Why cells are missing or not comparable: one note a verdict and reason, or version of numbers, with
    its lines and their columns, or how many they are; and whose runs they are where a table has the user's
    and others. Columns of which nothing was run are named once.
    """

    def name(column: Column, point: Point | None = None) -> str:
        place = f"{cells.study.title_of(column.dataset)}, {place_of(cells, column)}"
        return f"{place}, {point.label}" if point and point.label else place

    run_columns = cells.run_columns
    names = [name(column, point) for column in run_columns for point in cells.experiment.points]
    remarks: dict[str, set[tuple[str, str]]] = defaultdict(set)
    groups = [cell.group for cell in cells.primary_cells if cell.group]
    has_others = not all(group.is_own for group in groups)
    for cell in cells.primary_cells:
        if cell.column in run_columns and cell.comparison is cells.experiment.comparisons[0]:
            title, place = cell.title, name(cell.column, cell.point)
            for head in _remarkable(cell):
                remarks[head].add((title, place))
            if has_others and cell.group and cell.group.own_seeds:
                remarks[_own_runs(cell.group)].add((title, place))
    titles = list(dict.fromkeys(map(cells.study.line_title, cells.lines)))
    lines = [
        f"{head}: {_where([pair for pair in product(titles, names) if pair in pairs], len(names))}"
        for head, pairs in sorted(remarks.items())
    ]
    idle_names = [name(column) for column in cells.columns if column not in run_columns]
    if idle_names:
        lines.append(f"nothing run yet: {'; '.join(idle_names)}")
    if cells.other_runs:
        lines.append(
            f"{cells.other_runs} further runs of these columns stand in the tables of their experiments, "
            "were made under attack or with newcomers, or have further seeds beside all planned ones"
        )
    return tuple(lines)


def _where(pairs: Sequence[tuple[str, str]], column_count: int) -> str:
    """Lines with the columns that they have in common; ``pairs`` are lines and columns by title and name."""
    columns_by_line: dict[str, list[str]] = defaultdict(list)
    for title, name in pairs:
        columns_by_line[title].append(name)
    lines_by_columns: dict[str, list[str]] = defaultdict(list)
    for title, columns in columns_by_line.items():
        is_short = len(columns) <= NAMED
        place = "; ".join(columns) if is_short else f"{len(columns)} of {column_count} columns"
        lines_by_columns[place].append(title)
    return "; ".join(f"{', '.join(titles)} ({place})" for place, titles in lines_by_columns.items())


def _own_runs(group: Group) -> str:
    """Which of a cell's runs are the user's."""
    if group.is_own:
        return OWN_RUNS
    return f"{OWN_RUNS} (seeds {ranges(group.own_seeds)} of {ranges(group.runs['seed'].tolist())})"


def _remarkable(cell: Cell) -> Iterator[str]:
    """What is to be said of a cell besides its numbers."""
    if cell.verdict_reason or cell.measured is None:
        yield f"{cell.verdict} ({cell.verdict_reason})" if cell.verdict_reason else cell.verdict
    if cell.missing_runs:
        yield cell.missing_runs
    if cell.group is not None and cell.group.older_numerics:
        yield f"older numbers ({cell.group.older_numerics}; a sweep makes them again)"
