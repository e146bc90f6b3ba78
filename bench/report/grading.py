"""Grades measured cells: gathers what a verdict rests on beside the measured values."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.errors import RequestError
from bench.federation import scenarios
from bench.report.measures import Measure, Measured
from bench.report.published import Published
from bench.report.results import Aggregate, Group, Results
from bench.report.settings import PARTITION, PER_SEED, Reading
from bench.report.study import Study
from bench.report.verdicts import (
    OWN,
    POOLED,
    REDRAWN,
    SAME_CLIENTS,
    UNKNOWN,
    PartitionSpread,
    PublishedRuns,
    Verdict,
    agreed,
    checked_margin,
    judge,
    missing,
)


@dataclass(frozen=True)
class Graded:
    """A cell's verdict, its values (None where there are none), what the study's control reaches on the same
    clients, and the spread between partitions.
    """

    verdict: Verdict
    measured: Aggregate | None = None
    control: Aggregate | None = None
    spread: PartitionSpread = field(default_factory=PartitionSpread)


class Grader:
    """Grades the cells of a study.

    Raises:
        RequestError: the study's margin is no positive number.
    """

    def __init__(self, study: Study, results: Results) -> None:
        self._study, self._results = study, results
        try:
            self._margin = checked_margin(study.margin)
        except RequestError as error:
            raise RequestError(f"study {study.name}: {error}") from None

    def grade(
        self,
        measure: Measure,
        group: Group,
        readings: tuple[Reading, ...],
        target: Published | None,
        barred: str = "",
        *,
        baseline: Group | None = None,
        point: str = "",
    ) -> Graded:
        """The grade of runs under the first reading; one that all of several readings agree on, where the
        published value may be any of them. ``barred`` says why the value is no target.
        """
        first, *others = (
            self._read(measure, group, reading, target, barred, baseline, point) for reading in readings
        )
        if not others or first.verdict.evidence is None:
            return first
        verdicts = {
            reading.stage: graded.verdict for reading, graded in zip(readings, (first, *others), strict=True)
        }
        return Graded(agreed(verdicts, readings[0].stage), first.measured, first.control, first.spread)

    def _read(
        self,
        measure: Measure,
        group: Group,
        reading: Reading,
        target: Published | None,
        barred: str,
        baseline: Group | None,
        point: str,
    ) -> Graded:
        study, stage, rule = self._study, reading.stage, reading.rule
        values = measure.of(Measured(self._results, group, stage, rule, study.average, baseline, point))
        if not values:
            return Graded(missing("not_applicable", f"no {measure.metric} of stage {stage} and rule {rule}"))
        runs = self._published_runs(target, group) if target else None
        control, spread = None, PartitionSpread()
        if measure.metric == self._results.metric:
            control = self._results.on_the_same_clients(study.control, group, stage, rule, study.average)
            spread = self._spread(group, reading, redrawn=runs is not None and runs.redrawn)
        verdict = Verdict("not published")
        if target and runs:
            known = control.mean if control else None
            verdict = judge(target, runs, values, spread, self._margin, known, barred)
        return Graded(verdict, Aggregate(values), control, spread)

    def _published_runs(self, target: Published, group: Group) -> PublishedRuns:
        try:
            return self._study.published_runs(target, group.column)
        except RequestError as error:
            raise RequestError(f"study {self._study.name}: {error}") from None

    def _spread(self, group: Group, reading: Reading, redrawn: bool) -> PartitionSpread:
        """The spread between partitions of a cell: from its own runs, else of the study's cells in the same
        scenario, else of all its cells. ``redrawn``: every published run has clients of its own.
        """
        study, column = self._study, group.column
        how = reading.stage, reading.rule, study.average
        std, partitions = self._results.between_partitions(group, *how)
        if _papers_own(column.scenario):
            return PartitionSpread(None, partitions, SAME_CLIENTS)
        both = redrawn, group.settings.get(PARTITION) == PER_SEED
        if all(both):
            return PartitionSpread(None, partitions, REDRAWN)
        draws = both.count(False)
        if std is not None:
            return PartitionSpread(std, partitions, OWN, draws, partitions - 1)
        alike = frozenset(other for other in study.columns if other.scenario == column.scenario)
        for columns in (alike, frozenset(study.columns)):
            pooled = self._results.pooled_between_partitions(columns, *how)
            if pooled is not None:
                return PartitionSpread(pooled[0], partitions, POOLED, draws, pooled[1])
        return PartitionSpread(None, partitions, UNKNOWN, draws)


def _papers_own(scenario: str) -> bool:
    """Whether clients of a scenario are those of the papers; not those of a scenario that is unknown here."""
    try:
        return scenarios.parse(scenario).papers_own
    except RequestError:
        return False
