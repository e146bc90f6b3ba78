"""Where one method stands among a study's methods: the summary of ``bench compare``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.report.cells import Cell
from bench.report.competitors import Task
from bench.report.measures import BELOW_LOCAL, TOTAL_MEGABYTES, Measured, Values
from bench.report.ranking import OPPOSITE, Ranking
from bench.report.results import Aggregate, Results
from bench.report.settings import Column
from bench.report.spread import baseline_of
from bench.report.table import Entry, Table
from bench.report.views import with_std

if TYPE_CHECKING:
    from bench.report.study import Study


@dataclass(frozen=True)
class Standing:
    """A method in one task. ``better`` and ``worse`` are the titles of the methods that it is
    significantly better and worse than, ``tests`` the number of methods it was tested against.

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
    verdicts: dict[str, str] = {}
    for pair in task.comparisons:
        if pair.first == method:
            verdicts[pair.second] = pair.verdict
        elif pair.second == method:
            verdicts[pair.first] = OPPOSITE.get(pair.verdict, pair.verdict)
    cell, means = task.cells[method], task.means
    assert cell.measured is not None
    assert cell.group is not None

    def named(verdict: str) -> tuple[str, ...]:
        return tuple(ranking.titles[other] for other, found in verdicts.items() if found == verdict)

    reference = task.cells.get("fedavg")
    return Standing(
        task.column,
        cell.measured,
        1 + sum(value > means[method] for value in means.values()),
        len(means),
        named("better"),
        named("worse"),
        sum(found != "no test" for found in verdicts.values()),
        _mean(BELOW_LOCAL.of(_measured(study, cell, results))),
        float(cell.group.done["seconds_total"].median()),
        _mean(TOTAL_MEGABYTES.of(_measured(study, cell, results))),
        _mean(TOTAL_MEGABYTES.of(_measured(study, reference, results)))
        if reference and reference.group
        else None,
    )


def _measured(study: Study, cell: Cell, results: Results) -> Measured:
    assert cell.group is not None
    baseline = baseline_of(study, cell.group, results)
    return Measured(results, cell.group, cell.stage, cell.rule, study.average, baseline)


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
    """Who the method is significantly better and worse than, by task, and its place over several tasks."""
    lines = []
    for each in found:
        where = each.column.described(study.title_of(each.column.dataset))
        for what, names in (("better", each.better), ("worse", each.worse)):
            if names:
                lines.append(f"{where}: significantly {what} than {', '.join(names)}.")
    if len(found) > 1:
        lines.append(_overall(ranking, method, len(found)))
    return lines


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
