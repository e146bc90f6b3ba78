"""From an experiment's cells to tables and notes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

from bench.report.captions import caption
from bench.report.cells import Cell, Cells
from bench.report.experiment import Comparison, Line, Point
from bench.report.measures import Measure
from bench.report.results import Results
from bench.report.settings import PARTITION, Column
from bench.report.table import NOWHERE, Document, Entry, Summary, Table
from bench.report.verdicts import STATES
from bench.report.wording import MARKS, printed, signed, with_std

Name = TypeVar("Name", bound=Hashable)
Entries = Callable[[Mapping[Line, Cell]], dict[Line, Entry]]
"""From a column's cells under one measure to its entries."""


def places(values: Mapping[Name, float]) -> dict[Name, int]:
    """1 for the best, 2 for the second best, as printed with two decimals; ties share a place."""
    rounded = {name: round(value, 2) for name, value in values.items()}
    order = sorted(set(rounded.values()), reverse=True)[:2]
    return {name: order.index(value) + 1 for name, value in rounded.items() if value in order}


def compared_seeds(cells: Iterable[Cell]) -> tuple[int, ...]:
    """The seeds on which the cells of a column are compared; a cell with others has no place.

    They are those that most cells hold, and of equally frequent ones the more. Cells of one seed and
    cells that lost runs have no say beside others.
    """
    every = [cell for cell in cells if cell.measured]
    sound = [cell for cell in every if len(cell.seeds) > 1 and not cell.lost]
    counts = Counter(cell.seeds for cell in sound or every)
    return min(counts, key=lambda seeds: (-counts[seeds], -len(seeds), seeds), default=())


def _competing(cells: Mapping[Line, Cell]) -> dict[Line, Cell]:
    return {line: cell for line, cell in cells.items() if line.competes and cell.measure.ranked}


def _measured(text: Callable[[Cell], str]) -> Entries:
    """What cells measure, with their places, and how many seeds those have that have others."""

    def entries(cells: Mapping[Line, Cell]) -> dict[Line, Entry]:
        competing = _competing(cells)
        seeds = compared_seeds(competing.values())
        ranks = places(
            {
                line: cell.measured.mean
                for line, cell in competing.items()
                if cell.measured and cell.seeds == seeds
            }
        )

        def entry(line: Line, cell: Cell) -> Entry:
            if cell.measured is None:
                return Entry("-")
            others = f" (n={len(cell.seeds)})" if seeds and cell.seeds != seeds else ""
            return Entry(text(cell) + others, ranks.get(line, 0))

        return {line: entry(line, cell) for line, cell in cells.items()}

    return entries


def _mean_and_std(cell: Cell) -> str:
    return with_std(cell.measured.mean, cell.measured.std, cell.measure.digits) if cell.measured else "-"


def _mean(cell: Cell) -> str:
    return with_std(cell.measured.mean, None, cell.measure.digits) if cell.measured else "-"


def _mean_and_mark(cell: Cell) -> str:
    return f"{_mean(cell)} {MARKS.get(cell.verdict, ' ')}"


def _published(cells: Mapping[Line, Cell]) -> dict[Line, Entry]:
    ranks = places(
        {
            line: cell.target.mean
            for line, cell in _competing(cells).items()
            if cell.target and cell.target.mean is not None
        }
    )
    return {
        line: Entry(printed(cell.target, cell.measure.digits), ranks.get(line, 0))
        for line, cell in cells.items()
    }


def _judged(cells: Mapping[Line, Cell]) -> dict[Line, Entry]:
    return {line: Entry(_verdict(cell)) for line, cell in cells.items()}


def _verdict(cell: Cell) -> str:
    if cell.target is None:
        return "-"
    if cell.difference is None:
        return cell.verdict
    return f"{signed(cell.difference, cell.measure.digits)} {cell.verdict}"


def _table(
    cells: Cells,
    entries: Entries,
    name: str,
    title: str,
    columns: Collection[Column],
    measures: Collection[Measure],
    points: Collection[Point],
    comparison: Comparison,
) -> Table:
    """Lines by points and measures for each column; lines without any entry or run, and points of a column
    without a cell are left out.
    """
    study = cells.study
    heads = [(point, measure) for point in points for measure in measures]
    texts: dict[tuple[Line, Column, Point, Measure], Entry] = {}
    wanted: set[Line] = set()
    shown: list[tuple[Column, Point, Measure]] = []
    for column in columns:
        for point, measure in heads:
            here = {
                line: cell
                for line in cells.lines
                if (cell := cells.at(column, line, point, measure, comparison)) is not None
            }
            if here:
                shown.append((column, point, measure))
            for line, entry in entries(here).items():
                texts[line, column, point, measure] = entry
                if entry.text != "-" or (here[line].group and not here[line].measured):
                    wanted.add(line)
    rows = tuple(
        (
            cells.title(line),
            tuple(texts.get((line, *place), NOWHERE) for place in shown),
        )
        for line in cells.lines
        if line in wanted
    )
    if len(heads) > 1:
        groups = tuple(
            (column.described(study.title_of(column.dataset)), len(list(part)))
            for column, part in groupby(shown, lambda place: place[0])
        )
        titles = tuple(
            " ".join(part for part in (point.label, measure.title if len(measures) > 1 else "") if part)
            for _, point, measure in shown
        )
    else:
        groups = tuple(
            (study.title_of(dataset), len(list(part)))
            for dataset, part in groupby(shown, lambda place: place[0].dataset)
        )
        titles = tuple(_where(cells, column) for column, _, _ in shown)
    stub = "Method" if cells.by_method or cells.experiment.main else "Variant"
    return Table(name, title, stub, groups, titles, rows)


