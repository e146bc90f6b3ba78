"""What a study has on the site: its boards as frames of rows, what it comes to and what is covered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd

from bench.dataset import DATASETS
from bench.frames.graded_cells import WRITTEN, Results, collect
from bench.frames.ranking import TASK, Ranking, rank
from bench.frames.stored_runs import DEFAULT, TUNED, WHERE, parts_of, rows_of
from bench.frames.values import accuracy_by_run, client_rows
from bench.frames.verdicts import STATES
from bench.metric_names import ACCURACY, METRICS, Metric
from bench.pages.templating import records
from bench.report import score
from bench.report.captions import protocol_of, protocol_text
from bench.report.document import Score
from bench.report.spread import MEASURES, with_measures
from bench.statistics.summary import drawn_interval
from bench.studies.published import published
from bench.studies.settings import Column
from bench.studies.source import Source
from bench.studies.study import Study
from bench.studies.wording import published_text

TRUSTED = ("", "verified")
"""States of a bundle (none: one's own or shipped runs) whose methods take part in a ranking, if it is none of
the suite's only where one of its own runs of the bundle was made again."""

PUBLISHED = "published"
"""Trust in a row that has a paper's number alone."""

OTHER_METRICS = tuple(metric for metric in METRICS if metric != ACCURACY)
"""Metrics that stand beside accuracy; no rank and no grade rests on them."""

PLACE = ["column_number", "line_object", "reads", "main"]
"""Columns of the places frame that the rows of boards need."""

Row = dict[str, Any]
"""A row of a board: the columns ``WRITTEN`` of the cells frame, and those of ``StudyBoards._rows``."""


class RunLink(NamedTuple):
    """A run of a row."""

    seed: int
    spec_hash: str
    state: str


@dataclass(frozen=True, eq=False)
class StudyBoards:
    """A study: the cells of its main tables and of its experiments with runs, and what they come to.

    ``waiting_methods`` are no part of the suite and are not ranked: a run of theirs is unverified or
    contradicted, or no run of theirs in a bundle was made again.
    """

    study: Study
    cells: pd.DataFrame
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
        columns = self.cells.drop_duplicates(["document_number", "column_number"])
        columns = columns.sort_values(["document_number", "column_number"])
        rows = self._rows()
        return {
            str(name): rows[rows["dataset"] == name]["row"].tolist() for name in columns["dataset"].unique()
        }

    @cached_property
    def measured_rows(self) -> int:
        """Number of rows of main tables with numbers, in the usual settings."""
        return sum(row["usual"] and row["mean"] is not None for rows in self.boards.values() for row in rows)

    def _rows(self) -> pd.DataFrame:
        """The rows of all boards: columns dataset and row.

        A cell stands beside its table's first comparison, read by its first measure of accuracy. Main tables
        come first, then experiments. In each table the rows are by column, settings (default, tuned, others)
        and measured mean, the best first; cells without numbers come last.

        To a row's columns of the cells frame come ``over`` and ``others``, the means over seeds of
        ``spread.MEASURES`` and under the study's other readings; ``by_metric``, those under the other metrics
        that all its runs are known by; ``usual`` for a cell of a paper's main table in its usual settings;
        ``group``, its group of ties there; ``drawn_low`` and ``drawn_high``, the ends of the mean's interval
        in pictures; ``heading``, the table, or the experiment, whose tables may be called like a paper.
        """
        study, results = self.study, self.results
        measures = [measure.metric == ACCURACY for measure in results.measures]
        by_accuracy = self.cells["measure_number"].map(dict(enumerate(measures)))
        has_rows = self.cells["main"] | self.cells["is_run_column"]
        cells = self.cells[has_rows & by_accuracy & (self.cells["comparison_number"] == 0)]
        first = cells.groupby("document")["position"].transform("min")
        cells = cells[cells["position"] == first]
        kinds = cells["tuning"].map({DEFAULT: 0, TUNED: 1}).fillna(2)
        cells = cells.assign(kind=kinds, missing_last=cells["n"] == 0, falling=-cells["mean"])
        order = ["document_number", "column_number", "kind", "missing_last", "falling"]
        cells = cells.sort_values(order, kind="stable", ignore_index=True)

        titles = {experiment.name: experiment.title for experiment in study.experiments}
        competing = [experiment.name for experiment in study.experiments if experiment.competes]
        line_titles = pd.Series([line.title for line in cells["line_object"]], cells.index)
        cells = cells.assign(
            usual=cells["usual"] & cells["document"].isin(competing),
            title=line_titles.where(cells["main"], cells["line"]),
            heading=cells["table"].where(cells["main"], cells["document"].map(titles)),
            settings=cells["setting"],
        )
        cells = self._with_groups(cells)
        over, others, by_metric = self._over(cells), self._others(cells), self._by_metric(cells)
        intervals, trust, runs = self._intervals(), self._trust(), self._links()
        rows = []
        for cell, row in zip(
            rows_of(cells), records(cells[[*WRITTEN, "usual", "title", "heading", "settings"]]), strict=True
        ):
            low, high = intervals.get((cell.place, cell.measure_number, cell.stage, cell.rule)) or (
                None,
                None,
            )
            is_printed = not pd.isna(cell.printed)
            target = published(cell.paper, study.published)[cell.printed] if is_printed else None
            settings = results.settings[cell.place]
            is_measured = cell.n > 0
            rows.append(
                {
                    **row,
                    "drawn_low": low,
                    "drawn_high": high,
                    "group": None if pd.isna(cell.group) else int(cell.group),
                    "reads": cell.reads,
                    "published": published_text(target),
                    "over": over[cell.place] if is_measured else {},
                    "others": others[cell.place] if is_measured else {},
                    "by_metric": by_metric[cell.place] if is_measured else {},
                    "protocol": protocol_text([protocol_of(settings)]) if settings else "",
                    "trust": trust.get(cell.place, PUBLISHED if is_printed else ""),
                    "runs": runs.get(cell.place, ()),
                }
            )
        return pd.DataFrame({"dataset": cells["dataset"], "row": pd.Series(rows, dtype=object)})

    def _with_groups(self, cells: pd.DataFrame) -> pd.DataFrame:
        """The cells with group, that of ties of the usual ones."""
        if self.ranking is None:
            return cells.assign(group=float("nan"))
        known = self.ranking.cells.dropna(subset="group")[[*TASK, "method", "group"]]
        known = known.drop_duplicates([*TASK, "method"], keep="last")
        group = cells[[*TASK, "method"]].merge(known, how="left")["group"]
        return cells.assign(group=group.where(cells["usual"]))

    def _over(self, cells: pd.DataFrame) -> Mapping[int, dict[str, float | None]]:
        """Place -> title -> the means of ``spread.MEASURES``.

        Newcomers are other clients than the baseline's, and attackers are no clients to be fair to.
        """
        members = self.results.members
        members = members.assign(baseline=members["baseline"].where(~members["special"].astype(bool)))
        measured = with_measures(cells[cells["n"] > 0], self.results._replace(members=members))
        baseline = self.study.title_of(self.study.baseline)
        titles = {measure.name: measure.title.replace("Local", baseline) for measure in MEASURES}
        table = measured.set_index("place")[list(titles)].rename(columns=titles)
        return dict(zip(table.index, records(table), strict=True))

    def _others(self, cells: pd.DataFrame) -> Mapping[int, dict[str, float | None]]:
        """Place -> reading -> the mean under the study's other readings."""
        means: dict[int, dict[str, float | None]] = {place: {} for place in cells["place"]}
        for reading in self.study.readings:
            by_stage = {
                stage: self._means(ACCURACY, stage, reading.rule)[0]
                for stage in {reading.stage, *(line.stage for line in cells["line_object"] if line.stage)}
            }
            for cell in rows_of(cells):
                stage = cell.line_object.stage
                has_place = stage in ("", reading.stage) or reading.stage == self.study.primary.stage
                mean = by_stage[stage or reading.stage].get(cell.place) if has_place else None
                means[cell.place][f"{reading.stage}, {reading.rule}"] = mean
        return means

    def _by_metric(self, cells: pd.DataFrame) -> Mapping[int, dict[Metric, float]]:
        """Place -> metric -> the mean under it, where every run with numbers is known by it."""
        means: dict[int, dict[Metric, float]] = {place: {} for place in cells["place"]}
        for metric in OTHER_METRICS:
            for (stage, rule), part in cells[cells["n"] > 0].groupby(["stage", "rule"]):
                by_place, counts = self._means(metric, str(stage), str(rule))
                for cell in rows_of(part):
                    if counts.get(cell.place) == cell.n:
                        means[cell.place][metric] = by_place[cell.place]
        return means

    def _means(self, metric: Metric, stage: str, rule: str) -> tuple[dict[int, float], dict[int, int]]:
        """Place -> the mean over seeds under a metric and reading, and how many seeds are known."""
        members = self.results.members
        places = set(self.cells["place"])
        members = members[members["is_done"] & members["place"].isin(places)]
        if metric == ACCURACY:
            clients = self.results.clients_at(stage, rule)
        else:
            asked = members["run"].unique().tolist()
            clients = client_rows(self.results.source, asked, metric, stage, "test", rule)
        value = members["run"].map(accuracy_by_run(clients)[self.study.average])
        by_place = parts_of(members.assign(value=value).dropna(subset="value"), "place")
        values = {place: part["value"] for place, part in by_place}
        means = {place: float(one.mean()) for place, one in values.items()}
        return means, {place: len(one) for place, one in values.items()}

    def _intervals(self) -> Mapping[tuple[Any, ...], tuple[float, float] | None]:
        """Place, measure, stage, rule -> the ends of the mean's interval in pictures."""
        keys = ["place", "measure_number", "stage", "rule"]
        values = self.results.values[self.results.values["place"].isin(set(self.cells["place"]))]
        return {key: drawn_interval(tuple(part["value"])) for key, part in parts_of(values, keys)}

    def _trust(self) -> Mapping[int, str]:
        """Place -> who made its runs: ``own``, ``shipped``, or the state of an imported bundle; several where
        those are several.
        """
        members = self.results.members
        shipped = members["origin"].map(lambda origin: "shipped" if origin else "own")
        names = members["bundle_state"].where(members["bundle_state"] != "", shipped)
        places = parts_of(members.assign(trust=names), "place")
        return {place: ", ".join(sorted(set(part["trust"]))) for place, part in places}

    def _links(self) -> Mapping[int, tuple[RunLink, ...]]:
        """Place -> its runs by seed."""
        return {place: links(part) for place, part in parts_of(self.results.members, "place")}


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
    def table(self) -> pd.DataFrame:
        """The cells that verdicts rest on, of all studies in their order."""
        cells = pd.concat([entry.cells for entry in self.studies])
        return cells.loc[cells["primary"], WRITTEN]

    @property
    def runs_outside_tables(self) -> list[tuple[str, int]]:
        """Columns with runs that no table or experiment of any study has, and how many runs."""
        tables = pd.concat([entry.cells[WHERE] for entry in self.studies]).drop_duplicates()
        runs = self.results.runs[WHERE].merge(tables, how="left", indicator=True)
        outside = runs[runs["_merge"] == "left_only"]
        columns = [(Column(*where), len(part)) for where, part in parts_of(outside, WHERE)]
        return [(column.description(column.dataset), count) for column, count in sorted(columns)]


def boards(
    source: Source,
    studies: Mapping[str, type[Study]],
    suite: Collection[str],
) -> Boards:
    """Every study, with or without runs. ``suite`` are the methods that come with the suite.

    Raises:
        RequestError: the source has no runs.
    """
    all_studies = [study() for study in studies.values()]
    results = collect(source, all_studies)
    entries = [_study(study, results, suite) for study in all_studies]
    entries.sort(
        key=lambda entry: (not entry.measured_rows, not entry.study.shared_protocol, -entry.measured_rows)
    )
    return Boards(results, tuple(entries))


def links(runs: pd.DataFrame) -> tuple[RunLink, ...]:
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


def _study(study: Study, results: Results, suite: Collection[str]) -> StudyBoards:
    cells = results.cells[results.cells["study"] == study.name]
    guests, waiting_methods = _guests(study, cells, results, suite)
    ranking = rank(study, results, guests=guests)
    verdicts = score.verdict_counts(study, score.judged_once(study, cells))
    documents = {experiment.name: number for number, experiment in enumerate(study.experiments)}
    cells = cells.join(results.places.set_index("place")[PLACE], on="place")
    cells = cells.assign(document_number=cells["document"].map(documents))
    has_runs = cells["runs"] > 0
    cells = cells.assign(
        is_run_column=has_runs.groupby([cells["document"], cells["column_number"]]).transform("any")
    )
    is_shown = cells["main"] | has_runs.groupby(cells["document"]).transform("any")
    return StudyBoards(study, cells[is_shown], ranking, verdicts, waiting_methods, results)


def _guests(
    study: Study, cells: pd.DataFrame, results: Results, suite: Collection[str]
) -> tuple[list[str], list[str]]:
    """Methods beyond the study's rows and the suite: those that compete, and those that do not yet."""
    competing = [experiment.name for experiment in study.experiments if experiment.competes]
    own_methods = {line.method for line in study.lines} | set(suite)
    places = cells.loc[cells["document"].isin(competing), "place"].unique()
    members = results.members[results.members["place"].isin(places)]
    others = members[~members["method"].isin(own_methods)]
    is_known = (others["bundle_state"] == "") | others["bundle_sampled"].astype(bool)
    was_made_again = is_known.groupby([others["method"], others["bundle"], others["bundle_state"]]).any()
    is_trusted = was_made_again & was_made_again.index.isin(TRUSTED, level="bundle_state")
    trust = {str(name): bool(part.all()) for name, part in is_trusted.groupby(level="method")}
    return sorted(name for name in trust if trust[name]), sorted(n for n in trust if not trust[n])


def dataset_title(name: str) -> str:
    """A data set's own title, the same on every page; its name where it is not installed."""
    kind = DATASETS.all().get(name)
    return kind.title if kind else name
