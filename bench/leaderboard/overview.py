"""The front page's numbers: what is covered, and the ranking over tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.leaderboard.rows import Row
from bench.leaderboard.survey import StudySurvey
from bench.report.ranking import Ranking
from bench.report.results import Results


@dataclass(frozen=True)
class Coverage:
    """How many cells of a study's main tables on a data set are measured, and what became of the others."""

    dataset: str
    title: str
    measured: int
    cells: int
    others: tuple[tuple[str, int], ...]


def coverage(survey: StudySurvey, dataset: str, rows: Sequence[Row]) -> Coverage:
    """Of the rows of main tables in their usual setting."""
    main = [row for row in rows if row.main]
    lost = Counter(row.cell.verdict for row in main if row.cell.measured is None)
    measured = len(main) - lost.total()
    return Coverage(dataset, survey.study.title_of(dataset), measured, len(main), tuple(sorted(lost.items())))


def unranked(found: Ranking) -> list[str]:
    """Titles of competitors without numbers in any ranked task."""
    return [title for method, title in found.titles.items() if method not in found.scores]


def elsewhere(survey: Sequence[StudySurvey], results: Results) -> list[tuple[str, int]]:
    """Columns with runs that no table or experiment of any study has, and how many runs."""
    shown = {column for each in survey for cells in each.experiments for column in cells.columns}
    counts = Counter(column for column in results.runs["column"] if column not in shown)
    return [(column.described(column.dataset), count) for column, count in sorted(counts.items())]
