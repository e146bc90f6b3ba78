"""The answers that runs give to a study's claims, and the document that lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

import numpy as np
import pandas as pd

from bench.report.captions import circumstances
from bench.report.cells import Cell, Cells
from bench.report.claims import Claim, Claims
from bench.report.competitors import scores
from bench.report.experiment import Point
from bench.report.measures import Measure, Measured
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.statistic import Records, Statistic, number, read_as
from bench.report.study import Study
from bench.report.table import Document, Entry, Summary, Table
from bench.report.wording import label, signed
from bench.statistics.paired import KEYS, compare
from bench.statistics.summary import Interval, t_interval

HOLDS, FAILS, OPEN = "holds", "does not hold", "can't be told"
"""Answers to a claim."""

NOT_RUN = "not run"

NAMED = 3
"""Names that stand side by side in a table."""

ROUNDING = 1e-9
"""By how much numbers that are the same may differ as binary fractions."""


@dataclass(frozen=True, eq=False)
class Finding:
    """First less second at a place, in points of accuracy or the unit of the claim's measure.

    ``first`` and ``second`` are titles of the lines compared; ``difference`` is None where runs are missing,
    ``interval`` (95 %, over ``units``) for fewer than two units; ``published`` is the papers' difference.
    """

    table: str
    place: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    difference: float | None
    interval: Interval | None
    units: int
    published: float | None
    exact: bool
    cells: tuple[Cell, ...]

    @property
    def answer(self) -> str:
        """Whether the claim holds here."""
        if self.difference is None:
            return NOT_RUN
        if self.exact:
            return HOLDS if self.difference >= -ROUNDING else FAILS
        low, high = self.interval or (-np.inf, np.inf)
        return HOLDS if low > 0 else FAILS if high < 0 else OPEN


@dataclass(frozen=True, eq=False)
class Answer:
    """What a claim's places say together. ``reduced`` where their runs are those of a reduced protocol."""

    claim: Claim
    findings: tuple[Finding, ...]
    reduced: bool

    @property
    def verdict(self) -> str:
        """``HOLDS`` where the claim holds at every place (or most), ``FAILS`` where it fails at one (or at
        half of them), else ``OPEN``.
        """
        answers = [finding.answer for finding in self.findings]
        holding, failing = answers.count(HOLDS), answers.count(FAILS)
        if self.claim.most:
            return (
                HOLDS
                if 2 * holding > len(answers)
                else FAILS
                if failing and 2 * failing >= len(answers)
                else OPEN
            )
        return FAILS if failing else HOLDS if holding and holding == len(answers) else OPEN


def answer(study: Study, claim: Claim, tables: Mapping[str, Cells], results: Results) -> Answer:
    """The answer of the whole protocol's runs or, where there is none, of the reduced one's."""
    whole, reduced = (
        tuple(
            finding
            for name in names
            if name in tables
            for finding in _findings(study, claim, tables[name], results)
        )
        for names in (claim.tables, claim.reduced)
    )
    use_reduced = all(finding.difference is None for finding in whole) and any(
        finding.difference is not None for finding in reduced
    )
    return Answer(claim, reduced if use_reduced else whole, use_reduced)


def _findings(study: Study, claim: Claim, cells: Cells, results: Results) -> Iterator[Finding]:
    points = {point.label: point for point in cells.experiment.points}
    pairs: list[tuple[str, Point, Point]] = [(name, point, point) for name, point in points.items()]
    if claim.points:
        first, second = claim.points
        pairs = [("", points[first], points[second])]
    for column, (name, here, there) in product(cells.columns, pairs):
        if not claim.only.has(column.dataset, column.scenario, column.clients):
            continue
        sides = _planned(cells, claim.first, column, here), _planned(cells, claim.second, column, there)
        if all(sides):
            place = ", ".join(filter(None, (label(study, column), column.scenario, name)))
            yield _finding(study, claim, cells, place, sides, results)


def _planned(cells: Cells, titles: Sequence[str], column: Column, point: Point) -> tuple[Cell, ...]:
    """The cells of the lines of these titles, as far as they are planned there."""
    lines = {cells.title(line): line for line in cells.lines}
    every = (cells.at(column, lines[title], point) for title in titles if title in lines)
    return tuple(cell for cell in every if cell is not None)


