"""Grades measured cells: gathers what a verdict rests on beside the measured values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from bench.errors import RequestError
from bench.federation import scenarios
from bench.federation.scenario import Scenario
from bench.grids.grid import PARTITION_SEED
from bench.registry import blaming
from bench.studies.groups import Aggregate
from bench.studies.measures import CellReading, Measure
from bench.studies.published import Published
from bench.studies.settings import PER_SEED
from bench.studies.study import Study
from bench.studies.verdicts import (
    OWN,
    POOLED,
    REDRAWN,
    SAME_CLIENTS,
    SPLIT,
    UNKNOWN,
    PartitionSpread,
    PublishedRuns,
    Verdict,
    agreed_verdict,
    checked_margin,
    judge,
    missing_verdict,
)


@dataclass(frozen=True)
class Grading:
    """A cell's verdict, its values (None where there are none), what the study's control reaches on the same
    clients, and the spread between partitions.
    """

    verdict: Verdict
    measured: Aggregate | None = None
    control: Aggregate | None = None
    spread: PartitionSpread = field(default_factory=PartitionSpread)


@contextmanager
def _named_errors(study: Study) -> Iterator[None]:
    """Errors in what a study says of itself, with its name."""
    try:
        with blaming(type(study)):
            yield
    except RequestError as error:
        raise RequestError(f"study {study.name}: {error}") from None


def margin_of(study: Study) -> float:
    """The study's equivalence margin in points.

    Raises:
        RequestError: it is no positive number.
    """
    with _named_errors(study):
        return checked_margin(study.margin)


def grade_runs(
    study: Study,
    measure: Measure,
    readings: Sequence[CellReading],
    target: Published | None,
    not_comparable_reason: str = "",
) -> Grading:
    """The grade of runs under the first of their readings; one that all agree on, where the published value
    may be any of them. ``not_comparable_reason`` says why the value is no target.

    Raises:
        RequestError: the study's margin is no positive number, or its published runs are none.
    """
    gradings = [
        _grade_reading(study, measure, reading, target, not_comparable_reason) for reading in readings
    ]
    first_grading = gradings[0]
    if len(gradings) == 1 or first_grading.verdict.evidence is None:
        return first_grading
    verdicts = {reading.stage: grading.verdict for reading, grading in zip(readings, gradings, strict=True)}
    return replace(first_grading, verdict=agreed_verdict(verdicts, readings[0].stage))


def _grade_reading(
    study: Study, measure: Measure, cell: CellReading, target: Published | None, not_comparable_reason: str
) -> Grading:
    values = measure.of(cell)
    if not values:
        reason = f"no {measure.metric} of stage {cell.stage} and rule {cell.rule}"
        return Grading(missing_verdict("not_applicable", reason))
    with _named_errors(study):
        runs = study.published_runs(target, cell.group.column) if target else None
        if target and not isinstance(runs, PublishedRuns):
            raise RequestError(f"published_runs: expected PublishedRuns, got {runs!r}")
    control, spread = None, PartitionSpread()
    if measure.metric == cell.results.metric:
        context = cell.stage, cell.rule, study.average
        control = cell.results.on_the_same_clients(study.control, cell.group, *context)
        spread = _spread(study, cell, redrawn=runs is not None and runs.redrawn)
    verdict = Verdict("not published")
    if target and runs:
        control_mean = control.mean if control else None
        verdict = judge(target, runs, values, spread, margin_of(study), control_mean, not_comparable_reason)
    return Grading(verdict, Aggregate(values), control, spread)


def _spread(study: Study, cell: CellReading, redrawn: bool) -> PartitionSpread:
    """The spread between partitions of a cell: from its own runs, else of the study's cells in the same
    scenario, else of all its cells; never of another study's, whose protocol is another one. ``redrawn``:
    every published run has clients of its own.
    """
    scenario, context = cell.group.column.scenario, (cell.stage, cell.rule, study.average)
    std, partitions = cell.results.between_partitions(cell.group, *context)
    papers_own = _papers_own(scenario)
    if papers_own:
        if not papers_own.deals_roles(tuple(cell.group.settings["protocol.split"])):
            return PartitionSpread(None, partitions, SAME_CLIENTS)
        if std is not None:
            return PartitionSpread(std, partitions, SPLIT, 2, partitions - 1)
        pool = study.split_grids and cell.results.pooled_between_partitions(study.split_grids, None, *context)
        if not pool:
            return PartitionSpread(None, partitions, SPLIT, 2)
        return PartitionSpread(pool.std, partitions, SPLIT, 2, pool.freedom, pool.datasets)
    draws_anew = redrawn, cell.group.settings.get(PARTITION_SEED) == PER_SEED
    if all(draws_anew):
        return PartitionSpread(None, partitions, REDRAWN)
    draws = draws_anew.count(False)
    if std is not None:
        return PartitionSpread(std, partitions, OWN, draws, partitions - 1)
    scenario_columns = frozenset(column for column in study.columns if column.scenario == scenario)
    for columns in (scenario_columns, frozenset(study.columns)):
        pool = cell.results.pooled_between_partitions(study.pooled_grids, columns, *context)
        if pool is not None:
            return PartitionSpread(pool.std, partitions, POOLED, draws, pool.freedom, pool.datasets)
    return PartitionSpread(None, partitions, UNKNOWN, draws)


def _papers_own(name: str) -> Scenario[Any] | None:
    """The scenario of that name if its clients hold the papers' own items; None where it is unknown here."""
    try:
        scenario = scenarios.parse(name)
    except RequestError:
        return None
    return scenario if scenario.papers_own else None
