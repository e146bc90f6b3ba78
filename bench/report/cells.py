"""The cells of an experiment: measured, published, difference and verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from bench.report.experiment import Comparison, Experiment, Line, Plan, Point
from bench.report.measures import Measure, Measured
from bench.report.planned import PlannedCell
from bench.report.published import Published, values
from bench.report.results import Aggregate, Group, PartitionSpread, Results
from bench.report.settings import Column, Reading, Settings, difference
from bench.report.study import Study
from bench.report.verdicts import Verdict, judge, missing

DEFAULT, TUNED, OTHER = "default", "tuned", "other settings"
"""Whether a cell has the settings that the study's grids plan, those that tuning found, or others."""


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


@dataclass(frozen=True, eq=False)
class Cell:
    """One number of a table under one measure, beside one comparison's published value.

    ``document`` is its experiment; ``table`` names table and measure for readers, ``title`` its line.
    ``setting`` is what its runs have other than the method's usual settings, ``settings`` all that its runs
    have, or are planned with. ``baseline`` are the runs of the study's baseline in the same place, of the
    same seeds on the same clients. ``spread`` is what its verdict's tolerance holds of other partitions,
    ``planned`` the number of seeds that a grid plans for it (0: none does).
    """

    study: str
    document: str
    table: str
    title: str
    comparison: Comparison
    measure: Measure
    column: Column
    line: Line
    point: Point
    setting: str
    stage: str
    rule: str
    measured: Aggregate | None
    target: Published | None
    verdict: str
    reason: str
    group: Group | None = field(repr=False, default=None)
    settings: Settings = field(repr=False, default_factory=dict)
    baseline: Group | None = field(repr=False, default=None)
    spread: PartitionSpread = field(default_factory=PartitionSpread)
    planned: int = 0

    @property
    def method(self) -> str:
        """The line's method."""
        return self.line.method

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

    @property
    def tuning(self) -> str:
        """``DEFAULT``, ``TUNED`` or ``OTHER``."""
        if self.group and self.group.tuned:
            return TUNED
        return OTHER if self.setting else DEFAULT


Key = tuple[Comparison, Measure, Column, Line, Point]


@dataclass(frozen=True, eq=False)
class Cells:
    """The selected cells of an experiment: every planned, published or found one, measured or not.

    ``other_runs`` counts the runs of a main table's columns and methods that stand elsewhere.
    """

    study: Study
    experiment: Experiment
    measures: tuple[Measure, ...]
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    by_key: Mapping[Key, Cell]
    other_runs: int = 0

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.by_key.values())

    def at(
        self,
        column: Column,
        line: Line,
        point: Point | None = None,
        measure: Measure | None = None,
        comparison: Comparison | None = None,
    ) -> Cell | None:
        """The cell at a place, where there is one; by default of the first point, measure and comparison."""
        first = self.experiment
        return self.by_key.get(
            (
                comparison or first.comparisons[0],
                measure or self.measures[0],
                column,
                line,
                point or first.points[0],
            )
        )

    @property
    def main(self) -> list[Cell]:
        """The cells under the first measure and comparison, in their order."""
        first = self.experiment.comparisons[0], self.measures[0]
        return [cell for cell in self if (cell.comparison, cell.measure) == first]

    @property
    def own(self) -> list[Cell]:
        """The cells whose verdicts stand here: those of other grids' runs have another table."""
        return [cell for cell in self if not cell.point.grid]

    @property
    def primary(self) -> list[Cell]:
        """The cells that verdicts rest on."""
        return [cell for cell in self.own if not cell.measure.other]

    @property
    def groups(self) -> list[Group]:
        """The groups of runs behind the cells, each once."""
        return list({id(cell.group): cell.group for cell in self if cell.group}.values())

    @property
    def ran(self) -> tuple[Column, ...]:
        """Columns where anything of the experiment's own was run."""
        with_runs = {cell.column for cell in self.own if cell.group}
        return tuple(column for column in self.columns if column in with_runs)

    @property
    def by_method(self) -> bool:
        """Whether every line is another method."""
        return len({line.method for line in self.lines}) == len(self.lines)

    def title(self, line: Line) -> str:
        """A line's name."""
        return self.study.line_title(line)