def _finding(
    study: Study,
    claim: Claim,
    cells: Cells,
    place: str,
    sides: tuple[tuple[Cell, ...], tuple[Cell, ...]],
    results: Results,
) -> Finding:
    first, second = sides
    whole = all(cell.measured and cell.group for cell in (*first, *second))
    if claim.each and whole:
        first, second = (_extreme(first, min),), (_extreme(second, max),)
    difference, interval, units = None, None, 0
    if whole:
        values = (
            _by_client(study, first, second, results)
            if claim.measure is None
            else _by_seed(study, claim.measure, first, second, results)
        )
        difference, interval, units = values
    ours, theirs = _published(first), _published(second)
    published = None if claim.measure or ours is None or theirs is None else ours - theirs
    return Finding(
        table=cells.experiment.name,
        place=place,
        first=tuple(cell.title for cell in first),
        second=tuple(cell.title for cell in second),
        difference=difference,
        interval=interval,
        units=units,
        published=published,
        exact=claim.exact,
        cells=(*first, *second),
    )


def _extreme(side: tuple[Cell, ...], choose: Callable[..., Cell]) -> Cell:
    return choose(side, key=lambda cell: cell.measured.mean if cell.measured else 0.0)


def _published(side: tuple[Cell, ...]) -> float | None:
    """The mean of the published values of a side; None where one has none."""
    means = [cell.target.mean for cell in side if cell.target and cell.target.mean is not None]
    return fmean(means) if len(means) == len(side) else None


Difference = tuple[float | None, Interval | None, int]


def _by_client(
    study: Study, first: tuple[Cell, ...], second: tuple[Cell, ...], results: Results
) -> Difference:
    """The difference of group means on the same partitions, seeds and clients."""
    sides = {"first": _mean(study, first, results), "second": _mean(study, second, results)}
    (found,) = compare(sides)
    return found.difference, found.interval, found.units


def _mean(study: Study, side: tuple[Cell, ...], results: Results) -> pd.DataFrame:
    """The mean over cells of every client's score in every run that all of them have."""
    every = pd.concat([scores(cell, results, study.average) for cell in side])
    grouped = every.groupby([*KEYS, "part"], as_index=False).agg(
        value=("value", "mean"), weight=("weight", "first"), cells=("value", "size")
    )
    return grouped[grouped["cells"] == len(side)].drop(columns="cells")


def _by_seed(
    study: Study, measure: Measure, first: tuple[Cell, ...], second: tuple[Cell, ...], results: Results
) -> Difference:
    """The difference of means over seeds that all cells have, one number a run."""
    numbers = [[_numbers(study, measure, cell, results) for cell in side] for side in (first, second)]
    seeds = sorted(set.intersection(*(set(found) for side in numbers for found in side)))
    values = [
        fmean(found[seed] for found in numbers[0]) - fmean(found[seed] for found in numbers[1])
        for seed in seeds
    ]
    return (fmean(values) if values else None), t_interval(values), len(values)


def _numbers(study: Study, measure: Measure, cell: Cell, results: Results) -> dict[int, float]:
    """Seed -> what a measure makes of its run; none where a run has no number."""
    assert cell.group is not None
    measured = Measured(
        results, cell.group, cell.stage, cell.rule, study.average, cell.baseline, cell.point.label
    )
    values = measure.of(measured)
    return dict(zip(cell.seeds, values, strict=True)) if len(values) == len(cell.seeds) else {}


def _digits(claim: Claim) -> int:
    return claim.measure.digits if claim.measure else 2


def _interval(interval: Interval | None, digits: int) -> str:
    return f"[{interval[0]:+.{digits}f}, {interval[1]:+.{digits}f}]" if interval else "no interval"


def _measured(found: Answer) -> str:
    """What was measured, in a line: a difference with its interval, or how many of several hold."""
    ran = [finding for finding in found.findings if finding.difference is not None]
    digits = _digits(found.claim)
    if not ran:
        return NOT_RUN
    if len(found.findings) == 1:
        (only,) = ran
        interval = "" if only.exact else f" {_interval(only.interval, digits)}"
        return f"{signed(only.difference, digits)}{interval}"
    differences = [finding.difference for finding in ran if finding.difference is not None]
    held = sum(finding.answer == HOLDS for finding in ran)
    failed = sum(finding.answer == FAILS for finding in ran)
    low, high = signed(min(differences), digits), signed(max(differences), digits)
    missing = f", {len(found.findings) - len(ran)} not run" if len(ran) < len(found.findings) else ""
    span = low if low == high else f"{low} to {high}"
    return f"{span}; {held} of {len(found.findings)} hold, {failed} do not{missing}"


