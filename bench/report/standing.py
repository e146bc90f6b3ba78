"""Where one method stands among the others, as ``bench compare`` says it: its place and its tests by task."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bench.report.table import Table, listing
from bench.statistics.paired import PairedTest, Verdict, of_one
from bench.studies.cells import Cell
from bench.studies.groups import Aggregate, Group
from bench.studies.measures import BELOW_BASELINE
from bench.studies.ranking import Ranking, Task
from bench.studies.wording import gap, number, ranges, with_std


@dataclass(frozen=True, eq=False)
class Standing:
    """A method in one task. ``pairs`` are its comparisons with every other method, itself first, corrected
    over these alone.

    ``clients_below`` is the mean number of clients below the baseline, where there is one.
    """

    task: Task
    cell: Cell
    accuracy: Aggregate
    group: Group
    pairs: dict[str, PairedTest]
    clients_below: float | None

    @property
    def rank(self) -> int:
        """Its place by mean accuracy; equal means share the better one."""
        return self.places[self.cell.method]

    @property
    def places(self) -> dict[str, int]:
        """Every method's place, the best first."""
        means = self.task.means
        ranks = {method: 1 + sum(other > mean for other in means.values()) for method, mean in means.items()}
        return dict(sorted(ranks.items(), key=lambda item: item[1]))

    @property
    def best_other(self) -> str:
        """The other method of highest mean."""
        return max(self.pairs, key=lambda method: self.task.means[method])

    def common_seeds(self, other_method: str) -> tuple[int, ...]:
        """The seeds of both methods, on which they are compared."""
        other_seeds = set(self.task.cells[other_method].seeds)
        return tuple(seed for seed in self.cell.seeds if seed in other_seeds)

    @property
    def tests(self) -> int:
        """Number of methods that it was tested against."""
        return sum(pair.verdict != "no test" for pair in self.pairs.values())

    def against(self, verdict: Verdict) -> list[str]:
        """The methods of which the test says that it is better, worse, ... than they are."""
        return [method for method, pair in self.pairs.items() if pair.verdict == verdict]


def standings(ranking: Ranking, method: str) -> list[Standing]:
    """The method in every task that it has numbers of."""
    all_standings = []
    for task in ranking.tasks:
        cell = task.cells.get(method)
        if cell and cell.measured and cell.group:
            pairs = {pair.second: pair for pair in of_one(method, task.comparisons)}
            below_counts = BELOW_BASELINE.of(cell.reading)
            mean_below = Aggregate(below_counts).mean if below_counts else None
            all_standings.append(Standing(task, cell, cell.measured, cell.group, pairs, mean_below))
    return all_standings


def standings_table(ranking: Ranking, all_standings: list[Standing], title: str) -> Table:
    """One row a task, in 80 columns; the data set is named where there are several.

    Better / worse count the methods that it is significantly better and worse than, of those it was tested
    against; Below the clients below the baseline; s and MB what a run takes and exchanges.
    """
    below_heading = f"Below\n{ranking.baseline_title}"
    are_several = len({standing.task.column.dataset for standing in all_standings}) > 1
    rows = []
    for standing in all_standings:
        column, group = standing.task.column, standing.group
        better_count, worse_count = len(standing.against("better")), len(standing.against("worse"))
        texts = {
            "Test": with_std(standing.accuracy.mean, standing.accuracy.std),
            "Place": f"{standing.rank}/{len(standing.task.means)}",
            "Better /\nworse": f"{better_count}/{worse_count} of {standing.tests}",
            below_heading: number(standing.clients_below, ".1f"),
            "s": f"{group.seconds:.1f}",
            "MB": f"{group.megabytes:.0f}",
        }
        dataset = ranking.study.title_of(column.dataset) if are_several else ""
        place = " ".join(filter(None, (dataset, column.scenario, str(column.clients), standing.task.point)))
        rows.append((place, texts))
    return listing("standing", title, "Task", rows)


def others_table(ranking: Ranking, method: str, standing: Standing) -> Table:
    """The method among all others of a task, the best first, in 80 columns.

    Ahead by is what the method has over each of them on the seeds and clients of both, with its verdict.
    """
    rows = []
    for other_method, place in standing.places.items():
        cell, pair = standing.task.cells[other_method], standing.pairs.get(other_method)
        assert cell.measured
        texts = {
            "Place": str(place),
            "Test": with_std(cell.measured.mean, cell.measured.std),
            "Seeds": ranges(cell.seeds),
            "Ahead by,\nsame seeds": "-" if pair is None or pair.difference is None else gap(pair.difference),
            "Verdict": pair.verdict if pair else "-",
        }
        rows.append((ranking.titles[other_method], texts))
    title = f"{standing.task.label(ranking.study)}: {ranking.titles[method]} among the others"
    return listing("others", title, "Method", rows)


def standing_sentences(ranking: Ranking, method: str, all_standings: list[Standing]) -> list[str]:
    """What the method has over the best other one, and who it is significantly better and worse than, by
    task; and its place and the tests over several tasks.
    """
    lines = []
    for standing in all_standings:
        place = standing.task.label(ranking.study)
        lines.append(f"{place}: {_against_best(standing, ranking)}.")
        lines += _significant(place, standing.pairs.values(), ranking)
    if len(all_standings) > 1:
        tasks_text = f"Over {len(all_standings)} tasks"
        lines.append(f"{tasks_text}: {_overall(ranking, method)}.")
        lines += _significant(tasks_text, of_one(method, ranking.comparisons), ranking)
    if pairs := of_one(method, ranking.dataset_comparisons):
        text = f"With the {pairs[0].units} data sets as units"
        lines += _significant(text, pairs, ranking) or [f"{text}: no significant difference."]
    return lines


def _significant(place: str, pairs: Collection[PairedTest], ranking: Ranking) -> list[str]:
    """The methods that the first of these pairs is significantly better and worse than; nothing of none."""
    verdicts: tuple[Verdict, ...] = ("better", "worse")
    titles = {
        verdict: [ranking.titles[pair.second] for pair in pairs if pair.verdict == verdict]
        for verdict in verdicts
    }
    return [
        f"{place}: significantly {verdict} than {', '.join(names)}."
        for verdict, names in titles.items()
        if names
    ]


def _against_best(standing: Standing, ranking: Ranking) -> str:
    pair, rival = (
        standing.pairs[standing.best_other],
        f"{ranking.titles[standing.best_other]}, the best other",
    )
    if pair.difference is None:
        return f"no seeds and partitions in common with {rival}: no test"
    seeds = standing.common_seeds(standing.best_other)
    text = f"{gap(pair.difference)} points against {rival}"
    if seeds != standing.cell.seeds or seeds != standing.task.cells[standing.best_other].seeds:
        text += f", on the seeds of both, {ranges(seeds)}"
    if pair.interval is None or pair.p is None or pair.corrected is None:
        return f"{text} ({pair.common_ground}): no test"
    low, high = map(gap, pair.interval)
    count = f" over {standing.tests} comparisons" if standing.tests > 1 else ""
    test_text = f"95 % interval {low} to {high}, p {pair.p:.2g}, corrected{count} {pair.corrected:.2g}"
    return f"{text} ({test_text}, {pair.common_ground}): {pair.verdict}"


def _overall(ranking: Ranking, method: str) -> str:
    row = ranking.table.set_index("method").loc[method]
    text = (
        f"mean rank {row['rank']:.2f} of {len(ranking.methods)} "
        f"(95 % interval {row['low']:.2f} to {row['high']:.2f})"
    )
    return f"{text}, group of ties {ranking.groups[method]}" if method in ranking.groups else text
