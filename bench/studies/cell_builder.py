"""Builds the cells of an experiment from what is planned, published and stored."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import product

from bench.grids.experiment import Line, Point
from bench.studies.cells import Cell, Cells, Key, Selection, reading_of_line
from bench.studies.experiment import Comparison, ExperimentPlan
from bench.studies.grading import Grading, grade_runs, margin_of
from bench.studies.groups import Group
from bench.studies.measures import CellReading, Measure, measure_of_metric
from bench.studies.planned import PlannedCell
from bench.studies.published import Published, values
from bench.studies.results import Results
from bench.studies.settings import Column, Reading, difference_text
from bench.studies.study import Study
from bench.studies.verdicts import NOT_COMPARABLE, Verdict, missing_verdict

EVERYBODY = {"protocol.participation": 1.0}
"""What papers mean that state nothing else: all clients train in every round."""


def cells_of(study: Study, plan: ExperimentPlan, results: Results, selection: Selection) -> Cells:
    """Every selected cell of an experiment."""
    columns = tuple(column for column in plan.columns if selection.has_column(column))
    lines = plan.lines
    if plan.finds:
        lines = _with_stored_lines(study, lines, results, columns, selection)
    lines = tuple(line for line in lines if not selection.methods or line.method in selection.methods)
    builder = CellBuilder(study, plan, results)
    by_key = {
        key: cell
        for key in _keys(plan, builder.measures, columns, lines)
        if (cell := builder.cell(*key)) is not None
    }
    other_runs = results.unlisted_runs(columns, {line.runs for line in lines}) if plan.finds else 0
    return Cells(study, results, plan.experiment, builder.measures, columns, lines, by_key, other_runs)


def _keys(
    plan: ExperimentPlan, measures: Collection[Measure], columns: Collection[Column], lines: Collection[Line]
) -> Iterator[Key]:
    experiment = plan.experiment
    for comparison in experiment.comparisons:
        if experiment.main:
            point = experiment.points[0]
            for measure, line, column in product(measures, lines, columns):
                if plan.finds or (column, line, point) in plan.runs:
                    yield comparison, measure, column, line, point
        else:
            for column, (run_column, line, point) in product(columns, plan.runs):
                if run_column == column and line in lines:
                    for measure in measures:
                        yield comparison, measure, column, line, point


def _with_stored_lines(
    study: Study, rows: tuple[Line, ...], results: Results, columns: tuple[Column, ...], selection: Selection
) -> tuple[Line, ...]:
    """The lines of a main table: its own, those of other methods, and of other settings that were run."""
    names = {line.method for line in rows}
    stored_methods = sorted({method for column in columns for method in results.methods(column)} - names)
    own_methods = names | selection.methods
    lines: list[Line] = []
    for line in (
        *rows,
        *(Line(name, study.title_of(name), is_own=name in own_methods) for name in stored_methods),
    ):
        settings = {group.setting for column in columns for group in results.lines(column, line.runs)}
        lines += [replace(line, setting=setting) if setting else line for setting in sorted({"", *settings})]
    return tuple(lines)


class CellBuilder:
    """Makes the cells of one experiment."""

    def __init__(self, study: Study, plan: ExperimentPlan, results: Results) -> None:
        self._study, self._plan, self._results = study, plan, results
        self._experiment = plan.experiment
        margin_of(study)  # a wrong one is refused before anything is measured
        measures = (
            measure_of_metric(measure, results.metric)
            for measure in plan.experiment.measures or study.measures
        )
        known_measures = tuple(measure for measure in measures if measure is not None)
        self.measures = () if all(measure.is_extra for measure in known_measures) else known_measures
        self._groups: dict[tuple[Column, Line, Point], Group | None] = {}
        self._baselines: dict[int, Group | None] = {}

    def cell(
        self, comparison: Comparison, measure: Measure, column: Column, line: Line, point: Point
    ) -> Cell | None:
        """The cell at a place; None where nothing is planned, published or run."""
        reading = reading_of_line(self._study, measure.reading or self._study.primary, line)
        if reading is None:
            return None
        plan_cell, group = self._planned_cell(column, line, point), self._group(column, line, point)
        target = self._target(comparison, measure, column, line, point)
        if group is None and plan_cell is None and (target is None or line.setting):
            return None
        if target is None and comparison is not self._experiment.comparisons[0]:
            return None
        plan_cell = plan_cell or PlannedCell()
        baseline = self._baseline(group, point) if group else None
        if group is None:
            grading = Grading(missing_verdict("not_run"))
        elif not group.done:
            grading = Grading(missing_verdict(*group.failure()))
        else:
            not_comparable_reason = (
                self._not_comparable_reason(target, measure, line, point, group) if target else ""
            )
            readings = self._readings(reading, line) if target and not not_comparable_reason else (reading,)
            context = self._study.average, baseline, point.label
            read_cells = [
                CellReading(self._results, group, reading.stage, reading.rule, *context)
                for reading in readings
            ]
            grading = grade_runs(self._study, measure, read_cells, target, not_comparable_reason)
            if target is None and (datasets := self._printed_on(comparison, measure, column, line, point)):
                verdict = Verdict(NOT_COMPARABLE, f"published on {', '.join(datasets)}")
                grading = replace(grading, verdict=verdict)
        label = comparison.label
        return Cell(
            study=self._study.name,
            document=self._experiment.name,
            title=self._study.line_title(line),
            table=label if measure is self.measures[0] or measure.is_extra else f"{label} ({measure.title})",
            comparison=comparison,
            measure=measure,
            column=column,
            line=line,
            point=point,
            setting=line.setting or difference_text({**line.settings, **point.settings}, {}),
            stage=reading.stage,
            rule=reading.rule,
            average=self._study.average,
            results=self._results,
            measured=grading.measured,
            target=target,
            verdict=grading.verdict.name,
            verdict_reason=grading.verdict.reason,
            missing_runs=_missing_runs(group, plan_cell.seeds) if group and grading.measured else "",
            group=group,
            settings=group.settings if group else plan_cell.settings,
            baseline=baseline,
            control=grading.control,
            spread=grading.spread,
            evidence=grading.verdict.evidence,
            planned_seeds=len(plan_cell.seeds),
        )

    def _readings(self, reading: Reading, line: Line) -> tuple[Reading, ...]:
        """How a line is read, and all else that its published values may be."""
        stages = () if line.stage else self._study.row(line).printed_stages
        return reading, *(Reading(stage, reading.rule) for stage in stages if stage != reading.stage)

    def _planned_cell(self, column: Column, line: Line, point: Point) -> PlannedCell | None:
        if not self._plan.finds:
            return self._plan.runs.get((column, line, point))
        return None if line.setting else self._results.usual_cell(column, line.runs)

    def _group(self, column: Column, line: Line, point: Point) -> Group | None:
        """The runs of a cell: those that are planned for it or, in a main table, all of its setting."""
        place = column, line, point
        if place not in self._groups:
            if self._plan.finds:
                groups = {group.setting: group for group in self._results.lines(column, line.runs)}
                self._groups[place] = groups.get(line.setting)
            else:
                planned_cell = self._plan.runs.get(place)
                runs = self._results.stored_runs(planned_cell.hashes if planned_cell else ())
                settings = planned_cell.settings if planned_cell else {}
                self._groups[place] = Group(column, line.runs, settings, "", runs) if runs else None
        return self._groups[place]

    def _baseline(self, group: Group, point: Point) -> Group | None:
        """The baseline's runs of the same seeds on the same clients: those at the same point, or the usual
        ones where the experiment has none.
        """
        if id(group) not in self._baselines:
            lines = self._plan.lines if not self._plan.finds else ()
            point_groups = (
                self._group(group.column, line, point)
                for line in lines
                if line.method == self._study.baseline and not line.settings
            )
            usual_groups = (
                runs for runs in self._results.groups(group.column, self._study.baseline) if not runs.setting
            )
            baseline = next((runs for runs in (*point_groups, *usual_groups) if runs is not None), None)
            self._baselines[id(group)] = baseline and baseline.common_runs(group)
        return self._baselines[id(group)]

    def _target(
        self, comparison: Comparison, measure: Measure, column: Column, line: Line, point: Point
    ) -> Published | None:
        """The first published value of a cell; None where no table has one."""
        for target in comparison.targets:
            key = self._study.key(target, column, self._study.row(line))
            key = key._replace(dataset=point.datasets.get(column.dataset, key.dataset))
            for setting in _printed_settings(line, point, measure):
                value = values(target.paper, self._study.published).get((key, setting, measure.metric))
                if value:
                    return value
        return None

    def _printed_on(
        self, comparison: Comparison, measure: Measure, column: Column, line: Line, point: Point
    ) -> list[str]:
        """Titles of the data sets on which the published tables have this line, point and measure; none where
        the column's own is one of them, with other clients.
        """
        study, settings = self._study, _printed_settings(line, point, measure)
        name = study.row(line).published_name
        datasets = {
            key.dataset
            for target in comparison.targets
            for (key, setting, metric) in values(target.paper, study.published)
            if (key.table, key.method, metric) == (target.table, name, measure.metric) and setting in settings
        }
        if study.datasets.get(column.dataset, column.dataset) in datasets:
            return []
        # Of several data sets that one name stands for, the main tables' own gives it its title.
        names = {column.dataset for table in study.experiments for column in table.columns}
        titles = {study.datasets.get(dataset, dataset): study.title_of(dataset) for dataset in names}
        return sorted(titles.get(dataset, study.title_of(dataset)) for dataset in datasets)

    def _not_comparable_reason(
        self, target: Published, measure: Measure, line: Line, point: Point, group: Group
    ) -> str:
        """Why a published value is no target for these runs; empty where it is one."""
        return (
            self._experiment.reduced
            or measure.not_comparable_reason
            or self._study.barred(target, group.column, group.settings)
            or _protocol_differs(self._study, target, group, {*line.settings, *point.settings})
        )


def _printed_settings(line: Line, point: Point, measure: Measure) -> list[str]:
    """The settings under which published tables may have a cell."""
    return [
        ";".join(part for part in (base, point.printed, measure.printed) if part) for base in line.printed
    ]


def _protocol_differs(study: Study, target: Published, group: Group, varied_keys: Collection[str]) -> str:
    """How the runs' protocol differs from the stated one, but for ``varied_keys``; empty if not at all."""
    paper_has = {
        key: value
        for key, value in {**EVERYBODY, **study.paper_protocol(target, group.column)}.items()
        if key in group.settings and key not in varied_keys
    }
    run = {key: group.settings[key] for key in paper_has}
    run_difference = difference_text(run, paper_has)
    if not run_difference:
        return ""
    return f"protocol differs: run with {run_difference}, the paper has {difference_text(paper_has, run)}"


def _missing_runs(group: Group, planned_seeds: Collection[int]) -> str:
    """How many seeds have no numbers: planned and never run, or lost; empty where all have."""
    notes = []
    run = set(group.runs["seed"]).intersection(planned_seeds)
    if len(run) < len(planned_seeds):
        notes.append(f"{len(run)} of {len(planned_seeds)} planned seeds")
    lost_runs = len(group.runs) - len(group.done)
    if lost_runs:
        state, failure = group.failure()
        notes.append(f"{lost_runs} of {len(group.runs)} runs without numbers ({state}, {failure})")
    return "; ".join(notes)
