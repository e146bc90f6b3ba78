"""Where one method stands among a study's methods: the summary of ``bench compare``."""

from __future__ import annotations

from dataclasses import dataclass

from bench.report.cells import Cell
from bench.report.measures import BELOW_LOCAL, Measured
from bench.report.ranking import Ranking, Task
from bench.report.results import Aggregate, Group, Results
from bench.report.study import Study
from bench.report.table import Table, listing
from bench.report.wording import gap, with_std
from bench.statistics.paired import Comparison, Verdict


@dataclass(frozen=True, eq=False)
class Standing:
    """A method in one task. ``pairs`` are its comparisons with every other method, itself first.

    ``below`` is the mean number of clients below the baseline, where there is one.
    """

    task: Task
    cell: Cell
    accuracy: Aggregate
    group: Group
    pairs: dict[str, Comparison]
    below: float | None

    @property
    def rank(self) -> int:
        """Its place by mean accuracy; equal means share the better one."""
        return 1 + sum(value > self.accuracy.mean for value in self.task.means.values())

    @property
    def best_other(self) -> str:
        """The other method of highest mean."""
        return max(self.pairs, key=lambda other: self.task.means[other])

    @property
    def tests(self) -> int:
        """Number of methods that it was tested against."""
        return sum(pair.verdict != "no test" for pair in self.pairs.values())

    def against(self, verdict: Verdict) -> list[str]:
        """The methods of which the test says that it is better, worse, ... than they are."""
        return [other for other, pair in self.pairs.items() if pair.verdict == verdict]


def standings(study: Study, ranking: Ranking, method: str, results: Results) -> list[Standing]:
    """The method in every task that it has numbers of."""
    found = []
    for task in ranking.tasks:
        cell = task.cells.get(method)
        if cell and cell.measured and cell.group:
            turned = (pair.opposite() if pair.second == method else pair for pair in task.comparisons)
            pairs = {pair.second: pair for pair in turned if pair.first == method}
            how = cell.stage, cell.rule, study.average, cell.baseline, cell.point.label
            below = BELOW_LOCAL.of(Measured(results, cell.group, *how))
            mean_below = Aggregate(below).mean if below else None
            found.append(Standing(task, cell, cell.measured, cell.group, pairs, mean_below))
    return found


def table(study: Study, found: list[Standing], title: str) -> Table:
    """One row a task, in 80 columns.

    Better / worse count the methods that it is significantly better and worse than, of those it was tested
    against; Below the clients below the baseline; s and MB what a run takes and exchanges.
    """
    below = f"Below\n{study.title_of(study.baseline)}"
    columns = ("Test", "Place", "Better /\nworse", below, "s", "MB")
    rows = []
    for standing in found:
        column, group = standing.task.column, standing.group
        better, worse = len(standing.against("better")), len(standing.against("worse"))
        texts = (
            with_std(standing.accuracy.mean, standing.accuracy.std),
            f"{standing.rank}/{len(standing.task.means)}",
            f"{better}/{worse} of {standing.tests}",
            "-" if standing.below is None else f"{standing.below:.1f}",
            f"{group.seconds:.1f}",
            f"{group.megabytes:.0f}",
        )
        where = " ".join(filter(None, (column.scenario, str(column.clients), standing.task.point)))
        rows.append((where, texts))
    return listing("standing", title, "Task", columns, rows)


def sentences(study: Study, ranking: Ranking, method: str, found: list[Standing]) -> list[str]:
    """What the method has over the best other one, and who it is significantly better and worse than, by
    task; and its place over several tasks.
    """
    lines = []
    for standing in found:
        column = standing.task.column
        where = ", ".join(
            filter(None, (column.described(study.title_of(column.dataset)), standing.task.point))
        )
        lines.append(f"{where}: {_against_best(standing, ranking)}.")
        verdicts: tuple[Verdict, ...] = ("better", "worse")
        for verdict in verdicts:
            if others := standing.against(verdict):
                named = ", ".join(ranking.titles[other] for other in others)
                lines.append(f"{where}: significantly {verdict} than {named}.")
    if len(found) > 1:
        lines.append(_overall(ranking, method, len(found)))
    return lines


def _against_best(found: Standing, ranking: Ranking) -> str:
    pair, other = found.pairs[found.best_other], f"{ranking.titles[found.best_other]}, the best other"
    if pair.difference is None:
        return f"no seeds and partitions in common with {other}: no test"
    text = f"{gap(pair.difference)} points against {other}"
    if pair.interval is None or pair.p is None or pair.corrected is None:
        return f"{text} ({pair.units} {pair.unit}): no test"
    low, high = map(gap, pair.interval)
    tested = f"95 % interval {low} to {high}, p {pair.p:.2g}, corrected {pair.corrected:.2g}"
    return f"{text} ({tested}, {pair.units} {pair.unit}s): {pair.verdict}"


def _overall(ranking: Ranking, method: str, tasks: int) -> str:
    row = ranking.table.set_index("method").loc[method]
    text = (
        f"Over {tasks} tasks: mean rank {row['rank']:.2f} of {len(ranking.methods)} "
        f"(95 % interval {row['low']:.2f} to {row['high']:.2f})"
    )
    return f"{text}, group of ties {ranking.groups[method]}." if method in ranking.groups else f"{text}."
