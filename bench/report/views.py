"""From a board's cells to tables, captions and notes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from bench.report.cells import Board, Cell, Line
from bench.report.layout import Reading, Target
from bench.report.places import compared_seeds, measured_places, other_seeds, places
from bench.report.published import Published
from bench.report.results import PARTITION, Group, Results
from bench.report.settings import PER_SEED, Column
from bench.report.table import Document, Entry, Summary, Table
from bench.report.tuned import budget, mark
from bench.report.verdicts import LEAST_PARTITIONS, STATES

if TYPE_CHECKING:
    from bench.report.study import Study

STAGES = {"received": "the model received from the server", "trained": "the model after local training"}
RULES = {
    "best_val": "at the round of best mean validation accuracy over clients",
    "last": "at the last round",
    "best_test": "at the round of best mean test accuracy, which looks at test data",
    "client_best_val": "at each client's own step of best validation accuracy",
}
AVERAGES = {
    "clients": "unweighted mean over clients",
    "samples": "mean over clients weighted by test samples",
}
MARKS = {"reproduced": "=", "above": "^", "below": "v", "not comparable": "~"}
LEGEND = (
    "A verdict is 'reproduced' where measured and published mean differ by at most "
    "max(1 point, 2 sqrt(s_p² + s_m² + s_d²)), s_p the published, s_m the measured standard deviation, "
    f"s_d that of the means over partitions, where at least {LEAST_PARTITIONS} were run; else 'above' or "
    "'below'."
)
PLACES = (
    "Best (bold) and second best (underlined) are those of the cells with the seeds that most cells of their "
    "column hold; (n=2) marks a cell with other seeds."
)

OTHER_SETTINGS = " Rows in brackets have other settings, which they name."

LISTED = 5
"""Partitions of a column that a caption lists."""

Entries = Callable[[Mapping[Line, Cell]], dict[Line, Entry]]
"""From a column's cells to its entries."""


def with_std(mean: float, std: float | None, digits: int = 2) -> str:
    """``74.32 ± 0.42``, or the mean alone where there is no standard deviation."""
    return f"{mean:.{digits}f}" if std is None else f"{mean:.{digits}f} ± {std:.{digits}f}"


def signed(difference: float | None, digits: int = 2) -> str:
    """``+1.23``; ``-`` where there is none."""
    return "-" if difference is None else f"{difference:+.{digits}f}"


def printed(target: Published | None, digits: int = 2) -> str:
    """A published value as text: its numbers, its status (``OOM``), or ``-``."""
    if target is None:
        return "-"
    return target.status if target.mean is None else with_std(target.mean, target.std, digits)


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


def label(study: Study, column: Column) -> str:
    """``Cora 10``."""
    return f"{study.title_of(column.dataset)} {column.clients}"


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


def ranges(numbers: Iterable[int]) -> str:
    """``0-4, 7`` for 0, 1, 2, 3, 4, 7."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def _protocol(group: Group) -> tuple[int, int, str]:
    get = group.settings.get
    split = "/".join(f"{share:g}" for share in get("protocol.split", ()))
    rounds, epochs = int(get("protocol.rounds", 0)), int(get("protocol.local_epochs", 0))
    text = f"{rounds} rounds, {epochs} local epochs, split {split}, partition seed {get(PARTITION)}"
    return rounds, epochs, text


def _protocols(study: Study, groups: list[Group]) -> str:
    """The protocols of the runs of the usual setting by data set, the most frequent first; others with the
    methods that have no other. Methods that do not train have none.
    """
    found: dict[str, dict[tuple[int, int, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for group in groups:
        if not group.setting and group.trains:
            found[group.column.dataset][_protocol(group)].append(group.method)
    parts = []
    for dataset, protocols in sorted(found.items()):
        (first, usual), *others = sorted(protocols.items(), key=lambda item: (-len(item[1]), item[0]))
        texts = [first[-1]]
        for (*_, text), methods in others:
            only = ", ".join(study.title_of(method) for method in dict.fromkeys(methods))
            texts.append(text if set(methods) & set(usual) else f"{text} ({only})")
        parts.append(f"{study.title_of(dataset)}: {'; also '.join(texts)}")
    return "; ".join(parts) or "nothing is trained"


def _partitions(study: Study, groups: Iterable[Group]) -> str:
    """Beginnings of the partitions' hashes by column; of many the first and their number."""
    found: dict[str, set[str]] = defaultdict(set)
    for group in groups:
        found[label(study, group.column)] |= {digest[:8] for digest in group.done["partition_hash"] if digest}
    parts = []
    for where, digests in sorted(found.items()):
        listed = ", ".join(sorted(digests)[:LISTED])
        more = f" and {len(digests) - LISTED} more" if len(digests) > LISTED else ""
        if listed:
            parts.append(f"{where}: {listed}{more}")
    return "; ".join(parts)


