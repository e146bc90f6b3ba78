"""The answers that runs give to a study's claims, and the document that lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from math import inf, isnan, nan
from statistics import fmean

import pandas as pd

from bench.frames.graded_cells import Results
from bench.grids.experiment import Point
from bench.report.captions import rows_of_cells, statistic
from bench.report.document import Document
from bench.report.table import Table, listing
from bench.statistics.paired import KEYS, LEAST_RUNS_IN_COMMON, side_by_side
from bench.statistics.summary import Interval, t_interval
from bench.studies.cells import Cell, Cells
from bench.studies.claims import Claim, Claims
from bench.studies.measures import TEST
from bench.studies.ranking import client_scores
from bench.studies.settings import Column
from bench.studies.study import Study
from bench.studies.wording import label, signed

HOLDS, FAILS, OPEN, UNMEASURED = "holds", "does not hold", "can't be told", "not measured"
"""Answers to a claim."""

ROUNDING = 1e-9
"""By how much numbers that are the same may differ as binary fractions."""

MOST_NAMED = 3
"""Lines of a side that a table names; more are counted."""

Side = tuple[Cell, ...]


@dataclass(frozen=True, eq=False)
class Finding:
    """What the runs of a table say at a place: ``differences`` of first and second by unit, in points of
    accuracy, the unit of the claim's measure or percent; empty where runs are missing. ``published`` is the
    papers' difference, NaN where they print none. ``is_of_one_run``: the units are clients of a single run,
    whose seed all of them share.
    """

    claim: Claim
    table: str
    place: str
    first: Side
    second: Side
    differences: pd.Series[float]
    published: float
    is_of_one_run: bool = False

    @property
    def difference(self) -> float:
        """The mean over units; NaN where runs are missing."""
        return float(self.differences.mean())

    @cached_property
    def interval(self) -> Interval | None:
        """95 %, Student's; None for fewer than two units, clients of one run, and numbers without spread."""
        return None if self.claim.exact or self.is_of_one_run else t_interval(self.differences.tolist())

    @property
    def _ends(self) -> Interval:
        """The interval: of numbers without spread they themselves, where there is none everything."""
        return (self.difference, self.difference) if self.claim.exact else self.interval or (-inf, inf)

    @property
    def support(self) -> tuple[int, float]:
        """How much speaks for the claim here: its answer, then by how much the interval lies within the
        claim's range.
        """
        (low, high), (start, end) = self.claim.range, self._ends
        distances = inf if low == -inf else start - low, inf if high == inf else high - end
        return (FAILS, OPEN, HOLDS).index(self.answer), min(distances)

    @property
    def answer(self) -> str:
        """Whether the interval lies within the claim's range, whose ends do not belong to it."""
        low, high = self.claim.range
        if self.differences.empty:
            return UNMEASURED
        start, end = self._ends
        if self.claim.exact:
            return HOLDS if low - ROUNDING <= start and end <= high + ROUNDING else FAILS
        return HOLDS if low < start and end < high else FAILS if end <= low or high <= start else OPEN


