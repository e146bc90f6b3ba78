"""The rows of a leaderboard: one a cell, with everything that is known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.leaderboard.survey import StudySurvey
from bench.report.cells import Cell, Cells, read_as
from bench.report.frame import frame
from bench.report.measures import Measure, Measured
from bench.report.results import Aggregate, Results
from bench.report.settings import PARTITION, Settings, special
from bench.report.spread import MEASURES
from bench.report.wording import printed
from bench.statistics.summary import Interval, t_interval

ACCURACY = "accuracy"
"""Metric of measures that can stand in the column of measured test accuracies."""


@dataclass(frozen=True)
class RunLink:
    """A run of a row."""

    seed: int
    spec_hash: str
    state: str


@dataclass(frozen=True, eq=False)
class Row:
    """One cell of a board. ``main`` says that it is a cell of a paper's main table in its usual setting.

    ``setting`` is the cell's as the study calls it. ``over`` are the means over seeds of ``spread.MEASURES``
    by name, ``others`` the means under the study's other readings, None where there is no such number.
    ``group`` is its group of ties among the methods of its task.
    """

    cell: Cell
    main: bool
    title: str
    setting: str
    group: int | None
    over: Mapping[str, float | None]
    others: tuple[float | None, ...]

    @property
    def interval(self) -> Interval | None:
        """Student's, of the mean over seeds."""
        return t_interval(self.cell.measured.values) if self.cell.measured else None

    @property
    def published(self) -> str:
        """The published value as text."""
        return printed(self.cell.target)

    @property
    def seconds(self) -> float | None:
        """Median over seeds of a run's; None without numbers, as below."""
        return self.cell.group.seconds if self.cell.group and self.cell.measured else None

    @property
    def megabytes(self) -> float | None:
        """Mean over seeds, both directions."""
        return self.cell.group.megabytes if self.cell.group and self.cell.measured else None

    @property
    def memory(self) -> float | None:
        """Mean over seeds of the peak in MiB."""
        return self.cell.group.peak_mib if self.cell.group and self.cell.measured else None

    @property
    def origin(self) -> str:
        """Who made the runs; empty without any."""
        return self.cell.group.origin if self.cell.group else ""

    @property
    def protocol(self) -> str:
        """The protocol in a line; empty where nothing is planned or run."""
        return described(self.cell.settings)

    @property
    def runs(self) -> tuple[RunLink, ...]:
        """The runs behind it."""
        return links(self.cell.group.runs) if self.cell.group else ()


def mean(measure: Measure, measured: Measured) -> float | None:
    """A measure's mean over seeds; None where it has no values."""
    values = measure.of(measured)
    return Aggregate(values).mean if values else None


def described(settings: Settings) -> str:
    """``100 rounds, 3 local epochs, split 40/30/30, partition seed 123``; empty without settings."""
    if not settings:
        return ""
    split = "/".join(f"{share:g}" for share in settings["protocol.split"])
    rounds, epochs = settings["protocol.rounds"], settings["protocol.local_epochs"]
    return (
        f"{rounds} round{'s' if rounds != 1 else ''}, {epochs} local epoch{'s' if epochs != 1 else ''}, "
        f"split {split}, partition seed {settings[PARTITION]}"
    )


def links(runs: pd.DataFrame) -> tuple[RunLink, ...]:
    """The runs of a cell by seed."""
    found = zip(runs["seed"].tolist(), runs["spec_hash"], runs["state"], strict=True)
    return tuple(sorted((RunLink(*each) for each in found), key=lambda run: (run.seed, run.spec_hash)))


def rows(survey: StudySurvey, dataset: str, results: Results) -> list[Row]:
    """The cells of a study on one data set: main tables first, then experiments.

    Within a table by scenario and clients as the paper has them, then by measured mean, the best
    first; cells without numbers come last, in the order of the table.
    """
    ordered: list[Row] = []
    for cells in survey.experiments:
        for column in cells.columns if cells.experiment.main else cells.ran:
            if column.dataset == dataset:
                here = [
                    _row(survey, cells, cell, results) for cell in _accuracies(cells) if cell.column == column
                ]
                here.sort(
                    key=lambda row: (
                        row.cell.measured is None,
                        -(row.cell.measured or Aggregate((0.0,))).mean,
                    )
                )
                ordered += here
    return ordered


def record(rows: Sequence[Row]) -> pd.DataFrame:
    """A board's rows as a frame: that of their cells, with what else is known of them."""
    more = pd.DataFrame(
        [
            {"group": row.group, "published": row.published, **row.over, "protocol": row.protocol}
            for row in rows
        ]
    )
    return pd.concat([frame(row.cell for row in rows), more.astype({"group": "Int64"})], axis=1)


def _accuracies(cells: Cells) -> Iterator[Cell]:
    """The cells of an experiment beside its first comparison, read by its first test accuracy."""
    first = next((measure for measure in cells.measures if measure.metric == ACCURACY), None)
    for cell in cells.own:
        if cell.measure is first and cell.comparison is cells.experiment.comparisons[0]:
            yield cell


def _row(survey: StudySurvey, cells: Cells, cell: Cell, results: Results) -> Row:
    study, group, main = survey.study, cell.group, cells.experiment.main
    over: dict[str, float | None] = {measure.name: None for measure in MEASURES}
    others: list[float | None] = [None for _ in study.readings]
    if group is not None and cell.measured is not None:
        # Newcomers are other clients than the baseline's, and attackers no clients to be fair to.
        baseline = None if special(group.settings) else cell.baseline
        measured = Measured(results, group, cell.stage, cell.rule, study.average, baseline)
        over = {measure.name: mean(measure, measured) for measure in MEASURES}
        for place, reading in enumerate(study.readings):
            read = read_as(study, reading, cell.line)
            found = read and results.aggregate(group, read.stage, read.rule, study.average)
            others[place] = found.mean if found else None
    name = study.settings.get(cell.setting, "")
    usual = cells.experiment.competes and not cell.line.setting
    ties = survey.groups.get((cell.column, cell.point.label), {})
    return Row(
        cell,
        main=usual,
        title=cell.line.title if main else cell.title,
        setting=f"{name} ({cell.setting})" if name else cell.setting,
        group=ties.get(cell.method) if usual else None,
        over=over,
        others=tuple(others),
    )
