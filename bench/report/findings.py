"""What a study comes to: how its papers' values came out, every value once, and who is first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from bench.report.document import Score
from bench.statistics.paired import PairedTest, of_one
from bench.studies.cells import Cell, Cells
from bench.studies.published import Published, published
from bench.studies.ranking import Ranking
from bench.studies.study import Study
from bench.studies.verdicts import GRADES, NOT_COMPARABLE, SAME_CLIENTS, SPLIT, STATES
from bench.studies.wording import enumeration

MOST_NAMED_LEADERS = 3
"""Methods that are first together and are named; more are counted."""

JudgedCells = dict[Published, Cell]
"""Published value -> the cell set beside it."""


def judged_cells(experiments: Iterable[Cells], drawn_only: bool = False) -> JudgedCells:
    """Every published value beside its cell, once, under the primary reading and the usual setting.

    A value that several tables show is judged in the first of those that measured it, if possible in one
    where it is comparable, of these in one on the paper's own clients, which another draw cannot excuse;
    ``drawn_only`` leaves the latter out. Main tables come before experiments. A reduced experiment measures
    something else, and never stands in for a whole one; one that is apart judges in its own table alone.
    """
    cells: JudgedCells = {}
    for experiment in experiments:
        if experiment.experiment.apart:
            continue
        for cell in experiment.primary_cells:
            if cell.target and not cell.line.setting and not (drawn_only and is_on_papers_clients(cell)):
                chosen_cell = cells.setdefault(cell.target, cell)
                if _weight(cell) > _weight(chosen_cell) and not experiment.experiment.reduced:
                    cells[cell.target] = cell
    return cells


def _weight(cell: Cell) -> int:
    """0: not measured, 1: measured under another protocol than the published value, 2: beside it, 3: on the
    same clients.
    """
    return 0 if cell.measured is None else 2 + is_on_papers_clients(cell) if cell.verdict in GRADES else 1


def is_on_papers_clients(cell: Cell) -> bool:
    """Whether a cell's runs are on the parts of the published ones."""
    return cell.spread.source in (SAME_CLIENTS, SPLIT)


@dataclass(frozen=True, eq=False)
class Findings:
    """What a study's ``experiments`` and the ``ranking`` of its methods come to, which is None where no two
    can be ranked. ``is_whole`` says that no filter narrows the experiments.
    """

    study: Study
    experiments: Sequence[Cells]
    ranking: Ranking | None
    is_whole: bool = True

    @cached_property
    def judged(self) -> JudgedCells:
        """Every published value beside the cell that it is judged by."""
        return judged_cells(self.experiments)

    @cached_property
    def without_table(self) -> dict[str, list[Published]]:
        """Paper -> its published accuracies that no table here has; none are looked for where a filter leaves
        cells out on purpose.
        """
        papers = dict.fromkeys(value.paper for value in self.judged)
        return {
            paper: [
                value
                for value in (published(paper, self.study.published) if self.is_whole else ())
                if value.metric == "accuracy" and value not in self.judged
            ]
            for paper in papers
        }

    @cached_property
    def counts(self) -> dict[str, Counter[str]]:
        """Paper -> how many of its published values have each verdict; not run is also what no table has."""
        by_paper = {
            paper: Counter({STATES["not_run"]: len(values)} if values else {})
            for paper, values in self.without_table.items()
        }
        for value, cell in self.judged.items():
            by_paper[value.paper][cell.verdict] += 1
        return by_paper

    @property
    def scores(self) -> tuple[Score, ...]:
        """The score of every paper that the study stands beside."""
        return tuple(
            Score(
                self.study.paper_title(paper),
                tuple((name, counts[name]) for name in (*GRADES, NOT_COMPARABLE) if counts[name]),
                counts.total(),
            )
            for paper, counts in self.counts.items()
        )

    @property
    def headline(self) -> tuple[str, ...]:
        """Who is first, or that nobody can be told apart; how much of the published values was measured, and
        what came of them. What stands behind it is in the tables of ranks and of verdicts.
        """
        return tuple(filter(None, (_first_sentence(self.ranking), published_sentence(self.scores))))

    @property
    def by_dataset(self) -> str:
        """Who is worse than the best where federations of one data set count once."""
        return by_dataset(self.ranking) if self.ranking else ""

    @property
    def leaders(self) -> str:
        """Who has the best mean rank on each data set, where that is not the same method on all."""
        if self.ranking is None:
            return ""
        datasets: dict[str, list[str]] = {}
        for dataset, method in self.ranking.leaders.items():
            datasets.setdefault(method, []).append(self.study.title_of(dataset))
        if len(datasets) < 2:
            return ""
        titles = self.ranking.titles
        parts = [f"{titles[method]} on {enumeration(names)}" for method, names in datasets.items()]
        return f"Best mean rank by data set: {'; '.join(parts)}."


def by_dataset(ranking: Ranking) -> str:
    """Who is worse than the best where federations of one data set count once; empty without such tests."""
    pairs = _dataset_pairs(ranking)
    if not pairs:
        return ""
    titles = [ranking.titles[pair.second] for pair in pairs if pair.verdict == "better"]
    who = "no method is" if not titles else f"{enumeration(titles)} {'is' if len(titles) == 1 else 'are'}"
    if len(titles) == len(pairs) > 1:
        who = "every other method is"
    return (
        f"Federations of one data set share its items. With the {pairs[0].units} data sets as units (means "
        f"over their federations), {who} significantly worse than {ranking.titles[pairs[0].first]}."
    )


def _dataset_pairs(ranking: Ranking) -> list[PairedTest]:
    """The best method against each other one, with data sets as units; none without such tests."""
    return of_one(ranking.methods[0], ranking.dataset_comparisons) if ranking.dataset_comparisons else []


def _first_sentence(ranking: Ranking | None) -> str:
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
        if test_count < 2:
            return ""
        pairs = _dataset_pairs(ranking)
        text = ", and is significantly ahead of every other"
        if any(pair.verdict != "better" for pair in pairs):
            return f"{text} over these, though not over the {pairs[0].units} data sets"
        return text
    if len(leaders) == test_count:
        return ", but none of the others can be told apart from it"
    if len(leaders) <= MOST_NAMED_LEADERS:
        return f", but cannot be told apart from {' and '.join(others['title'])}"
    text = f", but {len(others)} others cannot be told apart from it"
    has_baseline = ranking.study.baseline in set(others["method"])
    return f"{text}, {ranking.baseline_title} among them" if has_baseline else text


def published_sentence(all_scores: Iterable[Score]) -> str:
    """How many published values were measured, and how many of these agree."""
    known_scores = list(all_scores)
    counts: Counter[str] = sum((Counter(dict(score.counts)) for score in known_scores), Counter())
    if not known_scores:
        return ""
    published_count, measured_count = sum(score.published for score in known_scores), counts.total()
    if not counts:
        return f"Of {published_count:,} published values none is measured under its protocol yet."
    agreeing_count = sum(score.agreeing for score in known_scores)
    outcomes = (
        (agreeing_count, "agrees", "agree", "with the published one"),
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


def agreement_by_paper(all_scores: Iterable[Score]) -> str:
    """Whose values those are that agree, for a reader without the papers' scores; nothing of one paper."""
    agreeing = Counter({score.title: score.agreeing for score in all_scores})
    if len(agreeing) < 2 or not agreeing.total():
        return ""
    parts = [f"{count:,} of {title}" for title, count in agreeing.most_common()]
    return f"The values that agree: {enumeration(parts)}."
