"""The cells of a table: measured, published, difference and verdict."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from bench.report.layout import PaperTable, Reading, Row, Target
from bench.report.published import Published
from bench.report.results import Aggregate, Group, PartitionSpread, Results
from bench.report.settings import Column, difference
from bench.report.study import Study
from bench.report.verdicts import Verdict, judge, missing

HEADER = (
    "study",
    "table",
    "dataset",
    "scenario",
    "clients",
    "method",
    "setting",
    "stage",
    "rule",
    "n",
    "mean",
    "std",
    "s_d",
    "partitions",
    "published_mean",
    "published_std",
    "difference",
    "verdict",
    "reason",
)
"""Columns of ``cells.csv``; accuracies and differences in percent and points."""


@dataclass(frozen=True)
class Selection:
    """Which part of a study is reported; None takes everything."""

    datasets: frozenset[str] | None = None
    scenarios: frozenset[str] | None = None
    clients: frozenset[int] | None = None
    methods: frozenset[str] | None = None
    columns: frozenset[Column] | None = None

    def has_column(self, column: Column) -> bool:
        """Whether the column is reported."""
        return (
            (self.datasets is None or column.dataset in self.datasets)
            and (self.scenarios is None or column.scenario in self.scenarios)
            and (self.clients is None or column.clients in self.clients)
            and (self.columns is None or column in self.columns)
        )

    def has_method(self, method: str) -> bool:
        """Whether the method is reported."""
        return self.methods is None or method in self.methods


@dataclass(frozen=True)
class Cell:
    """One cell under one reading, beside one published table.

    ``spread`` is what its verdict's tolerance holds of other partitions, ``planned`` the number of seeds
    that a grid plans for it (0: none does).
    """

    study: str
    table: str
    column: Column
    method: str
    setting: str
    stage: str
    rule: str
    measured: Aggregate | None
    target: Published | None
    verdict: str
    reason: str
    group: Group | None = field(repr=False, default=None)
    spread: PartitionSpread = field(default_factory=PartitionSpread)
    planned: int = 0

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds that have numbers."""
        return self.group.seeds if self.group else ()

    @property
    def lost(self) -> int:
        """Number of runs without numbers."""
        return len(self.group.runs) - len(self.group.done) if self.group else 0

    @property
    def difference(self) -> float | None:
        """Measured minus published mean in points, where there are both."""
        if self.measured is None or self.target is None or self.target.mean is None:
            return None
        return self.measured.mean - self.target.mean

    def row(self) -> tuple[str, ...]:
        """The cell as a row of ``cells.csv``; empty where there is no value."""

        def number(value: float | None) -> str:
            return "" if value is None else f"{value:.4f}"

        measured, target = self.measured, self.target
        return (
            self.study,
            self.table,
            self.column.dataset,
            self.column.scenario,
            str(self.column.clients),
            self.method,
            self.setting,
            self.stage,
            self.rule,
            str(measured.n if measured else 0),
            number(measured.mean if measured else None),
            number(measured.std if measured else None),
            number(self.spread.std),
            str(self.spread.partitions or ""),
            number(target.mean if target else None),
            number(target.std if target else None),
            number(self.difference),
            self.verdict,
            self.reason,
        )


@dataclass(frozen=True)
class Line:
    """A row of a table together with the setting it shows (empty: the usual one) and its name.

    ``own`` are the study's rows, and methods that the request names; others were found in the database.
    """

    row: Row
    setting: str = ""
    name: str = ""
    own: bool = True

    @property
    def competes(self) -> bool:
        """Whether the line can be best or second best, as it can have a rank."""
        return self.own and self.row.ranked and not self.setting

    @property
    def title(self) -> str:
        """The row's title, with the setting, or its name, where it is not the usual one."""
        return f"{self.row.title} [{self.name or self.setting}]" if self.setting else self.row.title


@dataclass(frozen=True, eq=False)
class Board:
    """The selected cells of one table: every published or planned one, measured or not.

    ``cells`` is keyed by target, reading, column and line. There is a cell wherever the paper
    prints a value, a grid plans a run or the database holds one; for a line with a setting only
    where that was run. ``beside`` counts runs of its columns and methods that stand elsewhere.
    """

    table: PaperTable
    columns: tuple[Column, ...]
    rows: tuple[Line, ...]
    cells: dict[tuple[Target, Reading, Column, Line], Cell]
    beside: int = 0

    def groups(self) -> list[Group]:
        """The groups of runs behind the cells, each once."""
        return list({id(cell.group): cell.group for cell in self.cells.values() if cell.group}.values())