def _side(titles: Sequence[str]) -> str:
    """A few names, or how many there are."""
    return ", ".join(titles) if len(titles) <= NAMED else f"{len(titles)} methods"


def _list(answers: Sequence[Answer]) -> Table:
    rows = tuple(
        (
            f"{place}. {found.claim.text}",
            (
                Entry(found.verdict),
                Entry(_measured(found)),
                Entry("reduced" if found.reduced else "-" if _measured(found) == NOT_RUN else "whole"),
                Entry(found.claim.source or "-"),
            ),
        )
        for place, found in enumerate(answers, 1)
    )
    return Table(
        "claims", "Claims", "Claim", (("", 4),), ("Answer", "Difference", "Protocol", "Published in"), rows
    )


def _differences(answers: Sequence[Answer]) -> Table:
    rows = tuple(
        (
            f"{place}. {finding.place}",
            (
                Entry(finding.answer),
                Entry(signed(finding.difference, _digits(found.claim))),
                Entry("-" if finding.exact else _interval(finding.interval, _digits(found.claim))),
                Entry(str(finding.units)),
                Entry(signed(finding.published, _digits(found.claim))),
                Entry(_side(finding.first)),
                Entry(_side(finding.second)),
            ),
        )
        for place, found in enumerate(answers, 1)
        for finding in found.findings
        if finding.difference is not None
    )
    columns = ("Answer", "Difference", "95 % interval", "Units", "Published", "First", "Second")
    return Table("differences", "Differences, place by place", "Place", (("", 7),), columns, rows)


def _records(answers: Sequence[Answer]) -> Iterator[dict[str, str]]:
    for found in answers:
        for finding in found.findings:
            low, high = finding.interval or (None, None)
            yield {
                "claim": found.claim.text,
                "table": finding.table,
                "place": finding.place,
                "first": ", ".join(finding.first),
                "second": ", ".join(finding.second),
                "difference": number(finding.difference, 6),
                "low": number(low, 6),
                "high": number(high, 6),
                "units": str(finding.units),
                "published": number(finding.published),
                "answer": finding.answer,
            }


def claims(study: Study, listed: Claims, experiments: Sequence[Cells], results: Results) -> Statistic | None:
    """The document of a list of claims; None where no run says anything about any of them."""
    tables = {cells.experiment.name: cells for cells in experiments}
    answers = [answer(study, claim, tables, results) for claim in listed.claims]
    ran = [finding for found in answers for finding in found.findings if finding.difference is not None]
    if not ran:
        return None
    groups = {id(cell.group): cell.group for finding in ran for cell in finding.cells if cell.group}
    caption = (
        read_as(study, study.primary) + " Lines of another stage are read as their tables say.",
        "Differences are the first's less the second's: of accuracies in points, paired by client and seed "
        "(the unit is the client, the mean of its seeds, where all runs are on one partition); of other "
        "numbers paired by seed. Intervals are Student's, 95 %, not corrected for their number.",
        "A claim holds at a place where the interval lies above zero, does not hold where it lies below, and "
        "can't be told else. It holds as a whole where it does at every place, or where it says most at more "
        "than half; it does not where it fails at one, or at half.",
        "'reduced' answers are those of runs with less data and fewer rounds than the paper's: they speak of "
        "order, not of the paper's values.",
        *listed.remarks,
        *circumstances(study, list(groups.values()), results),
    )
    name = f"{study.name}_{listed.name}"
    views = (_list(answers), _differences(answers))
    verdicts = [found.verdict for found in answers]
    headline = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (HOLDS, FAILS, OPEN))
    document = Document(
        name=name,
        title=f"{study.title}: {listed.title}",
        caption=caption,
        notes=(),
        views=views,
        details=(),
        summary=Summary((views[0],), None, (), (f"{listed.title}, {len(answers)}: {headline}",)),
        primary=(),
        cells=(),
    )
    return Statistic(document, (Records(f"{name}_differences", tuple(_records(answers))),))
