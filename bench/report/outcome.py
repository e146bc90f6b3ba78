"""The cells of an experiment: measured, published, difference and verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.report.cells import Cell, Selection, protocol_differs, with_missing_seeds
from bench.report.experiment import Experiment, Line, Plan, Point, Runs
from bench.report.layout import Reading, Row, Target
from bench.report.measures import Measure, Measured
from bench.report.published import Published, values
from bench.report.results import Aggregate, Group, PartitionSpread, Results
from bench.report.settings import Column, difference
from bench.report.study import Study
from bench.report.verdicts import Verdict, judge, missing

Where = tuple[Column, Line, Point, Measure]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The selected part of an experiment: a cell wherever its grid plans runs, measured or not.

    ``titles`` name the lines.
    """

    experiment: Experiment
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    titles: Mapping[Line, str]
    cells: Mapping[Where, Cell]

    def groups(self) -> list[Group]:
        """The groups of runs behind the cells, each once."""
        return list({id(cell.group): cell.group for cell in self.cells.values() if cell.group}.values())

    @property
    def by_method(self) -> bool:
        """Whether every line is another method."""
        return len({line.method for line in self.lines}) == len(self.lines)

    @property
    def ran(self) -> tuple[Column, ...]:
        """Columns where anything of the experiment's own grid was run."""
        found = {
            column for (column, _, point, _), cell in self.cells.items() if cell.group and not point.grid
        }
        return tuple(column for column in self.columns if column in found)


def title_of(study: Study, line: Line) -> str:
    """A line's label; without one its method with its settings."""
    if line.label:
        return line.label
    title, settings = study.title_of(line.method), difference(line.settings, {})
    return f"{title} [{settings}]" if settings else title


def _row(study: Study, line: Line) -> Row:
    """The study's row of the line's method, which knows its name in the published numbers."""
    return next((row for row in study.rows if row.method == line.method), Row(line.method, line.label))


def printed(
    study: Study, experiment: Experiment, column: Column, line: Line, point: Point, measure: Measure
) -> tuple[Target, Published] | None:
    """The first published value of a cell and where it is printed; None where no table has one."""
    if point.grid:
        return None
    for target in experiment.targets:
        key = study.key(target, column, _row(study, line))
        for own in line.printed:
            setting = ";".join(part for part in (own, point.printed) if part)
            found = values(target.paper).get((key, setting, measure.metric))
            if found:
                return target, found
    return None


def _printed_on(
    study: Study, experiment: Experiment, line: Line, point: Point, measure: Measure
) -> list[str]:
    """Titles of the data sets on which the published tables have this line, point and measure."""
    if point.grid:
        return []
    wanted = {";".join(part for part in (own, point.printed) if part) for own in line.printed}
    name = _row(study, line).published_name
    found = {
        key.dataset
        for target in experiment.targets
        for (key, setting, metric) in values(target.paper)
        if (key.table, key.method, metric) == (target.table, name, measure.metric) and setting in wanted
    }
    # Of several data sets that one name stands for, the main tables' own gives it its title.
    here = {column.dataset for table in study.tables for column in table.columns}
    titles = {study.datasets.get(dataset, dataset): study.title_of(dataset) for dataset in here}
    return sorted(titles.get(dataset, study.title_of(dataset)) for dataset in found)


def _group(results: Results, column: Column, line: Line, runs: Runs) -> Group | None:
    stored = results.stored(runs.hashes)
    return None if stored.empty else Group(column, line.method, runs.settings, "", stored)


def _verdict(
    study: Study, plan: Plan, where: Where, measured: Measured, found: Aggregate, s_d: float
) -> Verdict:
    column, line, point, measure = where
    group = measured.group
    target = printed(study, plan.experiment, column, line, point, measure)
    if target is None:
        elsewhere = _printed_on(study, plan.experiment, line, point, measure)
        return (
            Verdict("not comparable", f"published on {', '.join(elsewhere)}")
            if elsewhere
            else judge(None, found.mean, found.std, found.n)
        )
    _, value = target
    varied = {*line.settings, *point.settings}
    barred = (
        measure.barred
        or study.barred(value, column, group.settings)
        or protocol_differs(study, value, column, group, varied)
    )
    return judge(value, found.mean, found.std, found.n, s_d, barred)


def _cell(
    study: Study,
    plan: Plan,
    where: Where,
    runs: Runs,
    groups: Mapping[tuple[Line, Point], Group | None],
    results: Results,
) -> Cell:
    column, line, point, measure = where
    reading = measure.reading or study.primary
    reading = Reading(line.stage or reading.stage, reading.rule)
    group = groups[line, point]
    found, spread = None, PartitionSpread()
    if group is None:
        verdict = missing("not_implemented" if runs.reason else "not_run", runs.reason)
    elif group.done.empty:
        verdict = missing(*group.failure())
    else:
        baseline = next(
            (
                other
                for (each, at), other in groups.items()
                if at is point and each.method == study.baseline and not each.settings
            ),
            None,
        )
        measured = Measured(results, group, reading.stage, reading.rule, study.average, baseline)
        numbers = measure.of(measured)
        if numbers:
            found = Aggregate(numbers)
            if measure.metric == "accuracy":
                spread = results.partition_spread(group, reading.stage, reading.rule, study.average)
            verdict = _verdict(study, plan, where, measured, found, spread.std or 0.0)
            verdict = Verdict(verdict.name, with_missing_seeds(verdict.reason, group, runs.seeds))
        else:
            verdict = missing(
                "not_applicable", f"no {measure.metric} of stage {reading.stage} and rule {reading.rule}"
            )
    target = printed(study, plan.experiment, column, line, point, measure)
    first = plan.experiment.measures[0]
    label = plan.experiment.label
    return Cell(
        study=study.name,
        table=label if measure is first or measure.other else f"{label} ({measure.title})",
        column=column,
        method=line.method,
        setting=difference({**line.settings, **point.settings}, {}),
        stage=reading.stage,
        rule=reading.rule,
        measured=found,
        target=target[1] if target else None,
        verdict=verdict.name,
        reason=verdict.reason,
        group=group,
        spread=spread,
        planned=len(runs.seeds),
    )


def outcome(study: Study, plan: Plan, results: Results, selection: Selection) -> Outcome:
    """Every selected cell of an experiment."""
    columns = tuple(column for column in plan.columns if selection.has_column(column))
    lines = tuple(line for line in plan.lines if selection.has_method(line.method))
    cells: dict[Where, Cell] = {}
    for column in columns:
        here = {(line, point): runs for (where, line, point), runs in plan.runs.items() if where == column}
        groups = {(line, point): _group(results, column, line, runs) for (line, point), runs in here.items()}
        for (line, point), runs in here.items():
            if line not in lines:
                continue
            for measure in plan.experiment.measures:
                where = (column, line, point, measure)
                cells[where] = _cell(study, plan, where, runs, groups, results)
    return Outcome(plan.experiment, columns, lines, {line: title_of(study, line) for line in lines}, cells)
