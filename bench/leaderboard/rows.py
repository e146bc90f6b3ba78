"""The rows of a leaderboard: one a cell, with everything that is known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from bench.leaderboard.survey import StudySurvey
from bench.report.cells import Cell, Cells
from bench.report.measures import PEAK_MEMORY, TOTAL_MEGABYTES, Measure, Measured
from bench.report.results import Aggregate, Group, Results
from bench.report.settings import PARTITION, Column, Reading, Settings, special
from bench.report.spread import MEASURES, baseline_of
from bench.report.study import Study
from bench.report.wording import printed
from bench.statistics.summary import Interval, t_interval

DEFAULT, TUNED, OTHER = "default", "tuned", "other settings"
"""Whether a cell has the settings that the study's grids plan, those that tuning found, or others."""

ACCURACY = "accuracy"
"""Metric of measures that can stand in the column of measured test accuracies."""


@dataclass(frozen=True)
class RunLink:
    """A run of a row."""

    seed: int
    spec_hash: str
    state: str


@dataclass(frozen=True)
class Row:
    """One cell. Accuracies in percent, differences in points; None where there is no such number.

    ``table`` is the table or experiment that it stands in; ``main`` says that it is a cell of a
    paper's main table in its usual setting. ``over`` are the means over seeds of ``spread.MEASURES`` by name,
    ``others`` the means under the study's other readings. ``reason`` says why a number is missing or
    not comparable. ``seconds`` are the median over seeds of a run, megabytes (both directions) and
    MiB of peak memory means.
    """

    study: str
    table: str
    main: bool
    column: Column
    method: str
    runs_of: str
    title: str
    setting: str
    tuned: bool
    stage: str
    rule: str
    measured: Aggregate | None
    interval: Interval | None
    group: int | None
    target: str
    difference: float | None
    verdict: str
    reason: str
    over: Mapping[str, float | None]
    others: tuple[float | None, ...]
    seconds: float | None
    megabytes: float | None
    memory: float | None
    origin: str
    protocol: str
    runs: tuple[RunLink, ...]

    @property
    def tuning(self) -> str:
        """``DEFAULT``, ``TUNED`` or ``OTHER``."""
        if self.tuned:
            return TUNED
        return OTHER if self.setting else DEFAULT

    @property
    def state(self) -> str:
        """``measured``, or why there is no number."""
        return "measured" if self.measured else self.verdict


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


def origin(runs: pd.DataFrame) -> str:
    """Where the runs of a cell come from: ``shipped: NAME``, ``own``, ``bundle NAME: verified``."""
    found = {
        f"bundle {bundle}: {state}" if bundle else f"shipped: {shipped}" if shipped else "own"
        for bundle, state, shipped in zip(runs["bundle"], runs["bundle_state"], runs["origin"], strict=True)
    }
    return "; ".join(sorted(found))


def links(runs: pd.DataFrame) -> tuple[RunLink, ...]:
    """The runs of a cell by seed."""
    found = zip(runs["seed"].tolist(), runs["spec_hash"], runs["state"], strict=True)
    return tuple(sorted((RunLink(*each) for each in found), key=lambda run: (run.seed, run.spec_hash)))


def rows(survey: StudySurvey, dataset: str, results: Results) -> list[Row]:
    """The cells of a study on one data set: main tables first, then experiments.

    Within a table by scenario and clients as the paper has them, then by measured mean, the best
    first; cells without numbers come last, in the order of the table.
    """
    made = [
        row
        for cells in survey.experiments
        for row in (
            _board(survey, cells, dataset, results)
            if cells.experiment.main
            else _outcome(survey.study, cells, dataset, results)
        )
    ]
    places = {key: place for place, key in enumerate(dict.fromkeys((row.table, row.column) for row in made))}
    made.sort(
        key=lambda row: (
            places[row.table, row.column],
            row.measured is None,
            -row.measured.mean if row.measured else 0.0,
        )
    )
    return made


def _board(survey: StudySurvey, cells: Cells, dataset: str, results: Results) -> Iterator[Row]:
    study = survey.study
    for column in cells.columns:
        if column.dataset != dataset:
            continue
        groups = survey.groups.get(column, {})
        for line in cells.lines:
            cell = cells.at(column, line)
            if cell is None:
                continue
            beside = [cells.at(column, line, measure=measure) for measure in cells.measures[1:]]
            planned = results.usual(column, line.runs)
            settings = cell.group.settings if cell.group else planned.settings if planned else {}
            name = study.settings.get(line.setting, "")
            yield _row(
                study,
                cell,
                results,
                main=not line.setting,
                title=line.title,
                setting=f"{name} ({line.setting})" if name else line.setting,
                runs_of=line.runs,
                group=None if line.setting else groups.get(line.method),
                others=tuple(other.measured.mean if other and other.measured else None for other in beside),
                settings=settings,
            )


def _outcome(study: Study, cells: Cells, dataset: str, results: Results) -> Iterator[Row]:
    """An experiment's own cells in columns where it was run, read by its first test accuracy."""
    first = next((each for each in cells.measures if each.metric == ACCURACY), None)
    for cell in cells.own:
        if cell.column.dataset != dataset or cell.column not in cells.ran or cell.measure is not first:
            continue
        yield _row(
            study,
            cell,
            results,
            main=False,
            title=cells.title(cell.line),
            setting=cell.setting,
            runs_of=cell.line.runs,
            group=None,
            others=tuple(_mean(study, cell.group, reading, results) for reading in study.readings),
            settings=cell.group.settings if cell.group else {},
        )


def _mean(study: Study, group: Group | None, reading: Reading, results: Results) -> float | None:
    found = group and results.aggregate(group, reading.stage, reading.rule, study.average)
    return found.mean if found else None


def _row(
    study: Study,
    cell: Cell,
    results: Results,
    *,
    main: bool,
    title: str,
    setting: str,
    runs_of: str,
    group: int | None,
    others: tuple[float | None, ...],
    settings: Settings,
) -> Row:
    over: dict[str, float | None] = {measure.name: None for measure in MEASURES}
    seconds = megabytes = memory = None
    if cell.group is not None and cell.measured is not None:
        # Newcomers are other clients than the baseline's, and attackers no clients to be fair to.
        baseline = None if special(cell.group.settings) else baseline_of(study, cell.group, results)
        measured = Measured(results, cell.group, cell.stage, cell.rule, study.average, baseline)
        over = {measure.name: mean(measure, measured) for measure in MEASURES}
        seconds = float(cell.group.done["seconds_total"].median())
        megabytes, memory = mean(TOTAL_MEGABYTES, measured), mean(PEAK_MEMORY, measured)
    return Row(
        study=study.name,
        table=cell.table,
        main=main,
        column=cell.column,
        method=cell.method,
        runs_of=runs_of,
        title=title,
        setting=setting,
        tuned=cell.group is not None and cell.group.tuned is not None,
        stage=cell.stage,
        rule=cell.rule,
        measured=cell.measured,
        interval=t_interval(cell.measured.values) if cell.measured else None,
        group=group,
        target=printed(cell.target),
        difference=cell.difference,
        verdict=cell.verdict,
        reason=cell.reason,
        over=over,
        others=others,
        seconds=seconds,
        megabytes=megabytes,
        memory=memory,
        origin=origin(cell.group.runs) if cell.group is not None else "",
        protocol=described(settings),
        runs=links(cell.group.runs) if cell.group is not None else (),
    )