def _where(cells: Cells, column: Column) -> str:
    """A column among those of its table: ``10``, or ``overlapping 30`` where their scenarios differ."""
    alike = len({each.scenario for each in cells.columns}) == 1
    return str(column.clients) if alike else f"{column.scenario} {column.clients}"


def _layers(cells: Cells) -> Iterator[tuple[str, str, tuple[Measure, ...]]]:
    """Which measures share a table: all of them where a column has one point, else each has its own."""
    own = tuple(measure for measure in cells.measures if not measure.other)
    if len(cells.experiment.points) == 1:
        yield "", "", own
    else:
        for measure in own:
            yield f"_{measure.name}", f": {measure.title}" if len(own) > 1 else "", (measure,)
    for measure in cells.measures:
        if measure.other:
            yield f"_{measure.name}", f": {measure.title}", (measure,)


def _views(cells: Cells) -> Iterator[Table]:
    points, comparisons = cells.experiment.points, cells.experiment.comparisons
    judged = [point for point in points if not point.grid]
    for suffix, title, measures in _layers(cells):
        if cells.ran:
            yield _table(
                cells,
                _measured(_mean_and_std),
                f"measured{suffix}",
                f"Measured{title}",
                cells.ran,
                measures,
                points,
                comparisons[0],
            )
        for comparison in () if measures[0].other else comparisons:
            beside = [
                cell
                for cell in cells.own
                if cell.target and cell.comparison is comparison and cell.measure in measures
            ]
            if not beside:
                continue
            slug = comparison.label.lower().replace(" ", "_")
            more = suffix if comparison is comparisons[0] else f"{suffix}_{slug}"
            named = ", ".join(target.label for target in comparison.targets)
            for name, what, entries in (
                ("published", f"Published ({named}){title}", _published),
                ("verdict", f"Measured minus published ({named}), and verdict{title}", _judged),
            ):
                yield _table(
                    cells,
                    entries,
                    f"{name}{more}",
                    what,
                    [column for column in cells.columns if any(cell.column == column for cell in beside)],
                    [measure for measure in measures if any(cell.measure is measure for cell in beside)],
                    judged,
                    comparison,
                )


def _seeds(cell: Cell) -> str:
    """``3``, or ``3 of 5`` where a grid plans more."""
    if cell.measured is None:
        return "-"
    return f"{cell.measured.n} of {cell.planned}" if cell.measured.n < cell.planned else str(cell.measured.n)


def detail(cells: Cells, column: Column, full: bool) -> Table:
    """One column of a table with everything beside each other.

    ``full`` adds the number of seeds, the spread over partitions and how many there are, the other readings
    and further published tables.
    """
    others = [measure for measure in cells.measures if measure.other]
    further = cells.experiment.comparisons[1:]
    heads = ["Measured", "Published", "Difference" if full else "Diff.", "Verdict"]
    if full:
        heads = ["Seeds", "Measured", "s_d", "Partitions", *heads[1:]]
        heads += [measure.title for measure in others]
        heads += [f"Published ({comparison.label})" for comparison in further]
    here = {line: cell for line in cells.lines if (cell := cells.at(column, line)) is not None}
    measured = _measured(_mean_and_std)(here)
    rows = []
    for line, cell in here.items():
        verdict = "-" if cell.verdict == "not published" else cell.verdict
        entries = [
            measured[line],
            Entry(printed(cell.target, cell.measure.digits)),
            Entry(signed(cell.difference, cell.measure.digits)),
            Entry(verdict),
        ]
        if full:
            read = [cells.at(column, line, measure=measure) for measure in others]
            earlier = [cells.at(column, line, comparison=comparison) for comparison in further]
            entries = [
                Entry(_seeds(cell)),
                entries[0],
                Entry("-" if cell.spread.std is None else f"{cell.spread.std:.2f}"),
                Entry(str(cell.spread.partitions or "-")),
                *entries[1:],
                *(Entry(_mean_and_std(other) if other else "-") for other in read),
                *(Entry(printed(other.target) if other else "-") for other in earlier),
            ]
        rows.append((cells.title(line), tuple(entries)))
    title = column.described(cells.study.title_of(column.dataset))
    name = f"{column.dataset}_{column.scenario}_{column.clients}"
    return Table(name, title, "Method", (("", len(heads)),), tuple(heads), tuple(rows))