def _clashes(study: Study, groups: Iterable[Group]) -> str:
    """Columns whose runs of one partition seed and split are on different clients."""
    found: dict[tuple[str, str, int], set[str]] = defaultdict(set)
    for group in groups:
        drawn = group.settings["protocol.partition_seed"]
        for seed, digest in zip(group.done["seed"], group.done["partition_hash"], strict=True):
            where = label(study, group.column), str(group.settings["protocol.split"])
            found[*where, int(seed if drawn == PER_SEED else drawn)].add(digest[:8])
    return "; ".join(
        f"{where}, partition seed {seed}: {', '.join(sorted(digests))}"
        for (where, _, seed), digests in sorted(found.items())
        if len(digests) > 1
    )


def describe(environment: Mapping[str, Any]) -> str:
    """The hardware and main versions of an environment on one line."""
    threads, packages = environment.get("threads"), environment.get("packages", {})
    parts = [
        environment.get("accelerator"),
        environment.get("processor"),
        f"{threads} thread{'' if threads == 1 else 's'}" if threads else "",
        f"Python {environment['python']}" if environment.get("python") else "",
        f"torch {packages['torch']}" if packages.get("torch") else "",
    ]
    return ", ".join(part for part in parts if part)


def caption(study: Study, board: Board, results: Results) -> tuple[str, ...]:
    """What a reader must know of a table: comparison, protocol, seeds, partitions, environment."""
    lines = [
        f"Test accuracy in percent, {AVERAGES[study.average]}; mean ± sample standard deviation over seeds.",
        f"Primary comparison: {STAGES[study.primary.stage]}, {RULES[study.primary.rule]} "
        f"(stage {study.primary.stage}, rule {study.primary.rule}).",
        *study.remarks,
        LEGEND,
        tolerances(study, (cell for key, cell in board.cells.items() if key[1] == study.primary)),
        PLACES,
    ]
    return (*lines, *circumstances(study, board.groups(), results))


def tolerances(study: Study, cells: Iterable[Cell]) -> str:
    """Which columns' tolerances hold the spread over partitions, and over how many."""
    found: dict[str, set[int]] = defaultdict(set)
    for cell in cells:
        if cell.spread.std is not None:
            found[label(study, cell.column)].add(cell.spread.partitions)
    columns = "; ".join(f"{where}: {ranges(numbers)}" for where, numbers in sorted(found.items()))
    if not columns:
        return (
            f"No tolerance holds an s_d: no cell has runs on {LEAST_PARTITIONS} partitions that differ in "
            "nothing else. Where every seed draws its own partition, s_m holds that spread."
        )
    return f"Partitions behind s_d, which a verdict's tolerance holds: {columns}; nowhere else."


def circumstances(study: Study, every: Iterable[Group], results: Results) -> tuple[str, ...]:
    """How, with which seeds, on which partitions and where the runs of a document were made."""
    groups = [group for group in every if not group.done.empty]
    if not groups:
        return ("Nothing of this table has been run yet.",)
    seeds = ranges(seed for group in groups for seed in group.seeds)
    lines = [
        f"Protocol: {_protocols(study, groups)}. Seeds: {seeds}.",
        f"Tuning budget: {study.tuning}.{OTHER_SETTINGS if any(group.setting for group in groups) else ''}",
        *(
            f"Rows marked '{text}': {what}."
            for text, what in sorted({(mark(g.tuned), budget(g.tuned)) for g in groups if g.tuned})
        ),
    ]
    partitions = _partitions(study, groups)
    if partitions:
        lines.append(f"Partitions: {partitions}.")
    clashes = _clashes(study, groups)
    if clashes:
        lines.append(f"Not the same clients, and not to be compared, in {clashes}.")
    devices = sorted({device for group in groups for device in group.done["device"] if device})
    made = sorted({describe(environment) for environment in results.environments(groups)} - {""})
    if devices:
        lines.append(f"Devices: {', '.join(devices)}.")
    if made:
        lines.append("Environment: " + "; ".join(made) + ".")
    imported = Counter(
        origin
        for group in groups
        for origin in zip(group.done["bundle"], group.done["bundle_state"], strict=True)
        if origin[0]
    )
    if imported:
        bundles = ", ".join(
            f"{name} ({runs} runs, {state})" for (name, state), runs in sorted(imported.items())
        )
        lines.append(f"Imported: {bundles}.")
    return tuple(lines)


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
