"""The cells of an experiment: measured, published, difference and verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from bench.grids.experiment import Line, Point
from bench.studies.experiment import Comparison, Experiment
from bench.studies.groups import Aggregate, Average, Group
from bench.studies.measures import CellReading, Measure
from bench.studies.published import Published
from bench.studies.results import Results
from bench.studies.settings import Column, Reading, Settings
from bench.studies.study import Study
from bench.studies.verdicts import Evidence, PartitionSpread

DEFAULT, TUNED, OTHER = "default", "tuned", "other settings"
"""Whether a cell has the settings that the study's grids plan, those that tuning found, or others."""


@dataclass(frozen=True)
class Selection:
    """Which part of a study is reported; an empty set takes everything."""

    datasets: frozenset[str] = frozenset()
    scenarios: frozenset[str] = frozenset()
    clients: frozenset[int] = frozenset()
    methods: frozenset[str] = frozenset()
    columns: frozenset[Column] = frozenset()

    def has_column(self, column: Column) -> bool:
        """Whether the column is reported."""
        return (
            (not self.datasets or column.dataset in self.datasets)
            and (not self.scenarios or column.scenario in self.scenarios)
            and (not self.clients or column.clients in self.clients)
            and (not self.columns or column in self.columns)
        )


@dataclass(frozen=True, eq=False)
class Cell:
    """One number of a table under one measure, beside one comparison's published value.

    ``document`` is its experiment; ``table`` names table and measure for readers, ``title`` its line.
    ``setting`` is what its runs have other than the method's usual settings, ``settings`` all that its runs
    have, or are planned with. ``baseline`` are the runs of the study's baseline in the same place, of the
    same seeds on the same clients, ``control`` what the study's control reaches on them, one value a seed.
    ``average`` says how clients are averaged; ``results`` are those that it was made from.
    ``spread`` is what its verdict's tolerance holds of other partitions, ``evidence`` what its grade rests
    on; a cell without one has no grade. ``verdict_reason`` is why there is no grade, ``missing_runs`` how
    many of the planned seeds have no numbers, ``planned_seeds`` how many a grid plans (0: none does).
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
    average: Average
    results: Results = field(repr=False)
    measured: Aggregate | None
    target: Published | None
    verdict: str
    verdict_reason: str
    missing_runs: str = ""
    group: Group | None = field(repr=False, default=None)
    settings: Settings = field(repr=False, default_factory=dict)
    baseline: Group | None = field(repr=False, default=None)
    control: Aggregate | None = None
    spread: PartitionSpread = field(default_factory=PartitionSpread)
    evidence: Evidence | None = None
    planned_seeds: int = 0

    @property
    def method(self) -> str:
        """The line's method."""
        return self.line.method

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds that have numbers."""
        return self.group.seeds if self.group else ()

    @property
    def reason(self) -> str:
        """Why it has no grade, and which runs are missing."""
        return "; ".join(filter(None, (self.verdict_reason, self.missing_runs)))

    @property
    def lost_runs(self) -> int:
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
        if self.group and self.group.search and not self.group.search.other_settings:
            return TUNED
        return OTHER if self.setting else DEFAULT

    @cached_property
    def reading(self) -> CellReading:
        """Its runs as measures take them; only of a cell that has some."""
        assert self.group is not None
        how = self.stage, self.rule, self.average
        return CellReading(self.results, self.group, *how, self.baseline, self.point.label)


Key = tuple[Comparison, Measure, Column, Line, Point]


@dataclass(frozen=True, eq=False)
class Cells:
    """The selected cells of an experiment: every planned, published or found one, measured or not.

    ``results`` are those that they were made from.
    ``other_runs`` counts the runs of a main table's columns and methods that stand elsewhere.
    """

    study: Study
    results: Results
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
        experiment = self.experiment
        return self.by_key.get(
            (
                comparison or experiment.comparisons[0],
                measure or self.measures[0],
                column,
                line,
                point or experiment.points[0],
            )
        )

    @property
    def main_cells(self) -> list[Cell]:
        """The cells under the first measure and comparison, in their order."""
        main_key = self.experiment.comparisons[0], self.measures[0]
        return [cell for cell in self if (cell.comparison, cell.measure) == main_key]

    @property
    def primary_cells(self) -> list[Cell]:
        """The cells that verdicts rest on."""
        return [cell for cell in self if not cell.measure.is_extra]

    @property
    def primary_measures(self) -> list[Measure]:
        """The measures that are no other reading of the first one."""
        return [measure for measure in self.measures if not measure.is_extra]

    @property
    def run_columns(self) -> tuple[Column, ...]:
        """Columns where anything was run."""
        run_columns = {cell.column for cell in self if cell.group}
        return tuple(column for column in self.columns if column in run_columns)

    @property
    def by_method(self) -> bool:
        """Whether every line is another method."""
        return len({line.method for line in self.lines}) == len(self.lines)


def groups_of(cells: Iterable[Cell]) -> list[Group]:
    """The groups of runs behind cells, each once."""
    return list({id(cell.group): cell.group for cell in cells if cell.group}.values())


def reading_of_line(study: Study, reading: Reading, line: Line) -> Reading | None:
    """How a line is read where a reading is asked for; None where it has no place: a line of one stage stands
    where that stage is asked for, and in place of the study's primary one.
    """
    if not line.stage or line.stage == reading.stage:
        return reading
    return Reading(line.stage, reading.rule) if reading.stage == study.primary.stage else None