def cells_of(study: Study, plan: Plan, results: Results, selection: Selection) -> Cells:
    """Every selected cell of an experiment."""
    columns = tuple(column for column in plan.columns if selection.has_column(column))
    lines = plan.lines
    if plan.experiment.main:
        lines = _with_found(study, lines, results, columns, selection)
    lines = tuple(line for line in lines if selection.has_method(line.method))
    maker = _Maker(study, plan, results)
    by_key = {
        key: cell
        for key in _keys(plan, maker.measures, columns, lines)
        if (cell := maker.cell(*key)) is not None
    }
    further = results.beside(columns, {line.runs for line in lines}) if plan.experiment.main else 0
    return Cells(study, plan.experiment, maker.measures, columns, lines, by_key, further)


def _keys(
    plan: Plan, measures: Collection[Measure], columns: Collection[Column], lines: Collection[Line]
) -> Iterator[Key]:
    experiment = plan.experiment
    if experiment.main:
        for comparison in experiment.comparisons:
            for measure in measures:
                for line in lines:
                    for column in columns:
                        yield comparison, measure, column, line, experiment.points[0]
    else:
        for column in columns:
            for where, line, point in plan.runs:
                if where == column and line in lines:
                    for measure in measures:
                        yield experiment.comparisons[0], measure, column, line, point


def _with_found(
    study: Study, rows: tuple[Line, ...], results: Results, columns: tuple[Column, ...], selection: Selection
) -> tuple[Line, ...]:
    """The lines of a main table: its own, those of other methods, and of other settings that were run."""
    known = {line.method for line in rows}
    found = sorted({method for column in columns for method in results.methods(column)} - known)
    own = known | (selection.methods or frozenset())
    lines: list[Line] = []
    for line in (*rows, *(Line(name, study.title_of(name), own=name in own) for name in found)):
        settings = {group.setting for column in columns for group in results.lines(column, line.runs)}
        lines += [replace(line, setting=setting) if setting else line for setting in sorted({"", *settings})]
    return tuple(lines)


