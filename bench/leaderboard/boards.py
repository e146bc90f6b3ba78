"""What a study has on the site: its boards as frames of rows, what it comes to and what is covered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd

from bench.dataset import DATASETS
from bench.frames.graded_cells import Results as Collected
from bench.frames.graded_cells import collect as collect_frames
from bench.frames.ranking import TASK, Ranking, rank
from bench.metric_names import ACCURACY, METRICS, Metric
from bench.pages.templating import records
from bench.report import score
from bench.report.captions import protocol_of, protocol_text
from bench.report.document import Score
from bench.report.spread import MEASURES
from bench.statistics.summary import drawn_interval
from bench.studies.cells import DEFAULT, TUNED, Cell, Cells, groups_of, reading_of_line
from bench.studies.collect import collect
from bench.studies.frame import frame
from bench.studies.groups import Aggregate
from bench.studies.results import Results
from bench.studies.settings import Column, is_special
from bench.studies.source import Runs, Source
from bench.studies.study import Study
from bench.studies.verdicts import STATES
from bench.studies.wording import published_text

TRUSTED = ("", "verified")
"""States of a bundle (none: one's own or shipped runs) whose methods take part in a ranking, if it is none of
the suite's only where one of its own runs of the bundle was made again."""

PUBLISHED = "published"
"""Trust in a row that has a paper's number alone."""

OTHER_METRICS = tuple(metric for metric in METRICS if metric != ACCURACY)
"""Metrics that stand beside accuracy; no rank and no grade rests on them."""

Row = dict[str, Any]
"""A row of a board: the cells' frame's columns, and those of ``StudyBoards._more``."""


class RunLink(NamedTuple):
    """A run of a row."""

    seed: int
    spec_hash: str
    state: str


@dataclass(frozen=True, eq=False)
class StudyBoards:
    """A study: its main tables and its experiments with runs, and what they come to.

    ``waiting_methods`` are no part of the suite and are not ranked: a run of theirs is unverified or
    contradicted, or no run of theirs in a bundle was made again.
    """

    study: Study
    experiments: Sequence[Cells]
    ranking: Ranking | None
    verdicts: pd.DataFrame
    waiting_methods: Collection[str]
    results: Results

    @property
    def scores(self) -> tuple[Score, ...]:
        """The score of every paper that the study stands beside."""
        return score.scores(self.study, self.verdicts)

    @property
    def counts(self) -> dict[str, Counter[str]]:
        """Paper -> how many of its published values have each verdict; not run is also what no table has."""
        counts = self.verdicts.rename(columns={score.NO_TABLE: STATES["not_run"]}).T.groupby(level=0).sum()
        return {
            str(paper): Counter({str(name): int(count) for name, count in row.items() if count})
            for paper, row in counts.items()
        }

    @property
    def leaders(self) -> str:
        """Who has the best mean rank on each data set."""
        return score.leaders(self.ranking)

    @property
    def by_dataset(self) -> str:
        """Who is worse than the best where federations of one data set count once."""
        return score.by_dataset(self.ranking)

    @cached_property
    def boards(self) -> dict[str, list[Row]]:
        """Data set -> the rows of its board, in the order of the study's tables."""
        columns = [column for cells in self.experiments for column in cells.columns]
        return {dataset: self._rows(dataset) for dataset in dict.fromkeys(c.dataset for c in columns)}

    @property
    def cells(self) -> Iterator[Cell]:
        """The cells that verdicts rest on."""
        return (cell for cells in self.experiments for cell in cells.primary_cells)

    @cached_property
    def measured_rows(self) -> int:
        """Number of rows of main tables with numbers, in the usual settings."""
        return sum(row["usual"] and row["mean"] is not None for rows in self.boards.values() for row in rows)

    @cached_property
    def _by_metric(self) -> Mapping[Metric, Results]:
        """The results under ``OTHER_METRICS``."""
        return {metric: self.results.with_metric(metric) for metric in OTHER_METRICS}

    @cached_property
    def _groups(self) -> Mapping[Any, Mapping[str, int]]:
        groups: dict[Any, dict[str, int]] = {}
        if self.ranking:
            known = self.ranking.cells[self.ranking.cells["group"].notna()]
            for *where, point, method, group in known[[*TASK, "method", "group"]].itertuples(index=False):
                groups.setdefault((Column(*where), point), {})[method] = group
        return groups

    def _rows(self, dataset: str) -> list[Row]:
        """The cells on one data set: main tables first, then experiments. In each table by column, settings
        (default, tuned, others) and measured mean, the best first; cells without numbers come last.
        """
        pairs: list[tuple[Cells, Cell]] = []
        for cells in self.experiments:
            for column in cells.columns if cells.experiment.main else cells.run_columns:
                if column.dataset == dataset:
                    column_cells = [cell for cell in _scores(cells) if cell.column == column]
                    column_cells.sort(key=_order)
                    pairs += [(cells, cell) for cell in column_cells]
        table = records(frame(cell for _, cell in pairs))
        return [{**row, **self._notes(cells, cell)} for row, (cells, cell) in zip(table, pairs, strict=True)]

    def _notes(self, cells: Cells, cell: Cell) -> Row:
        """What a row shows beside its place in the frame: ``over`` and ``others`` are the means over seeds of
        ``spread.MEASURES`` and under the study's other readings, ``by_metric`` those under the other metrics
        that all its runs are known by; ``usual`` marks a cell of a paper's main table in its usual settings,
        ``group`` is its group of ties there; ``drawn_low`` and ``drawn_high`` end the mean's interval in
        pictures. ``heading`` names the table, or the experiment, whose tables may be called like a paper.
        """
        study, group, line = self.study, cell.group, cell.line
        is_usual = cells.experiment.competes and not line.setting
        low, high = (cell.measured and drawn_interval(cell.measured.values)) or (None, None)
        spread: dict[str, float | None] = {}
        other_means: dict[str, float | None] = {}
        by_metric: dict[Metric, float] = {}
        if group is not None and cell.measured is not None:
            # Newcomers are other clients than the baseline's, and attackers no clients to be fair to.
            compared_cell = replace(cell, baseline=None) if is_special(group.settings) else cell
            baseline_title = study.title_of(study.baseline)
            for measure in MEASURES:
                values = measure.of(compared_cell.reading)
                title = measure.title.replace("Local", baseline_title)
                spread[title] = Aggregate(values).mean if values else None
            for reading in study.readings:
                line_reading = reading_of_line(study, reading, line)
                aggregate = line_reading and self.results.aggregate(
                    group, line_reading.stage, line_reading.rule, study.average
                )
                other_means[f"{reading.stage}, {reading.rule}"] = aggregate.mean if aggregate else None
            for metric, results in self._by_metric.items():
                aggregate = results.aggregate(group, cell.stage, cell.rule, study.average)
                by_metric |= {metric: aggregate.mean} if aggregate and aggregate.n == cell.measured.n else {}
        return {
            "cell": cell,
            "title": line.title if cells.experiment.main else cell.title,
            "heading": cell.table if cells.experiment.main else cells.experiment.title,
            "settings": cell.setting,
            "usual": is_usual,
            "drawn_low": low,
            "drawn_high": high,
            "group": self._groups.get((cell.column, cell.point.label), {}).get(cell.method)
            if is_usual
            else None,
            "published": published_text(cell.target),
            "over": spread,
            "others": other_means,
            "by_metric": by_metric,
            "protocol": protocol_text([protocol_of(cell.settings)]) if cell.settings else "",
            "trust": _trust(cell),
            "runs": links(group.runs) if group else (),
        }


@dataclass(frozen=True, eq=False)
class Boards:
    """All studies over one source of results: a shared protocol first, then most numbers; empty ones last."""

    results: Results
    studies: tuple[StudyBoards, ...]

    @property
    def method_titles(self) -> dict[str, str]:
        """Method -> its title in the first ranking that has it."""
        tables = [entry.ranking.ranks for entry in self.studies if entry.ranking]
        return {
            method: title
            for table in reversed(tables)
            for method, title in zip(table["method"], table["title"], strict=True)
        }

    @property
    def runs_outside_tables(self) -> list[tuple[str, int]]:
        """Columns with runs that no table or experiment of any study has, and how many runs."""
        experiments = (cells for study in self.studies for cells in study.experiments)
        table_columns = {column for cells in experiments for column in cells.columns}
        counts = Counter(column for column in self.results.runs["column"] if column not in table_columns)
        return [(column.description(column.dataset), count) for column, count in sorted(counts.items())]


def boards(
    source: Source,
    studies: Mapping[str, type[Study]],
    suite: Collection[str],
) -> Boards:
    """Every study, with or without runs. ``suite`` are the methods that come with the suite.

    Raises:
        RequestError: the source has no runs.
    """
    results, all_cells = collect(source, [study() for study in studies.values()])
    collected = collect_frames(source, [study for study, _ in all_cells])
    entries = [_study(study, cells, results, collected, suite) for study, cells in all_cells]
    entries.sort(
        key=lambda entry: (not entry.measured_rows, not entry.study.shared_protocol, -entry.measured_rows)
    )
    return Boards(results, tuple(entries))


def links(runs: Runs) -> tuple[RunLink, ...]:
    """Some runs by seed."""
    columns = zip(runs["seed"].tolist(), runs["spec_hash"], runs["state"], strict=True)
    return tuple(sorted(map(RunLink._make, columns)))


def coverage(rows: Sequence[Row]) -> tuple[int, int, list[tuple[str, int]]]:
    """Of a board's rows in main tables and usual settings: how many have numbers, how many there are, and
    what became of the others.
    """
    usual_rows = [row for row in rows if row["usual"]]
    missing_verdicts = Counter(row["verdict"] for row in usual_rows if row["mean"] is None)
    return len(usual_rows) - missing_verdicts.total(), len(usual_rows), sorted(missing_verdicts.items())


def _study(
    study: Study,
    all_experiments: Sequence[Cells],
    results: Results,
    collected: Collected,
    suite: Collection[str],
) -> StudyBoards:
    tables = [cells for cells in all_experiments if cells.experiment.competes]
    guests, waiting_methods = _guests(study, tables, suite)
    ranking = rank(study, collected, guests=guests)
    experiments = [cells for cells in all_experiments if cells.experiment.main or cells.run_columns]
    verdicts = score.verdict_counts(study, score.judged_once(study, collected.cells))
    return StudyBoards(study, experiments, ranking, verdicts, waiting_methods, results)


def _guests(study: Study, tables: Sequence[Cells], suite: Collection[str]) -> tuple[list[str], list[str]]:
    """Methods beyond the study's rows and the suite: those that compete, and those that do not yet."""
    own_methods = {line.method for line in study.lines} | set(suite)
    made_again: dict[str, dict[tuple[str, str], bool]] = {}
    for table in tables:
        for group in groups_of(table):
            if group.method not in own_methods:
                bundles = made_again.setdefault(group.method, {})
                names = ("bundle", "bundle_state", "bundle_sampled")
                for bundle, state, sampled in zip(*map(group.runs.__getitem__, names), strict=True):
                    bundles[bundle, state] = bundles.get((bundle, state), not state) or bool(sampled)
    trust = {
        method: all(state in TRUSTED and is_known for (_, state), is_known in bundles.items())
        for method, bundles in made_again.items()
    }
    return sorted(name for name in trust if trust[name]), sorted(n for n in trust if not trust[n])


def _scores(cells: Cells) -> Iterator[Cell]:
    """The cells of an experiment beside its first comparison, read by its first measure of accuracy."""
    first_measure = next((measure for measure in cells.measures if measure.metric == ACCURACY), None)
    for cell in cells:
        if cell.measure is first_measure and cell.comparison is cells.experiment.comparisons[0]:
            yield cell


def _trust(cell: Cell) -> str:
    """Who stands behind a row: the paper alone (``published``), or whoever made its runs (``own``,
    ``shipped``, or the state of an imported bundle); several where those are several.
    """
    if cell.group is None:
        return PUBLISHED if cell.target else ""
    columns = cell.group.runs["bundle_state"], cell.group.runs["origin"]
    return ", ".join(
        sorted({state or ("shipped" if origin else "own") for state, origin in zip(*columns, strict=True)})
    )


def _order(cell: Cell) -> tuple[int, bool, float]:
    kinds = (DEFAULT, TUNED)
    kind = kinds.index(cell.tuning) if cell.tuning in kinds else len(kinds)
    return kind, cell.measured is None, -cell.measured.mean if cell.measured else 0.0


def dataset_title(name: str) -> str:
    """A data set's own title, the same on every page; its name where it is not installed."""
    kind = DATASETS.all().get(name)
    return kind.title if kind else name