def _lines(study: Study, results: Results, columns: tuple[Column, ...], selection: Selection) -> list[Line]:
    known = {row.method for row in study.rows}
    found = {method for column in columns for method in results.methods(column)} - known
    rows = [*study.rows, *(Row(name, study.title_of(name)) for name in sorted(found))]
    own = known | (selection.methods or frozenset())
    lines: list[Line] = []
    for row in rows:
        if not selection.has_method(row.method):
            continue
        settings = {group.setting for column in columns for group in results.lines(column, row.runs)}
        lines.extend(
            Line(row, setting, study.settings.get(setting, ""), row.method in own)
            for setting in sorted({"", *settings})
        )
    return lines


def _stage(study: Study, reading: Reading, row: Row) -> str | None:
    """The stage that a row shows under a reading; None where the row has no place in it."""
    if not row.stage or row.stage == reading.stage:
        return reading.stage
    return row.stage if reading.stage == study.primary.stage else None


def protocol_differs(
    study: Study, target: Published, column: Column, group: Group, varied: Collection[str] = ()
) -> str:
    """How the runs' protocol differs from the stated one, but for ``varied`` keys; empty if not at all."""
    paper_has = {
        key: value
        for key, value in study.paper_protocol(target, column).items()
        if key in group.settings and key not in varied
    }
    run = {key: group.settings[key] for key in paper_has}
    other = difference(run, paper_has)
    if not other:
        return ""
    return f"protocol differs: run with {other}, the paper has {difference(paper_has, run)}"


def _unmeasured(results: Results, column: Column, row: Row, group: Group | None) -> Verdict:
    if group is not None:
        return missing(*group.failure())
    expected = results.expected(column, row.runs)
    return missing(expected.state, expected.reason)


def _cell(
    study: Study,
    table: PaperTable,
    target: Target,
    reading: Reading,
    stage: str,
    column: Column,
    line: Line,
    results: Results,
) -> Cell | None:
    groups = {group.setting: group for group in results.lines(column, line.row.runs)}
    group = groups.get(line.setting)
    value = study.target(target, column, line.row)
    if group is None and (line.setting or not (value or results.planned(column, line.row.runs))):
        return None
    measured, spread = None, PartitionSpread()
    seeds = () if line.setting else results.expected(column, line.row.runs).seeds
    if group is None or group.done.empty:
        verdict = _unmeasured(results, column, line.row, group)
    else:
        measured = results.aggregate(group, stage, reading.rule, study.average)
        if measured is None:
            verdict = missing("not_applicable", f"no results of stage {stage} and rule {reading.rule}")
        else:
            spread = results.partition_spread(group, stage, reading.rule, study.average)
            barred = (
                study.barred(value, column, group.settings) or protocol_differs(study, value, column, group)
                if value
                else ""
            )
            verdict = judge(value, measured.mean, measured.std, measured.n, spread.std or 0.0, barred)
            verdict = Verdict(verdict.name, with_missing_seeds(verdict.reason, group, seeds))
    return Cell(
        study=study.name,
        table=target.label,
        column=column,
        method=line.row.method,
        setting=line.setting,
        stage=stage,
        rule=reading.rule,
        measured=measured,
        target=value,
        verdict=verdict.name,
        reason=verdict.reason,
        group=group,
        spread=spread,
        planned=len(seeds),
    )


def with_missing_seeds(reason: str, group: Group, planned: Collection[int]) -> str:
    """A reason that also says how many seeds have no numbers: planned and never run, or lost."""
    notes = [reason] if reason else []
    run = set(group.runs["seed"]).intersection(planned)
    if len(run) < len(planned):
        notes.append(f"{len(run)} of {len(planned)} planned seeds")
    lost = len(group.runs) - len(group.done)
    if lost:
        state, why = group.failure()
        notes.append(f"{lost} of {len(group.runs)} runs without numbers ({state}, {why})")
    return "; ".join(notes)


def board(study: Study, table: PaperTable, results: Results, selection: Selection) -> Board:
    """Every selected cell of a table, under every reading, beside every published table.

    A second published table (an earlier version of the paper) has cells only where it prints a
    value.
    """
    columns = tuple(column for column in table.columns if selection.has_column(column))
    lines = _lines(study, results, columns, selection)
    cells: dict[tuple[Target, Reading, Column, Line], Cell] = {}
    for target in table.targets:
        for reading in (study.primary, *study.readings):
            for line in lines:
                stage = _stage(study, reading, line.row)
                if stage is None:
                    continue
                for column in columns:
                    cell = _cell(study, table, target, reading, stage, column, line, results)
                    if cell and (target is table.targets[0] or cell.target):
                        cells[target, reading, column, line] = cell
    beside = results.beside(columns, {line.row.runs for line in lines})
    return Board(table, columns, tuple(lines), cells, beside)