class _Maker:
    """Makes the cells of one experiment."""

    def __init__(self, study: Study, plan: Plan, results: Results) -> None:
        self._study, self._plan, self._results = study, plan, results
        self._experiment = plan.experiment
        self.measures = plan.experiment.measures or study.measures
        self._groups: dict[tuple[Column, Line, Point], Group | None] = {}
        self._baselines: dict[int, Group | None] = {}

    def cell(
        self, comparison: Comparison, measure: Measure, column: Column, line: Line, point: Point
    ) -> Cell | None:
        """The cell at a place; None where nothing is planned, published or run."""
        reading = read_as(self._study, measure.reading or self._study.primary, line)
        if reading is None:
            return None
        planned, group = self._planned(column, line, point), self._group(column, line, point)
        target = self._target(comparison, measure, column, line, point)
        if group is None and planned is None and (target is None or line.setting):
            return None
        if target is None and comparison is not self._experiment.comparisons[0]:
            return None
        planned = planned or PlannedCell()
        measured, spread = None, PartitionSpread()
        baseline = self._baseline(group, point) if group else None
        if group is None:
            verdict = missing(planned.state, planned.reason)
        elif group.done.empty:
            verdict = missing(*group.failure())
        else:
            numbers = measure.of(
                Measured(
                    self._results,
                    group,
                    reading.stage,
                    reading.rule,
                    self._study.average,
                    baseline,
                    point.label,
                )
            )
            measured = Aggregate(numbers) if numbers else None
            if measured is None:
                verdict = missing(
                    "not_applicable", f"no {measure.metric} of stage {reading.stage} and rule {reading.rule}"
                )
            else:
                if measure.metric == "accuracy":
                    spread = self._results.partition_spread(
                        group, reading.stage, reading.rule, self._study.average
                    )
                barred = self._barred(target, measure, line, point, group) if target else ""
                verdict = judge(target, measured.mean, measured.std, measured.n, spread.std or 0.0, barred)
                if target is None and (datasets := self._printed_on(comparison, measure, line, point)):
                    verdict = Verdict("not comparable", f"published on {', '.join(datasets)}")
                verdict = Verdict(verdict.name, _with_missing_seeds(verdict.reason, group, planned.seeds))
        label = comparison.label
        return Cell(
            study=self._study.name,
            document=self._experiment.name,
            title=self._study.line_title(line),
            table=label if measure is self.measures[0] or measure.other else f"{label} ({measure.title})",
            comparison=comparison,
            measure=measure,
            column=column,
            line=line,
            point=point,
            setting=line.setting or difference({**line.settings, **point.settings}, {}),
            stage=reading.stage,
            rule=reading.rule,
            measured=measured,
            target=target,
            verdict=verdict.name,
            reason=verdict.reason,
            group=group,
            settings=group.settings if group else planned.settings,
            baseline=baseline,
            spread=spread,
            planned=len(planned.seeds),
        )

    def _planned(self, column: Column, line: Line, point: Point) -> PlannedCell | None:
        if not self._experiment.main:
            return self._plan.runs.get((column, line, point))
        return None if line.setting else self._results.usual(column, line.runs)

    def _group(self, column: Column, line: Line, point: Point) -> Group | None:
        """The runs of a cell: those that are planned for it or, in a main table, all of its setting."""
        place = column, line, point
        if place not in self._groups:
            if self._experiment.main:
                groups = {group.setting: group for group in self._results.lines(column, line.runs)}
                self._groups[place] = groups.get(line.setting)
            else:
                planned = self._plan.runs.get(place)
                stored = self._results.stored(planned.hashes if planned else ())
                settings = planned.settings if planned else {}
                self._groups[place] = None if stored.empty else Group(column, line.runs, settings, "", stored)
        return self._groups[place]

    def _baseline(self, group: Group, point: Point) -> Group | None:
        """The baseline's runs of the same seeds on the same clients: those at the same point, or the usual
        ones where the experiment has none.
        """
        if id(group) not in self._baselines:
            lines = self._plan.lines if not self._experiment.main else ()
            own = (
                self._group(group.column, line, point)
                for line in lines
                if line.method == self._study.baseline and not line.settings
            )
            usual = (
                other
                for other in self._results.groups(group.column, self._study.baseline)
                if not other.setting
            )
            found = next((other for other in (*own, *usual) if other is not None), None)
            self._baselines[id(group)] = found and found.alongside(group)
        return self._baselines[id(group)]

    def _target(
        self, comparison: Comparison, measure: Measure, column: Column, line: Line, point: Point
    ) -> Published | None:
        """The first published value of a cell; None where no table has one."""
        if point.grid:
            return None
        for target in comparison.targets:
            key = self._study.key(target, column, self._study.row(line))
            key = key._replace(dataset=point.datasets.get(column.dataset, key.dataset))
            for setting in _printed_settings(line, point, measure):
                value = values(target.paper, self._study.published).get((key, setting, measure.metric))
                if value:
                    return value
        return None

    def _printed_on(self, comparison: Comparison, measure: Measure, line: Line, point: Point) -> list[str]:
        """Titles of the data sets on which the published tables have this line, point and measure."""
        if point.grid:
            return []
        study, settings = self._study, _printed_settings(line, point, measure)
        name = study.row(line).published_name
        datasets = {
            key.dataset
            for target in comparison.targets
            for (key, setting, metric) in values(target.paper, study.published)
            if (key.table, key.method, metric) == (target.table, name, measure.metric) and setting in settings
        }
        # Of several data sets that one name stands for, the main tables' own gives it its title.
        here = {column.dataset for table in study.experiments for column in table.columns}
        titles = {study.datasets.get(dataset, dataset): study.title_of(dataset) for dataset in here}
        return sorted(titles.get(dataset, study.title_of(dataset)) for dataset in datasets)

    def _barred(self, target: Published, measure: Measure, line: Line, point: Point, group: Group) -> str:
        """Why a published value is no target for these runs; empty where it is one."""
        return (
            self._experiment.reduced
            or measure.barred
            or self._study.barred(target, group.column, group.settings)
            or _protocol_differs(self._study, target, group, {*line.settings, *point.settings})
        )


def read_as(study: Study, reading: Reading, line: Line) -> Reading | None:
    """How a line is read where a reading is asked for; None where it has no place: a line of one stage stands
    where that stage is asked for, and in place of the study's primary one.
    """
    if not line.stage or line.stage == reading.stage:
        return reading
    return Reading(line.stage, reading.rule) if reading.stage == study.primary.stage else None


def _printed_settings(line: Line, point: Point, measure: Measure) -> list[str]:
    """The settings under which published tables may have a cell."""
    return [";".join(part for part in (own, point.printed, measure.printed) if part) for own in line.printed]


def _protocol_differs(study: Study, target: Published, group: Group, varied: Collection[str]) -> str:
    """How the runs' protocol differs from the stated one, but for ``varied`` keys; empty if not at all."""
    paper_has = {
        key: value
        for key, value in study.paper_protocol(target, group.column).items()
        if key in group.settings and key not in varied
    }
    run = {key: group.settings[key] for key in paper_has}
    other = difference(run, paper_has)
    if not other:
        return ""
    return f"protocol differs: run with {other}, the paper has {difference(paper_has, run)}"


def _with_missing_seeds(reason: str, group: Group, planned: Collection[int]) -> str:
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
