"""The columns of a leaderboard: what a row shows in each, and what it is sorted by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.leaderboard.rows import Row
from bench.report.measures import BELOW_LOCAL, Measure
from bench.report.spread import MEASURES
from bench.report.study import Study
from bench.report.wording import signed, with_std

NONE = "–"
"""Stands for a number that there is not; the row's reason says why."""


@dataclass(frozen=True)
class Shown:
    """A cell of the page: its text, and its number for sorting (None: by the text; empty: none)."""

    text: str
    order: str | None = None


@dataclass(frozen=True)
class BoardColumn:
    """A column: short heading, what it means, and what a row shows in it.

    ``kind`` is the class of its cells: ``number``, ``word`` (never broken), ``setting``, ``text`` (which
    may be long) or none.
    """

    name: str
    title: str
    meaning: str
    of: Callable[[Row], Shown]
    kind: str = ""


def _number(value: float | None, digits: int) -> Shown:
    return Shown(NONE, "") if value is None else Shown(f"{value:,.{digits}f}", repr(round(value, 6)))


def _measured(row: Row) -> Shown:
    if row.cell.measured is None:
        return Shown(NONE, "")
    return Shown(
        with_std(row.cell.measured.mean, row.cell.measured.std), repr(round(row.cell.measured.mean, 6))
    )


def _interval(row: Row) -> Shown:
    if row.interval is None:
        return Shown(NONE, "")
    low, high = row.interval
    return Shown(f"{low:.2f} to {high:.2f}", repr(round(low, 6)))


def _published(row: Row) -> Shown:
    text = NONE if row.published == "-" else row.published
    first = text.split(" ")[0]
    return Shown(text, first if first.replace(".", "", 1).isdigit() else "")


def _difference(row: Row) -> Shown:
    if row.cell.difference is None:
        return Shown(NONE, "")
    return Shown(signed(row.cell.difference), repr(round(row.cell.difference, 6)))


def _over(name: str) -> Callable[[Row], float | None]:
    return lambda row: row.over[name]


def _worded(measure: Measure, baseline: str) -> tuple[str, str]:
    if measure is BELOW_LOCAL:
        return f"Below {baseline}", f"Clients below {baseline}, same seed and partition, mean over seeds."
    return measure.title, f"Mean over seeds: {measure.meaning}."


def columns(study: Study) -> list[BoardColumn]:
    """The columns of a study's boards after the method's own."""
    baseline = study.title_of(study.baseline)

    def number(
        name: str, title: str, meaning: str, of: Callable[[Row], float | None], digits: int
    ) -> BoardColumn:
        return BoardColumn(name, title, meaning, lambda row: _number(of(row), digits), kind="number")

    def other(place: int, title: str, meaning: str) -> BoardColumn:
        return number(title.replace(" ", "_"), title, meaning, lambda row: row.others[place], 2)

    readings = [
        other(
            place,
            f"{reading.stage}, {reading.rule}",
            f"The same runs read at stage {reading.stage} by rule {reading.rule}; no verdict rests on it.",
        )
        for place, reading in enumerate(study.readings)
    ]
    measures = [
        number(measure.name, *_worded(measure, baseline), _over(measure.name), 2) for measure in MEASURES
    ]
    accuracy = f"Test accuracy in percent at stage {study.primary.stage} by rule {study.primary.rule}"
    return [
        BoardColumn(
            "scenario",
            "Scenario",
            "How the data are spread.",
            lambda r: Shown(r.cell.column.scenario),
            "word",
        ),
        number("clients", "Clients", "Number of clients.", lambda row: row.cell.column.clients, 0),
        BoardColumn(
            "settings",
            "Settings",
            "Default: as planned, not tuned. Else what differs from that.",
            lambda row: Shown(row.setting or row.cell.tuning),
            "setting",
        ),
        BoardColumn(
            "mean", "Measured", f"{accuracy}: mean ± sample std over seeds.", _measured, kind="number"
        ),
        BoardColumn(
            "interval", "95 % interval", "Student's, of the mean over seeds.", _interval, kind="number"
        ),
        number(
            "n", "Seeds", "Seeds with numbers.", lambda r: r.cell.measured.n if r.cell.measured else None, 0
        ),
        number(
            "group",
            "Tie group",
            "1: not significantly worse than the best of its task.",
            lambda row: row.group,
            0,
        ),
        BoardColumn("published", "Published", "As the paper prints it.", _published, kind="number"),
        BoardColumn("difference", "Difference", "Measured minus published.", _difference, kind="number"),
        BoardColumn("verdict", "Verdict", "What the difference says.", lambda row: Shown(row.cell.verdict)),
        BoardColumn(
            "reason", "Why", "Why there is no number or no target.", lambda r: Shown(r.cell.reason), "text"
        ),
        BoardColumn("table", "Table", "Table or experiment of the paper.", lambda row: Shown(row.cell.table)),
        *measures,
        *readings,
        number("seconds", "Seconds", "Of a run, median over seeds.", lambda row: row.seconds, 1),
        number("megabytes", "MB", "Both directions, training included.", lambda row: row.megabytes, 1),
        number(
            "memory",
            "Peak MiB",
            "Peak memory; on a CPU the process's, libraries and data included.",
            lambda row: row.memory,
            0,
        ),
        BoardColumn("origin", "Origin", "Who made the runs.", lambda row: Shown(row.origin or NONE), "text"),
        BoardColumn("protocol", "Protocol", "Of the runs.", lambda row: Shown(row.protocol or NONE), "text"),
    ]