@dataclass(frozen=True, eq=False)
class Answer:
    """What a claim's places say together. ``is_reduced`` where their runs are those of a reduced protocol."""

    claim: Claim
    findings: Sequence[Finding]
    is_reduced: bool = False

    @property
    def measured_findings(self) -> list[Finding]:
        """The places where runs are."""
        return [finding for finding in self.findings if not finding.differences.empty]

    @property
    def deciding_finding(self) -> Finding:
        """The measured place on which the answer rests: the one that is least for the claim or, of a claim
        about most places, the one without which no majority holds.
        """
        places = sorted(self.measured_findings, key=lambda finding: finding.support)
        return places[(len(places) - 1) // 2 if self.claim.most else 0]

    def count(self, answer: str) -> int:
        """The number of places with an answer."""
        return [finding.answer for finding in self.findings].count(answer)

    @property
    def verdict(self) -> str:
        """``HOLDS`` where the claim holds at every place measured (or most), ``FAILS`` where it fails at one
        (or at half of them), else ``OPEN``; ``UNMEASURED`` without any.
        """
        places, holding, failures = len(self.measured_findings), self.count(HOLDS), self.count(FAILS)
        if not places:
            return UNMEASURED
        if self.claim.most:
            return HOLDS if 2 * holding > places else FAILS if 2 * failures >= places else OPEN
        return FAILS if failures else HOLDS if holding == places else OPEN


def answer(claim: Claim, tables: Mapping[str, Cells]) -> Answer:
    """The answer of the whole protocol's runs or, where there is none, of the reduced one's."""
    whole_findings, reduced_findings = (
        [finding for name in names if name in tables for finding in _findings(claim, tables[name])]
        for names in (claim.tables, claim.reduced)
    )
    answers = Answer(claim, whole_findings), Answer(claim, reduced_findings, is_reduced=True)
    result = next((answer for answer in answers if answer.measured_findings), answers[0])
    return replace(result, findings=[_mean(result)]) if claim.average and result.measured_findings else result


def _findings(claim: Claim, cells: Cells) -> Iterator[Finding]:
    points = {point.label: point for point in cells.experiment.points}
    pairs = [claim.points] if claim.points else [(name, name) for name in points]
    for column, (first_point, second_point) in product(cells.columns, pairs):
        second_column = replace(column, clients=claim.second_clients or column.clients)
        first, second = (
            _side(claim, cells, *side)
            for side in (
                (claim.first, column, points[first_point]),
                (claim.second, second_column, points[second_point]),
            )
        )
        has_column = claim.only.has(column.dataset, column.scenario, column.clients)
        if has_column and first and bool(second) == bool(claim.second):
            clients_text = f"less {second_column.clients}" if second_column != column else ""
            point = first_point if first_point == second_point else f"{first_point} less {second_point}"
            place = ", ".join(
                filter(None, (label(cells.study, column), clients_text, column.scenario, point))
            )
            yield _finding(claim, cells, place, first, second)


def _side(claim: Claim, cells: Cells, titles: Sequence[str], column: Column, point: Point) -> Side:
    """The cells of the lines of these titles, as far as they are planned there."""
    lines = {cells.study.line_title(line): line for line in cells.lines}
    measure = claim.measure if claim.measure in cells.measures else None
    candidates = (cells.at(column, lines[title], point, measure) for title in titles if title in lines)
    return tuple(cell for cell in candidates if cell is not None)


def _finding(claim: Claim, cells: Cells, place: str, first: Side, second: Side) -> Finding:
    differences, is_of_one_run = pd.Series(dtype=float), False
    if all(cell.measured and cell.group for cell in (*first, *second)):
        numbers = {id(cell): _numbers(claim, cell) for cell in (*first, *second)}
        if claim.each:
            first = (min(first, key=lambda cell: numbers[id(cell)].mean()),)
            second = (max(second, key=lambda cell: numbers[id(cell)].mean()),)
        if claim.measure or claim.average or claim.second_clients or not second:
            by_seed = [pd.DataFrame(numbers[id(cell)] for cell in side) for side in (first, second) if side]
            differences = _side_difference(claim, [side.mean(skipna=False) for side in by_seed])
        else:
            sides = {"first": _scores(first), "second": _scores(second)}
            table = side_by_side(sides)
            differences = pd.Series(table.differences(*sides))
            is_of_one_run = table.common_runs(*sides) < LEAST_RUNS_IN_COMMON
    paper_sides = [pd.Series([_published_mean(side)]) for side in (first, second) if side]
    paper_difference = (
        _side_difference(claim, paper_sides).mean() if claim.measure in (None, *cells.measures) else nan
    )
    return Finding(
        claim,
        cells.experiment.name,
        place,
        first,
        second,
        differences,
        float(paper_difference),
        is_of_one_run,
    )


def _side_difference(claim: Claim, sides: Sequence[pd.Series[float]]) -> pd.Series[float]:
    first, *other_sides = sides
    for second in other_sides:
        first = 100 * (first / second - 1) if claim.relative else first - second
    return first.dropna()


def _mean(answer: Answer) -> Finding:
    """The mean over the places that were measured, by seed: the seeds that all of them have."""
    findings = answer.measured_findings
    by_seed = pd.concat([finding.differences for finding in findings], axis=1).mean(axis=1, skipna=False)
    return replace(
        findings[0],
        place=f"mean of {len(findings)} of {len(answer.findings)} places",
        first=tuple(cell for finding in findings for cell in finding.first),
        second=tuple(cell for finding in findings for cell in finding.second),
        differences=by_seed.dropna(),
        published=fmean(finding.published for finding in findings),
    )


def _published_mean(side: Side) -> float:
    """The mean of the published values of a side; NaN where one has none."""
    means = [cell.target.mean for cell in side if cell.target and cell.target.mean is not None]
    return fmean(means) if len(means) == len(side) else nan


def _scores(side: Side) -> pd.DataFrame:
    """The mean over cells of every client's score in every run that all of them have."""
    first_scores, *other_scores = map(client_scores, side)
    if not other_scores:
        return first_scores.sort_values(KEYS)
    all_scores = pd.concat([first_scores, *other_scores])
    mean_scores = all_scores.groupby([*KEYS, "part"], as_index=False).agg(
        value=("value", "mean"), weight=("weight", "first"), cells=("value", "size")
    )
    return mean_scores[mean_scores["cells"] == len(side)].drop(columns="cells")


def _numbers(claim: Claim, cell: Cell) -> pd.Series[float]:
    """What the claim's measure makes of every run of a cell, by seed; empty where a run has no number."""
    measure = claim.measure or TEST
    values = measure.of(replace(cell.reading, **asdict(measure.reading)) if measure.reading else cell.reading)
    return pd.Series(dict(zip(cell.seeds, values, strict=True)) if len(values) == len(cell.seeds) else {})


def _number(claim: Claim, value: float) -> str:
    if isnan(value):
        return "-"
    digits = 1 if claim.relative else claim.measure.digits if claim.measure else 2
    return signed(value, digits) + " %" * claim.relative


def _interval(finding: Finding) -> str:
    if finding.differences.empty:
        return "-"
    ends = [_number(finding.claim, end) for end in finding.interval or ()]
    return f"[{', '.join(ends)}]" if ends else "no spread" if finding.claim.exact else "no interval"


def _difference(answer: Answer, grids: Mapping[str, str]) -> str:
    """What was measured, in a line: a difference with its interval, of several places the deciding one's and
    how many hold; of nothing why, or the ``grids`` (by table) to run.
    """
    claim, places, findings = answer.claim, answer.measured_findings, answer.findings
    if not places:
        cells = [cell for finding in findings for cell in (*finding.first, *finding.second)]
        lost_verdicts = sorted({cell.verdict for cell in cells if cell.group and not cell.measured})
        names = dict.fromkeys(grids[name] for name in (*claim.tables, *claim.reduced) if name in grids)
        return ", ".join(lost_verdicts) or f"to run: {', '.join(names)}"
    decisive = answer.deciding_finding
    text = f"{_number(claim, decisive.difference)} {_interval(decisive)}"
    if len(places) > 1:
        counts = f"{answer.count(HOLDS)} of {len(places)} hold, {answer.count(FAILS)} do not"
        text = f"{text} in {decisive.place}; {counts}"
    text += f"; {len(findings) - len(places)} not run" if len(places) < len(findings) else ""
    return text + "; reduced" * answer.is_reduced


def _list(answers: Sequence[Answer], grids: Mapping[str, str]) -> Table:
    rows = []
    for number, answer in enumerate(answers, 1):
        source = f" ({answer.claim.source})" if answer.claim.source else ""
        texts = {"Answer": answer.verdict, "Difference": _difference(answer, grids)}
        rows.append((f"{number}. {answer.claim.text}{source}", texts))
    return listing("claims", "Claims", "Claim", rows)


def _titles(side: Side, limit: int | None = None) -> str:
    """The names of lines, or how many there are where a limit is passed."""
    titles = list(dict.fromkeys(cell.title for cell in side))
    return ", ".join(titles) if limit is None or len(titles) <= limit else f"{len(titles)} lines"


def _differences(answers: Sequence[Answer]) -> tuple[Table, pd.DataFrame]:
    """What was measured or published, a row a place; and the same as numbers, with all that was planned."""
    rows, records = [], []
    for number, answer in enumerate(answers, 1):
        for finding in answer.findings:
            low, high = finding.interval or (None, None)
            records.append(
                {
                    "claim": answer.claim.text,
                    "table": finding.table,
                    "place": finding.place,
                    "first": _titles(finding.first),
                    "second": _titles(finding.second),
                    "difference": finding.difference,
                    "low": low,
                    "high": high,
                    "units": len(finding.differences),
                    "published": finding.published,
                    "answer": finding.answer,
                }
            )
            texts = {
                "Answer": finding.answer,
                "Difference": _number(answer.claim, finding.difference),
                "95 % interval": _interval(finding),
                "Units": str(len(finding.differences)),
                "Published": _number(answer.claim, finding.published),
                "First": _titles(finding.first, MOST_NAMED),
                "Second": _titles(finding.second, MOST_NAMED) or "-",
            }
            if not (finding.differences.empty and isnan(finding.published)):
                rows.append((f"{number}. {finding.place}", texts))
    table = listing("differences", "Differences, place by place", "Place", rows)
    return table, pd.DataFrame(records)


def claims(study: Study, group: Claims, experiments: Sequence[Cells], results: Results) -> Document | None:
    """The document of a list of claims; None where no run says anything about any of them. Claims about
    tables or lines that the report leaves out are left out, too.
    """
    tables = {cells.experiment.name: cells for cells in experiments}
    titles = {name: set(map(study.line_title, cells.lines)) for name, cells in tables.items()}
    answers = [
        answer(claim, tables)
        for claim in group.claims
        if any({*claim.first, *claim.second} <= titles.get(n, set()) for n in (*claim.tables, *claim.reduced))
    ]
    findings = [finding for answer in answers for finding in answer.measured_findings]
    if not findings:
        return None
    cells = [cell for finding in findings for cell in (*finding.first, *finding.second)]
    caption = (
        "A claim holds at a place where the 95 % interval of the difference lies above zero, or in the range "
        "that it names, does not hold where it lies outside, and can't be told else.",
    )
    fine_print = (
        "Lines of another stage are read as their tables say.",
        "Differences are the first's less the second's: of accuracies in points, paired by client and seed "
        "(the unit is the client, the mean of its seeds, where all runs are on one partition); of other "
        "numbers, other clients and means over places, paired by seed. Intervals are Student's, uncorrected, "
        "of two runs or more in common: of one run nobody knows what is the seed's.",
        "A claim holds as a whole where it does at every place measured, or where it says most at more than "
        "half; it does not where it fails at one, or at half. Of several places the one that decides stands "
        "with its difference: where the claim fails most clearly or holds most narrowly or, of most, the one "
        "that makes the majority. 'To run': the grids that would measure it.",
        "'Reduced': runs with less data and fewer rounds than the paper's, which speak of order alone.",
        *group.remarks,
    )
    grids = {table.experiment.name: table.experiment.grid or ", ".join(study.grids) for table in experiments}
    table, (details, records) = _list(answers, grids), _differences(answers)
    verdicts = [answer.verdict for answer in answers]
    fails = "does not" if verdicts.count(FAILS) == 1 else "do not"
    words = {FAILS: fails, OPEN: OPEN, UNMEASURED: UNMEASURED}
    counts = [f"{verdicts.count(HOLDS)} of {len(answers)} hold"]
    counts += [f"{verdicts.count(verdict)} {word}" for verdict, word in words.items() if verdict in verdicts]
    document = statistic(
        study,
        group.name,
        group.title,
        f"{', '.join(counts)}.",
        rows_of_cells(cells, results),
        results,
        caption,
        fine_print,
        views=(table,),
        details=(details,),
        printed=(table,),
        records={"differences": records},
    )
    return replace(document, cells=document.cells[:0])  # they stand in the documents of their experiments
