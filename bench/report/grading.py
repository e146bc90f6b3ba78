"""Grades measured cells: gathers what a verdict rests on beside the measured values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from bench.errors import RequestError
from bench.federation import scenarios
from bench.report.measures import Measure, Measured
from bench.report.published import Published
from bench.report.results import Aggregate
from bench.report.settings import PARTITION, PER_SEED
from bench.report.study import Study
from bench.report.verdicts import (
    OWN,
    POOLED,
    REDRAWN,
    SAME_CLIENTS,
    UNKNOWN,
    PartitionSpread,
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


@contextmanager
def _said_of(study: Study) -> Iterator[None]:
    """Errors in what a study says of itself, with its name."""
    try:
        yield
    except RequestError as error:
        raise RequestError(f"study {study.name}: {error}") from None


def margin_of(study: Study) -> float:
    """The study's equivalence margin in points.

    Raises:
        RequestError: it is no positive number.
    """
    with _said_of(study):
        return checked_margin(study.margin)


def grade(
    study: Study, measure: Measure, readings: Sequence[Measured], target: Published | None, barred: str = ""
) -> Graded:
    """The grade of runs under the first of their readings; one that all agree on, where the published value
    may be any of them. ``barred`` says why the value is no target.

    Raises:
        RequestError: the study's margin is no positive number, or its published runs are none.
    """
    graded = [_read(study, measure, reading, target, barred) for reading in readings]
    first = graded[0]
    if len(graded) == 1 or first.verdict.evidence is None:
        return first
    verdicts = {reading.stage: each.verdict for reading, each in zip(readings, graded, strict=True)}
    return replace(first, verdict=agreed(verdicts, readings[0].stage))


def _read(study: Study, measure: Measure, cell: Measured, target: Published | None, barred: str) -> Graded:
    values = measure.of(cell)
    if not values:
        why = f"no {measure.metric} of stage {cell.stage} and rule {cell.rule}"
        return Graded(missing("not_applicable", why))
    with _said_of(study):
        runs = study.published_runs(target, cell.group.column) if target else None
    control, spread = None, PartitionSpread()
    if measure.metric == cell.results.metric:
        how = cell.stage, cell.rule, study.average
        control = cell.results.on_the_same_clients(study.control, cell.group, *how)
        spread = _spread(study, cell, redrawn=runs is not None and runs.redrawn)
    verdict = Verdict("not published")
    if target and runs:
        known = control.mean if control else None
        verdict = judge(target, runs, values, spread, margin_of(study), known, barred)
    return Graded(verdict, Aggregate(values), control, spread)


def _spread(study: Study, cell: Measured, redrawn: bool) -> PartitionSpread:
    """The spread between partitions of a cell: from its own runs, else of the study's cells in the same
    scenario, else of all its cells. ``redrawn``: every published run has clients of its own.
    """
    scenario, how = cell.group.column.scenario, (cell.stage, cell.rule, study.average)
    std, partitions = cell.results.between_partitions(cell.group, *how)
    if _papers_own(scenario):
        return PartitionSpread(None, partitions, SAME_CLIENTS)
    both = redrawn, cell.group.settings.get(PARTITION) == PER_SEED
    if all(both):
        return PartitionSpread(None, partitions, REDRAWN)
    draws = both.count(False)
    if std is not None:
        return PartitionSpread(std, partitions, OWN, draws, partitions - 1)
    alike = frozenset(other for other in study.columns if other.scenario == scenario)
    for columns in (alike, frozenset(study.columns)):
        pooled = cell.results.pooled_between_partitions(columns, *how)
        if pooled is not None:
            return PartitionSpread(pooled[0], partitions, POOLED, draws, pooled[1])
    return PartitionSpread(None, partitions, UNKNOWN, draws)


def _papers_own(scenario: str) -> bool:
    """Whether clients of a scenario are those of the papers; not those of a scenario that is unknown here."""
    try:
        return scenarios.parse(scenario).papers_own
    except RequestError:
        return False
