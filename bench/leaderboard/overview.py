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


@dataclass(frozen=True)
class Ranked:
    """A method's line of the ranking over tasks; texts, with ``-`` where there is no number."""

    method: str
    title: str
    group: str
    mean_rank: str
    tasks: str
    record: str
    strength: str
    interval: str
    minus_baseline: str


def coverage(survey: StudySurvey, dataset: str, rows: Sequence[Row]) -> Coverage:
    """Of the rows of main tables in their usual setting."""
    main = [row for row in rows if row.main]
    lost = Counter(row.cell.verdict for row in main if row.cell.measured is None)
    measured = len(main) - lost.total()
    return Coverage(dataset, survey.study.title_of(dataset), measured, len(main), tuple(sorted(lost.items())))


def ranked(found: Ranking) -> list[Ranked]:
    """Every method with numbers, best mean rank first."""

    def signed(value: float) -> str:
        return f"{round(value, 2) + 0.0:+.2f}"

    made = []
    for method in found.methods:
        strength, record = found.strengths.get(method), found.records.get(method)
        interval = strength.interval if strength else None
        minus = found.minus_baseline(method)
        made.append(
            Ranked(
                method,
                found.titles[method],
                str(found.groups.get(method, "-")),
                f"{found.mean_ranks[method]:.2f}",
                f"{found.scores[method].count()} of {found.planned[method]}",
                " / ".join(map(str, record)) if record else "-",
                signed(strength.value) if strength else "-",
                " to ".join(map(signed, interval)) if interval else "-",
                "-" if minus is None else signed(minus),
            )
        )
    return made


def unranked(found: Ranking) -> list[str]:
    """Titles of competitors without numbers in any ranked task."""
    return [title for method, title in found.titles.items() if method not in found.scores]


def elsewhere(survey: Sequence[StudySurvey], results: Results) -> list[tuple[str, int]]:
    """Columns with runs that no table or experiment of any study has, and how many runs."""
    shown = {column for each in survey for cells in each.experiments for column in cells.columns}
    counts = Counter(column for column in results.runs["column"] if column not in shown)
    return [(column.described(column.dataset), count) for column, count in sorted(counts.items())]