def notes(cells: Cells) -> tuple[str, ...]:
    """Why cells are missing or not comparable: one note a verdict and reason, or version of numbers, with
    its lines and columns. Columns of which nothing was run are named once.
    """

    def name(column: Column, point: Point | None = None) -> str:
        where = f"{cells.study.title_of(column.dataset)} {_where(cells, column)}"
        return f"{where} at {point.label}" if point and point.label else where

    ran = cells.ran
    own = [point for point in cells.experiment.points if not point.grid]
    every = [name(column, point) for column in ran for point in own]
    by_head: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells.primary:
        if cell.column in ran and cell.comparison is cells.experiment.comparisons[0]:
            for head in _heads(cell):
                where = by_head[head][cells.title(cell.line)]
                if name(cell.column, cell.point) not in where:
                    where.append(name(cell.column, cell.point))
    lines = []
    for head, by_line in sorted(by_head.items()):
        by_cells: dict[str, list[str]] = defaultdict(list)
        for title, where in by_line.items():
            by_cells["all columns" if where == every and len(every) > 1 else ", ".join(where)].append(title)
        lines.append(f"{head}: " + "; ".join(f"{', '.join(on)} ({at})" for at, on in by_cells.items()))
    idle = [name(column) for column in cells.columns if column not in ran]
    if idle:
        lines.append(f"nothing run yet: {', '.join(idle)}")
    if cells.other_runs:
        lines.append(
            f"{cells.other_runs} further runs of these columns stand in the tables of their experiments, or "
            "were made under attack or with newcomers"
        )
    return tuple(lines)


def _heads(cell: Cell) -> Iterator[str]:
    """What is to be said of a cell besides its numbers."""
    if cell.reason or cell.measured is None:
        # What is not implemented says so of itself, in other words for each.
        reason = "" if cell.verdict == STATES["not_implemented"] else cell.reason
        yield f"{cell.verdict} ({reason})" if reason else cell.verdict
    if cell.group is not None and cell.group.older:
        yield f"older numbers ({cell.group.older}; a sweep makes them again)"


def _one_number(cells: Cells) -> bool:
    """Whether a line has one number in a column, and not one for each of several points or measures."""
    return len(cells.experiment.points) == sum(not measure.other for measure in cells.measures) == 1


def _without_other_partitions(cells: Cells) -> Cells:
    """The table without rows that differ in the partition alone; they give s_d, and stand in the files."""

    def kept(line: Line) -> bool:
        return {part.partition("=")[0] for part in line.setting.split(";")} != {PARTITION}

    return replace(
        cells,
        lines=tuple(line for line in cells.lines if kept(line)),
        by_key={key: cell for key, cell in cells.by_key.items() if kept(cell.line)},
    )


def summary(cells: Cells) -> Summary | None:
    """What a terminal shows of a table; None where nothing was run."""
    if not cells.ran:
        return None
    ran = replace(_without_other_partitions(cells), columns=cells.ran)
    points, comparison = cells.experiment.points, cells.experiment.comparisons[0]
    if _one_number(cells):
        marks = ", ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items())
        overview = _table(
            ran,
            _measured(_mean_and_mark),
            "overview",
            f"Measured; against published: {marks}",
            ran.columns,
            ran.measures[:1],
            points,
            comparison,
        )
        details = tuple(detail(ran, column, full=False) for column in ran.columns)
        return Summary(details, overview, notes(ran))
    tables = []
    for _, title, measures in _layers(ran):
        for column in () if measures[0].other else ran.columns:
            table = _table(ran, _measured(_mean), "", "", [column], measures, points, comparison)
            ((where, width),) = table.groups
            tables.append(replace(table, title=f"{where}{title}", groups=(("", width),)))
    return Summary(tuple(tables), None, notes(cells))


def document(cells: Cells, results: Results) -> Document:
    """Everything about one experiment."""
    study, experiment = cells.study, cells.experiment
    return Document(
        name=f"{study.name}_{experiment.name}",
        title=f"{study.title}: {experiment.title}",
        caption=caption(cells, results),
        notes=notes(cells),
        views=tuple(view for view in _views(cells) if view.rows),
        details=tuple(detail(cells, column, full=True) for column in cells.ran) if _one_number(cells) else (),
        summary=summary(cells),
        primary=tuple(cells.primary),
        cells=tuple(cells.own),
    )
