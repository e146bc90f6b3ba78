"""What a study has on the site: its boards as frames of rows, what it comes to and what is covered."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.dataset import DATASETS
from bench.frames.graded_cells import Results, collect, values_of
from bench.frames.ranking import TASK, Ranking, rank
from bench.frames.stored_runs import DEFAULT, TUNED, WHERE, parts_of, rows_of
from bench.frames.verdicts import STATES
from bench.metric_names import ACCURACY, METRICS, TITLES
from bench.report import score
from bench.report.captions import protocol_of, protocol_text
from bench.report.ranking import by_dataset, leaders
from bench.report.spread import MEASURES, with_measures
from bench.site.folder import board_page
from bench.site.templating import Section
from bench.statistics.summary import LEAST_RUNS
from bench.store.tables import Tables
from bench.studies.measures import TEST
from bench.studies.settings import Column
from bench.studies.study import Study
from bench.studies.wording import with_std

TRUSTED = ("", "verified")
"""States of a bundle (none: one's own or shipped runs) whose methods take part in a ranking, if it is none of
the suite's only where one of its own runs of the bundle was made again."""

GROUPS = (
    "Groups are by paired tests over tasks, places by mean rank: a method may have a better mean rank than "
    "one of group 1 and still lose to the best in the test, so a group need not be a run of neighbours."
)

PUBLISHED = "published"
"""Trust in a row that has a paper's number alone."""

OTHER_METRICS = tuple(metric for metric in METRICS if metric != ACCURACY)
"""Metrics that stand beside accuracy; no rank and no grade rests on them."""

PLACE = ["column_number", "line_object", "reads", "main"]
"""Columns of the places frame that the rows of boards need."""

ORDER = ["document_number", "column_number", "kind", "missing_last", "falling"]
"""Of the rows of a board: tables with their columns, then settings, then measured means, the best first."""

Beside = tuple[str, float, str]
"""A number beside a row's mean: what it is, the number, and why no grade rests on it."""


class RunLink(NamedTuple):
    """A run of a row."""

    seed: int
    spec_hash: str
    state: str


class Boards(NamedTuple):
    """All studies over one source of results: a shared protocol first, then most numbers; empty ones last.

    cells   the cells that the studies show, in that order
    """

    results: Results
    studies: Sequence[Section]
    cells: pd.DataFrame

    @property
    def method_titles(self) -> dict[str, str]:
        """Method -> its title in the first ranking that has it."""
        ranks = [section.ranking.ranks for section in self.studies if section.ranking]
        return {
            method: title
            for table in reversed(ranks)
            for method, title in zip(table["method"], table["title"], strict=True)
        }

    @property
    def runs_outside_tables(self) -> list[tuple[str, int]]:
        """Columns with runs that no table or experiment of any study has, and how many runs."""
        tables = self.cells[WHERE].drop_duplicates()
        runs = self.results.runs[WHERE].merge(tables, how="left", indicator=True)
        outside = runs[runs["_merge"] == "left_only"]
        columns = [(Column(*where), len(part)) for where, part in parts_of(outside, WHERE)]
        return [(column.description(column.dataset), count) for column, count in sorted(columns)]


def boards(source: Tables, studies: Mapping[str, type[Study]], suite: Collection[str]) -> Boards:
    """Every study, with or without runs. ``suite`` are the methods that come with the suite.

    Raises:
        RequestError: the source has no runs.
    """
    all_studies = [study() for study in studies.values()]
    results = collect(source, all_studies)
    guests = {study.name: _guests(study, results, suite) for study in all_studies}
    rankings = {study.name: rank(study, results, guests=guests[study.name][0]) for study in all_studies}
    cells = _shown_cells(all_studies, results)
    rows = board_rows(all_studies, cells, rankings, results)
    sections = []
    for study in all_studies:
        judged = score.judged_once(study, results.cells[results.cells["study"] == study.name])
        verdicts = score.verdict_counts(study, judged)
        scores = score.scores(study, verdicts)
        ranking, waiting = rankings[study.name], guests[study.name][1]
        columns = cells[cells["study"] == study.name].sort_values(["document_number", "column_number"])
        own_rows = rows[rows["study"] == study.name]
        section = Section(
            study.name,
            study.title,
            score.headline(ranking, verdicts),
            scores,
            ranking,
            _notes(ranking, waiting),
            boards={name: own_rows[own_rows["dataset"] == name] for name in columns["dataset"].unique()},
            counts=_counts(verdicts),
            waiting=waiting,
            measured=coverage(own_rows)[0],
            study=study,
        )
        sections.append(section)
    shared = {study.name for study in all_studies if study.shared_protocol}
    sections.sort(key=lambda one: (not one.measured, one.name not in shared, -one.measured))
    in_order = [cells[cells["study"] == section.name] for section in sections]
    return Boards(results, sections, pd.concat(in_order))


def _notes(ranking: Ranking | None, waiting: Sequence[str]) -> list[str]:
    """What is to be said below a ranking."""
    notes = []
    if ranking:
        sentences = [leaders(ranking), by_dataset(ranking), "All default settings, none tuned."]
        if ranking.ranks["group"].notna().any():
            sentences.append(GROUPS)
        notes.append(" ".join(filter(None, sentences)))
        if ranking.unranked_titles:
            titles = ", ".join(ranking.unranked_titles)
            notes.append(f"Without numbers in default settings, not ranked: {titles}.")
    if waiting:
        notes.append(f"Not ranked until runs of theirs are made again and verified: {', '.join(waiting)}.")
    return notes


def _shown_cells(studies: Sequence[Study], results: Results) -> pd.DataFrame:
    """The cells of main tables and of experiments with runs. New columns: ``PLACE``, document_number (among
    all studies' experiments), is_run_column (something was run on the federation).
    """
    documents = [(study.name, experiment.name) for study in studies for experiment in study.experiments]
    numbers = pd.DataFrame(documents, columns=["study", "document"]).rename_axis("document_number")
    cells = results.cells.join(results.places.set_index("place")[PLACE], on="place")
    cells = cells.merge(numbers.reset_index(), on=["study", "document"])
    has_runs = cells["runs"] > 0
    is_run_column = has_runs.groupby([cells["document_number"], cells["column_number"]]).transform("any")
    is_shown = cells["main"] | has_runs.groupby(cells["document_number"]).transform("any")
    return cells.assign(is_run_column=is_run_column)[is_shown]


def board_rows(
    studies: Sequence[Study], cells: pd.DataFrame, rankings: Mapping[str, Ranking | None], results: Results
) -> pd.DataFrame:
    """The rows of all boards, from the shown cells.

    A cell stands beside its table's first comparison, read by its first measure of accuracy. Main tables
    come first, then experiments. In each table the rows are by column, settings (default, tuned, others)
    and measured mean, the best first; cells without numbers come last.

    ``WRITTEN``     columns of the cells frame
    usual           of a paper's main table, in its usual settings
    title           of the line
    heading         the table, or the experiment, whose tables may be called like a paper
    group           its group of ties
    published       the published value as text
    drawn_low, drawn_high   ends of the mean's interval in pictures
    beside          means over seeds of ``spread.MEASURES``, under the study's other readings and by the other
                    metrics, which have a column by their name, too
    protocol, trust, runs   protocol of its runs, who made them, and a ``RunLink`` each
    board, anchor, where, study_title   its page, its name there, and where it stands in words
    """
    is_accuracy = cells["measure_number"].map([m.metric == ACCURACY for m in results.measures].__getitem__)
    rows = cells[(cells["main"] | cells["is_run_column"]) & is_accuracy & (cells["comparison_number"] == 0)]
    rows = rows[rows["position"] == rows.groupby("document_number")["position"].transform("min")]
    kinds = rows["tuning"].map({DEFAULT: 0, TUNED: 1}).fillna(2)
    rows = rows.assign(kind=kinds, missing_last=rows["n"] == 0, falling=-rows["mean"])
    rows = rows.sort_values(ORDER, kind="stable", ignore_index=True)

    documents = [experiment for study in studies for experiment in study.experiments]
    titles = rows["document_number"].map([document.title for document in documents].__getitem__)
    competes = rows["document_number"].map([document.competes for document in documents].__getitem__)
    line_titles = pd.Series([line.title for line in rows["line_object"]], rows.index)
    is_drawn = rows["n"] >= LEAST_RUNS
    rows = rows.assign(
        usual=rows["usual"] & competes,
        title=line_titles.where(rows["main"], rows["line"]),
        heading=rows["table"].where(rows["main"], titles),
        published=_published(rows),
        drawn_low=rows["low"].where(is_drawn),
        drawn_high=rows["high"].where(is_drawn),
    )
    rows = _with_groups(rows, rankings)
    means = _by_metric(rows, results)
    settings = [results.settings[place] for place in rows["place"]]
    links_by_place = _links(results.members)
    dataset_titles = rows["dataset"].map(dataset_title)
    pages = pd.Series([board_page(row.study, row.dataset) for row in rows_of(rows)], rows.index, dtype=object)
    numbers = (rows.groupby(["study", "dataset"]).cumcount() + 1).astype(str)
    return rows.assign(
        **means,
        beside=rows["place"].map(_beside(studies, rows, means, results)),
        protocol=[protocol_text([protocol_of(one)]) if one else "" for one in settings],
        trust=_trust(rows, results.members),
        runs=pd.Series([links_by_place.get(place, []) for place in rows["place"]], rows.index, dtype=object),
        board=pages,
        anchor=pages.map(lambda page: Path(page).stem) + "-" + numbers,
        where=dataset_titles + " · " + rows["heading"],
        study_title=rows["study"].map({study.name: study.title for study in studies}),
    )


def _published(rows: pd.DataFrame) -> pd.Series[str]:
    """The published values as text: their numbers, their status (``OOM``), or ``-``."""
    numbers = map(with_std, rows["published_mean"], rows["published_std"])
    texts = pd.Series(list(numbers), rows.index, dtype=object).where(
        rows["published_mean"].notna(), rows["status"]
    )
    return texts.where(rows["printed"].notna(), "-")


def _with_groups(rows: pd.DataFrame, rankings: Mapping[str, Ranking | None]) -> pd.DataFrame:
    """The rows with group, that of ties of the usual ones."""
    key = ["study", *TASK, "method"]
    parts = [rows[key].assign(group=pd.array([None] * len(rows), "Int64"))]
    parts += [ranking.cells[[*key, "group"]] for ranking in rankings.values() if ranking]
    groups = pd.concat(parts).dropna(subset="group").drop_duplicates(key, keep="last")
    rows = rows.merge(groups, on=key, how="left")
    return rows.assign(group=rows["group"].where(rows["usual"]))


def _by_metric(rows: pd.DataFrame, results: Results) -> dict[str, pd.Series[float]]:
    """Metric -> the rows' means under it, where every run with numbers is known by it."""
    measured = rows[rows["n"] > 0]
    means: dict[str, pd.Series[float]] = {}
    for metric in OTHER_METRICS:
        values = values_of(results._replace(metric=metric, clients={}), measured, TEST)
        numbers = values.groupby("place")["value"].agg(["mean", "count"]).reindex(rows["place"])
        is_whole = numbers["count"].to_numpy() == rows["n"].to_numpy()
        means[metric] = pd.Series(numbers["mean"].to_numpy(), rows.index).where(is_whole)
    return means


def _beside(
    studies: Sequence[Study], rows: pd.DataFrame, means: Mapping[str, pd.Series[float]], results: Results
) -> dict[int, list[Beside]]:
    """Place -> the numbers beside its mean.

    Newcomers are other clients than the baseline's, and attackers are no clients to be fair to.
    """
    found: dict[int, list[Beside]] = {place: [] for place in rows["place"]}

    def add(title: str, places: pd.Series[int], values: pd.Series[float], note: str = "") -> None:
        for place, value in zip(places, values, strict=True):
            if pd.notna(value):
                found[place].append((title, value, note))

    members = results.members
    members = members.assign(baseline=members["baseline"].where(~members["special"].astype(bool)))
    measured = with_measures(rows[rows["n"] > 0], results._replace(members=members))
    for study in studies:
        own_rows = measured[measured["study"] == study.name]
        for measure in MEASURES:
            title = measure.title.replace("Local", study.title_of(study.baseline))
            add(title, own_rows["place"], own_rows[measure.name])
        stages = pd.Series([line.stage for line in own_rows["line_object"]], own_rows.index, dtype=object)
        for reading in study.readings:
            has_place = stages.isin(["", reading.stage]) | (reading.stage == study.primary.stage)
            asked = own_rows.assign(stage=stages.where(stages != "", reading.stage), rule=reading.rule)
            numbers = values_of(results, asked[has_place], TEST).groupby("place")["value"].mean()
            title = f"{reading.stage}, {reading.rule}"
            add(title, numbers.index.to_series(), numbers, "another reading; no grade rests on it")
    for metric in OTHER_METRICS:
        title = TITLES[metric][0].upper() + TITLES[metric][1:]
        add(title, rows["place"], means[metric], "of the same rounds; no grade rests on it")
    return found


def _trust(rows: pd.DataFrame, members: pd.DataFrame) -> pd.Series[str]:
    """Who made the rows' runs: ``own``, ``shipped``, or the state of an imported bundle; several where those
    are several.
    """
    shipped = members["origin"].map(lambda origin: "shipped" if origin else "own")
    names = members["bundle_state"].where(members["bundle_state"] != "", shipped)
    known = members[["place"]].assign(trust=names).drop_duplicates().sort_values(["place", "trust"])
    by_place = known.groupby("place")["trust"].agg(", ".join)
    without_runs = rows["printed"].notna().map({True: PUBLISHED, False: ""})
    return rows["place"].map(by_place).fillna(without_runs)


def _links(members: pd.DataFrame) -> dict[int, list[RunLink]]:
    """Place -> its runs by seed."""
    found = defaultdict(list)
    for place, run in zip(members["place"], links(members), strict=True):
        found[place].append(run)
    return {place: sorted(runs) for place, runs in found.items()}


def links(runs: pd.DataFrame) -> list[RunLink]:
    """A link for each of some runs."""
    return [RunLink(*run) for run in runs[[*RunLink._fields]].itertuples(index=False, name=None)]


def coverage(rows: pd.DataFrame) -> tuple[int, int, list[tuple[str, int]]]:
    """Of a board's rows in main tables and usual settings: how many have numbers, how many there are, and
    what became of the others.
    """
    usual_rows = rows[rows["usual"]]
    missing_verdicts = Counter(usual_rows.loc[usual_rows["n"] == 0, "verdict"])
    return len(usual_rows) - missing_verdicts.total(), len(usual_rows), sorted(missing_verdicts.items())


def _counts(verdicts: pd.DataFrame) -> dict[str, Counter[str]]:
    """Paper -> how many of its published values have each verdict; not run is also what no table has."""
    counts = verdicts.rename(columns={score.NO_TABLE: STATES["not_run"]}).T.groupby(level=0).sum()
    return {
        str(paper): Counter({str(name): int(count) for name, count in row.items() if count})
        for paper, row in counts.items()
    }


def _guests(study: Study, results: Results, suite: Collection[str]) -> tuple[list[str], list[str]]:
    """Methods beyond the study's rows and the suite: those that compete, and those that do not yet."""
    competing = [experiment.name for experiment in study.experiments if experiment.competes]
    own_methods = {line.method for line in study.lines} | set(suite)
    cells = results.cells[results.cells["study"] == study.name]
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
