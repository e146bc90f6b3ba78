"""Where one method stands among a study's methods: the summary of ``bench compare``."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench.report.cells import Cell
from bench.report.competitors import Task
from bench.report.measures import BELOW_LOCAL, TOTAL_MEGABYTES, Measured, Values
from bench.report.ranking import Ranking
from bench.report.results import Aggregate, Results
from bench.report.settings import Column
from bench.report.study import Study
from bench.report.table import Entry, Table
from bench.report.wording import with_std
from bench.statistics.paired import Comparison


@dataclass(frozen=True)
class Standing:
    """A method in one task. ``better`` and ``worse`` are the titles of the methods that it is
    significantly better and worse than, ``tests`` the number of methods it was tested against;
    ``against_best`` is the method against the best other one, whose title is ``best_other``.

    ``below`` is the mean number of clients below the baseline; ``seconds`` and ``megabytes`` (both
    directions) are those of a run, ``reference`` FedAvg's megabytes. FedAvg's seconds may be another
    machine's.
    """

    column: Column
    accuracy: Aggregate
    rank: int
    methods: int
    better: tuple[str, ...]
    worse: tuple[str, ...]
    tests: int
    best_other: str
    against_best: Comparison
    below: float | None
    seconds: float
    megabytes: float | None
    reference: float | None


def standings(study: Study, ranking: Ranking, method: str, results: Results) -> list[Standing]:
    """The method in every task that it has numbers of."""
    return [
        _standing(study, ranking, task, method, results) for task in ranking.tasks if method in task.means
    ]


def _standing(study: Study, ranking: Ranking, task: Task, method: str, results: Results) -> Standing:
    pairs = {
        pair.second: pair
        for pair in (_turned(each) if each.second == method else each for each in task.comparisons)
        if pair.first == method
    }
    cell, means = task.cells[method], task.means
    assert cell.measured is not None
    assert cell.group is not None

    def named(verdict: str) -> tuple[str, ...]:
        return tuple(ranking.titles[other] for other, pair in pairs.items() if pair.verdict == verdict)

    best = max(pairs, key=lambda other: means[other])
    reference = task.cells.get("fedavg")
    return Standing(
        task.column,
        cell.measured,
        1 + sum(value > means[method] for value in means.values()),
        len(means),
        named("better"),
        named("worse"),
        sum(pair.verdict != "no test" for pair in pairs.values()),
        ranking.titles[best],
        pairs[best],
        _mean(BELOW_LOCAL.of(_measured(study, cell, results))),
        float(cell.group.done["seconds_total"].median()),
        _mean(TOTAL_MEGABYTES.of(_measured(study, cell, results))),
        _mean(TOTAL_MEGABYTES.of(_measured(study, reference, results)))
        if reference and reference.group
        else None,
    )


def _turned(pair: Comparison) -> Comparison:
    """The second method against the first."""
    return replace(
        pair,
        first=pair.second,
        second=pair.first,
        difference=None if pair.difference is None else -pair.difference,
        interval=pair.interval and (-pair.interval[1], -pair.interval[0]),
    )


def _measured(study: Study, cell: Cell, results: Results) -> Measured:
    assert cell.group is not None
    return Measured(results, cell.group, cell.stage, cell.rule, study.average, cell.baseline)


def _mean(values: Values) -> float | None:
    return Aggregate(values).mean if values else None


def table(study: Study, found: list[Standing], title: str) -> Table:
    """One row a task.

    Better and Worse count the methods that it is significantly better and worse than, of those it was
    tested against; Below the clients below the baseline; s and MB what a run takes and exchanges.
    """

    def optional(value: float | None, digits: int = 0) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    alone = study.title_of(study.baseline)
    columns = ("Test", "Place", "Better", "Worse", f"Below {alone}", "s", "MB (FedAvg)")
    rows = tuple(
        (
            f"{each.column.scenario} {each.column.clients}",
            (
                Entry(with_std(each.accuracy.mean, each.accuracy.std)),
                Entry(f"{each.rank} of {each.methods}"),
                Entry(f"{len(each.better)} of {each.tests}"),
                Entry(f"{len(each.worse)} of {each.tests}"),
                Entry(optional(each.below, 1)),
                Entry(f"{each.seconds:.1f}"),
                Entry(f"{optional(each.megabytes)} ({optional(each.reference)})"),
            ),
        )
        for each in found
    )
    return Table("standing", title, "Task", (("", len(columns)),), columns, rows)


def sentences(study: Study, ranking: Ranking, method: str, found: list[Standing]) -> list[str]:
    """What the method has over the best other one, and who it is significantly better and worse than, by
    task; and its place over several tasks.
    """
    lines = []
    for each in found:
        where = each.column.described(study.title_of(each.column.dataset))
        lines.append(f"{where}: {_against_best(each)}.")
        for what, names in (("better", each.better), ("worse", each.worse)):
            if names:
                lines.append(f"{where}: significantly {what} than {', '.join(names)}.")
    if len(found) > 1:
        lines.append(_overall(ranking, method, len(found)))
    return lines


def _against_best(found: Standing) -> str:
    pair, other = found.against_best, f"{found.best_other}, the best other"
    if pair.difference is None:
        return f"no seeds and partitions in common with {other}: no test"
    text = f"{_points(pair.difference)} points against {other}"
    if pair.interval is None or pair.p is None or pair.corrected is None:
        return f"{text} ({pair.units} {pair.unit}): no test"
    low, high = map(_points, pair.interval)
    tested = f"95 % interval {low} to {high}, p {pair.p:.2g}, corrected {pair.corrected:.2g}"
    return f"{text} ({tested}, {pair.units} {pair.unit}s): {pair.verdict}"


def _points(value: float) -> str:
    """Two decimals with a sign; what rounds to zero is +0.00."""
    return f"{round(value, 2) + 0.0:+.2f}"


def _overall(ranking: Ranking, method: str, tasks: int) -> str:
    parts = [f"Over {tasks} tasks: mean rank {ranking.mean_ranks[method]:.2f} of {len(ranking.methods)}"]
    if method in ranking.records:
        parts.append(f"win/tie/loss {'/'.join(map(str, ranking.records[method]))}")
    strength = ranking.strengths.get(method)
    if strength is not None and strength.interval is not None:
        low, high = strength.interval
        parts.append(f"Bradley-Terry strength {strength.value:+.2f} ({low:+.2f} to {high:+.2f})")
    if method in ranking.groups:
        parts.append(f"group of ties {ranking.groups[method]}")
    return ", ".join(parts) + "."
