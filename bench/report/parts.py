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

MOST_NAMED_LEADERS = 3
"""Methods that are first together and are named; more are counted."""


@dataclass(frozen=True, eq=False)
class Part:
    """A study in a report, with the title of its baseline. ``ranking`` is None where no two methods can be
    ranked.

    ``maps`` are the verdicts of the documents in which methods compete with each other, by their names.
    """

    study: str
    title: str
    sentences: tuple[str, ...]
    scores: tuple[Score, ...]
    baseline: str
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
    study: Study, ranking: Ranking | None, all_scores: Iterable[Score], claims: Iterable[Document] = ()
) -> tuple[str, ...]:
    """Who is first, as far as anybody is, how the published values came out, and which claims hold."""
    answers = (claim.headline for claim in claims)
    standing = " ".join(filter(None, (first_sentence(study, ranking), leaders_sentence(study, ranking))))
    return tuple(filter(None, (standing, _published_sentence(all_scores), *answers)))


def first_sentence(study: Study, ranking: Ranking | None) -> str:
    """Who has the best mean rank, and who cannot be told apart from them."""
    if ranking is None:
        return "No two methods were measured on the same clients yet, so that nobody has a rank."
    table, tasks = ranking.table, len(ranking.tasks)
    best, test_count = table.iloc[0], table["group"].notna().sum()
    scope = f"{len(table)} methods over {tasks} federations"
    if 0 < test_count < len(table):
        scope = f"the {test_count} methods (of {len(table)}) that all {tasks} federations have"
    rank_text = f"mean rank {best['rank']:.1f}"
    if pd.notna(best["low"]):
        rank_text += f", 95\N{NO-BREAK SPACE}% interval {best['low']:.1f} to {best['high']:.1f}"
    if tasks == 1:
        scope, rank_text = f"{len(table)} methods on one federation", "highest mean"
    leaders = table[table["group"] == 1]
    if leaders.empty:
        return f"Of {scope}, too few to test, {best['title']} has the best results: {rank_text}."
    if len(leaders) == 1:
        return f"{best['title']} is first of {scope}: {rank_text}."
    other_methods = set(leaders["method"]) - {best["method"]}
    addition = f", {study.title_of(ranking.baseline)} among them" if ranking.baseline in other_methods else ""
    if len(leaders) == test_count:
        return f"Of {scope}{addition}, none can be told from {best['title']}, which leads: {rank_text}."
    if len(leaders) <= MOST_NAMED_LEADERS:
        rivals = " and ".join(title for title in leaders["title"] if title != best["title"])
        return f"{best['title']} leads {scope}: {rank_text}. It cannot be told apart from {rivals}."
    return (
        f"Nobody is first alone: of {scope}, {len(leaders)} cannot be told apart at the top{addition}. "
        f"{best['title']} leads them: {rank_text}."
    )


def leaders_sentence(study: Study, ranking: Ranking | None) -> str:
    """On which data sets another method has the best mean rank."""
    if ranking is None or len(ranking.leaders) < 2:
        return ""
    best = ranking.table["method"].iloc[0]
    places = [
        f"{study.title_of(dataset)} ({ranking.titles[method]})"
        for dataset, method in ranking.leaders.items()
        if method != best
    ]
    listing = " and ".join(filter(None, (", ".join(places[:-1]), *places[-1:])))
    return f"Others have the best mean rank on {listing}." if places else ""


def _published_sentence(all_scores: Iterable[Score]) -> str:
    """How much of each paper was measured, and under which verdicts."""
    texts = []
    for score in all_scores:
        values = f"{score.published} values published in {score.title}"
        counts = ", ".join(f"{count} {verdict}" for verdict, count in score.counts)
        verb = "is" if score.measured == 1 else "are"
        texts.append(
            f"{score.measured} of {values} {verb} measured: {counts}"
            if counts
            else f"of {values} none is measured under its protocol"
        )
    text = "; ".join(texts)
    return f"{text[0].upper()}{text[1:]}." if text else ""
