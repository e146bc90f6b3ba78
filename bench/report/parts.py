"""What a report has of a study: its documents, and what they come to in two sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import pandas as pd

from bench.pages.grades import GRADES
from bench.report.captions import Document
from bench.report.printout import Score
from bench.report.reproduction import judged_cells
from bench.report.table import Table
from bench.studies.cells import Cells
from bench.studies.published import published
from bench.studies.ranking import Ranking
from bench.studies.study import Study
from bench.studies.verdicts import STATES
from bench.studies.wording import enumeration

MOST_NAMED_LEADERS = 3
"""Methods that are first together and are named; more are counted."""


@dataclass(frozen=True, eq=False)
class Part:
    """A study in a report. ``ranking`` is None where no two methods can be ranked.

    ``maps`` are the verdicts of the documents in which methods compete with each other, by their names.
    """

    study: str
    title: str
    sentences: tuple[str, ...]
    scores: tuple[Score, ...]
    ranking: Ranking | None
    maps: dict[str, Table]
    documents: Sequence[Document]

    def folder(self, document: Document) -> PurePosixPath:
        """Where a document's files lie in the report: ``fedsheafhn/table1`` for ``fedsheafhn_table1``."""
        return PurePosixPath(self.study, document.name.removeprefix(f"{self.study}_"))

    @property
    def measured_share(self) -> float:
        """The share of its papers' published values that was measured."""
        published = sum(score.published for score in self.scores)
        return sum(score.measured for score in self.scores) / published if published else 0.0

    def file(self, document: Document, name: str) -> PurePosixPath:
        """Where a file of that name lies, whose ending it lacks."""
        return self.folder(document) / name.removeprefix(f"{document.name}_")


def verdict_counts(study: Study, experiments: Iterable[Cells], is_whole: bool) -> dict[str, Counter[str]]:
    """Paper -> how many of its published values have each verdict, every value once. Where ``is_whole``, in
    a report that no filter narrows, accuracies count, too, that no table here has: as not run.
    """
    by_paper: dict[str, Counter[str]] = {}
    cells = judged_cells(experiments)
    for value, cell in cells.items():
        by_paper.setdefault(value.paper, Counter())[cell.verdict] += 1
    for paper, counts in by_paper.items() if is_whole else ():
        paper_values = published(paper, study.published)
        no_table = sum(value.metric == "accuracy" and value not in cells for value in paper_values)
        counts.update({STATES["not_run"]: no_table} if no_table else {})
    return by_paper


def scores(study: Study, by_paper: Mapping[str, Counter[str]]) -> tuple[Score, ...]:
    """The score of every paper that a study stands beside, from ``verdict_counts``."""
    return tuple(
        Score(
            study.paper_title(paper),
            tuple((name, counts[name]) for name in GRADES if counts[name]),
            counts.total(),
        )
        for paper, counts in by_paper.items()
    )


def sentences(
    ranking: Ranking | None, all_scores: Iterable[Score], claims: Iterable[Document] = ()
) -> tuple[str, ...]:
    """Who is first, as far as anybody is, and how the published values came out: a sentence each; then who
    leads on which data set, and which claims hold.
    """
    answers = (f"{claim.title.partition(': ')[2]}: {claim.summary}" for claim in claims)
    headline = (first_sentence(ranking), published_sentence(all_scores))
    return tuple(filter(None, (*headline, leaders_sentence(ranking), *answers)))


def first_sentence(ranking: Ranking | None) -> str:
    """Who has the best mean rank, and who cannot be told apart from them."""
    if ranking is None:
        return "No two methods were measured on the same clients yet, so that nobody has a rank."
    table, tasks = ranking.table, len(ranking.tasks)
    best, test_count = table.iloc[0], table["group"].notna().sum()
    scope = f"{len(table)} methods over {tasks} federations"
    if 0 < test_count < len(table):
        scope = f"the {test_count} methods (of {len(table)}) measured in all {tasks} federations"
    number, interval = f"the best mean rank of {scope}, {best['rank']:.1f}", ""
    if pd.notna(best["low"]):
        interval = f" (95\N{NO-BREAK SPACE}% interval {best['low']:.1f} to {best['high']:.1f})"
    if tasks == 1:
        mean_text = f"{ranking.tasks[0].means[best['method']]:.1f}\N{NO-BREAK SPACE}%"
        number, interval = f"the highest mean of {len(table)} methods on one federation, {mean_text}", ""
    leaders = table[table["group"] == 1]
    return f"{best['title']} has {number}{interval}{_rivals(ranking, leaders, test_count)}."


def _rivals(ranking: Ranking, leaders: pd.DataFrame, test_count: int) -> str:
    """How the first sentence ends: who else may be first, of those that the tests put into group 1."""
    others = leaders.iloc[1:]
    if leaders.empty:
        return "; there are too few results to test differences"
    if others.empty:
        return ", and is significantly ahead of every other" if test_count > 1 else ""
    if len(leaders) == test_count:
        return ", but none of the others can be told apart from it"
    if len(leaders) <= MOST_NAMED_LEADERS:
        return f", but cannot be told apart from {' and '.join(others['title'])}"
    text = f", but {len(others)} others cannot be told apart from it"
    has_baseline = ranking.study.baseline in set(others["method"])
    return f"{text}, {ranking.baseline_title} among them" if has_baseline else text


def leaders_sentence(ranking: Ranking | None) -> str:
    """Who has the best mean rank on each data set, where that is not the same method on all."""
    if ranking is None:
        return ""
    datasets: dict[str, list[str]] = {}
    for dataset, method in ranking.leaders.items():
        datasets.setdefault(method, []).append(ranking.study.title_of(dataset))
    if len(datasets) < 2:
        return ""
    parts = [f"{ranking.titles[method]} on {enumeration(titles)}" for method, titles in datasets.items()]
    return f"Best mean rank by data set: {'; '.join(parts)}."


def published_sentence(all_scores: Iterable[Score]) -> str:
    """How many published values were measured, and how many of these agree."""
    known_scores = list(all_scores)
    counts: Counter[str] = sum((Counter(dict(score.counts)) for score in known_scores), Counter())
    if not known_scores:
        return ""
    published_count, measured_count = sum(score.published for score in known_scores), counts.total()
    if not counts:
        return f"Of {published_count:,} published values none is measured under its protocol yet."
    outcomes = (
        (counts["reproduced"] + counts["compatible"], "agrees", "agree", "with the published one"),
        (counts["above"], "lies", "lie", "above it"),
        (counts["below"], "lies", "lie", "below it"),
        (counts["uninformative"] + counts["not comparable"], "cannot", "cannot", "be judged"),
    )
    parts = [
        f"{count:,} {singular if count == 1 else plural} {rest}"
        for count, singular, plural, rest in outcomes
        if count
    ]
    verb = "is" if measured_count == 1 else "are"
    subject = f"Of {published_count:,} published values {measured_count:,} {verb}"
    if measured_count == published_count:
        subject = f"All {published_count:,} published values are"
    return f"{subject} measured, of which {enumeration(parts)}."
