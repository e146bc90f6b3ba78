"""Where one method stands among a study's methods: the summary of ``bench compare``."""

from __future__ import annotations

from dataclasses import dataclass

from bench.report.table import Table, listing
from bench.statistics.paired import Comparison, Verdict
from bench.studies.cells import Cell
from bench.studies.groups import Aggregate, Group
from bench.studies.measures import BELOW_BASELINE
from bench.studies.ranking import Ranking, Task
from bench.studies.results import Results
from bench.studies.study import Study
from bench.studies.wording import gap, ranges, with_std


@dataclass(frozen=True, eq=False)
class Standing:
    """A method in one task. ``pairs`` are its comparisons with every other method, itself first.

    ``clients_below`` is the mean number of clients below the baseline, where there is one.
    """

    task: Task
    cell: Cell
    accuracy: Aggregate
    group: Group
    pairs: dict[str, Comparison]
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


def standings(study: Study, ranking: Ranking, method: str, results: Results) -> list[Standing]:
    """The method in every task that it has numbers of."""
    all_standings = []
    for task in ranking.tasks:
        cell = task.cells.get(method)
        if cell and cell.measured and cell.group:
            comparisons = (pair.opposite() if pair.second == method else pair for pair in task.comparisons)
            pairs = {pair.second: pair for pair in comparisons if pair.first == method}
            below_counts = BELOW_BASELINE.of(cell.read(results, study.average))
            mean_below = Aggregate(below_counts).mean if below_counts else None
            all_standings.append(Standing(task, cell, cell.measured, cell.group, pairs, mean_below))
    return all_standings


def table(study: Study, all_standings: list[Standing], title: str) -> Table:
    """One row a task, in 80 columns.

    Better / worse count the methods that it is significantly better and worse than, of those it was tested
    against; Below the clients below the baseline; s and MB what a run takes and exchanges.
    """
    below_heading = f"Below\n{study.title_of(study.baseline)}"
    columns = ("Test", "Place", "Better /\nworse", below_heading, "s", "MB")
    rows = []
    for standing in all_standings:
        column, group = standing.task.column, standing.group
        better_count, worse_count = len(standing.against("better")), len(standing.against("worse"))
        texts = (
            with_std(standing.accuracy.mean, standing.accuracy.std),
            f"{standing.rank}/{len(standing.task.means)}",
            f"{better_count}/{worse_count} of {standing.tests}",
            "-" if standing.clients_below is None else f"{standing.clients_below:.1f}",
            f"{group.seconds:.1f}",
            f"{group.megabytes:.0f}",
        )
        place = " ".join(filter(None, (column.scenario, str(column.clients), standing.task.point)))
        rows.append((place, texts))
    return listing("standing", title, "Task", columns, rows)


def others_table(study: Study, ranking: Ranking, method: str, standing: Standing) -> Table:
    """The method among all others of a task, the best first, in 80 columns.

    Ahead by is what the method has over each of them on the seeds and clients of both, with its verdict.
    """
    title = ranking.titles[method]
    rows = []
    for other_method, place in standing.places.items():
        cell, pair = standing.task.cells[other_method], standing.pairs.get(other_method)
        assert cell.measured
        difference = "-" if pair is None or pair.difference is None else gap(pair.difference)
        texts = (
            str(place),
            with_std(cell.measured.mean, cell.measured.std),
            ranges(cell.seeds),
            difference,
            pair.verdict if pair else "-",
        )
        rows.append((ranking.titles[other_method], texts))
    columns = ("Place", "Test", "Seeds", "Ahead by,\nsame seeds", "Verdict")
    label = standing.task.label(study)
    return listing("others", f"{label}: {title} among the others", "Method", columns, rows)


def sentences(study: Study, ranking: Ranking, method: str, all_standings: list[Standing]) -> list[str]:
    """What the method has over the best other one, and who it is significantly better and worse than, by
    task; and its place over several tasks.
    """
    lines = []
    for standing in all_standings:
        place = standing.task.label(study)
        lines.append(f"{place}: {_against_best(standing, ranking)}.")
        verdicts: tuple[Verdict, ...] = ("better", "worse")
        for verdict in verdicts:
            if other_methods := standing.against(verdict):
                titles = ", ".join(ranking.titles[other_method] for other_method in other_methods)
                lines.append(f"{place}: significantly {verdict} than {titles}.")
    if len(all_standings) > 1:
        lines.append(_overall(ranking, method, len(all_standings)))
    return lines


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
        return f"{text} ({pair.units} {pair.unit}): no test"
    low, high = map(gap, pair.interval)
    test_text = f"95 % interval {low} to {high}, p {pair.p:.2g}, corrected {pair.corrected:.2g}"
    return f"{text} ({test_text}, {pair.units} {pair.unit}s): {pair.verdict}"


def _overall(ranking: Ranking, method: str, tasks: int) -> str:
    row = ranking.table.set_index("method").loc[method]
    text = (
        f"Over {tasks} tasks: mean rank {row['rank']:.2f} of {len(ranking.methods)} "
        f"(95 % interval {row['low']:.2f} to {row['high']:.2f})"
    )
    return f"{text}, group of ties {ranking.groups[method]}." if method in ranking.groups else f"{text}."
