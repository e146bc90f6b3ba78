"""Boards: the rows of a study's tables on one data set, measured beside published."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench.dataset import DATASETS
from bench.frames.graded_cells import Results, values_of
from bench.frames.ranking import TASK, Ranking
from bench.frames.stored_runs import DEFAULT, TUNED
from bench.metric_names import ACCURACY, METRICS, TITLES, Metric
from bench.report.captions import protocol_of, protocol_text
from bench.report.tables import SPREAD, with_spread
from bench.site.folder import board_page
from bench.site.templating import records
from bench.statistics.summary import LEAST_RUNS
from bench.studies.measures import TEST
from bench.studies.study import Study
from bench.studies.wording import with_std

TRUSTED = ("", "verified")
"""States of a bundle (none: one's own or shipped runs) whose methods take part in a ranking, if it is none of
the suite's only where one of its own runs of the bundle was made again."""

OTHER_METRICS = tuple(metric for metric in METRICS if metric != ACCURACY)
"""Metrics that stand beside accuracy; no rank and no grade rests on them."""

RUN = ["seed", "spec_hash", "state"]
"""What a link to a run says."""

MARGIN = 0.03
"""Share of a picture's width that stays free at either end."""

LEAST_WIDTH = 2.0
"""Points that an axis of accuracy spans at least."""


def shown_cells(study: Study, results: Results) -> pd.DataFrame:
    """The cells of a study's main tables and of its experiments with runs. New columns: column_number,
    line_object, reads and main of their places; document_number, document_title and competes of the
    experiment; is_run_column (something was run on the federation).
    """
    documents = {document.name: document for document in study.experiments}
    places = results.places.set_index("place")[["column_number", "line_object", "reads", "main"]]
    cells = results.cells[results.cells["study"] == study.name].join(places, on="place")
    has_runs = cells["runs"] > 0
    is_run_column = has_runs.groupby([cells["document"], cells["column_number"]]).transform("any")
    is_shown = cells["main"] | has_runs.groupby(cells["document"]).transform("any")
    shown = cells.assign(is_run_column=is_run_column)[is_shown]
    return shown.assign(
        document_number=shown["document"].map(list(documents).index),
        document_title=[documents[name].title for name in shown["document"]],
        competes=[documents[name].competes for name in shown["document"]],
    )


def board_rows(study: Study, cells: pd.DataFrame, ranking: Ranking | None, results: Results) -> pd.DataFrame:
    """The rows of a study's boards, from the shown cells.

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
    beside          what else is known of it: title, number, and why no grade rests on it; the other metrics
                    have a column by their name, too
    protocol, trust, runs   protocol of its runs, who made them, and ``RUN`` of each
    board, anchor, where, study_title   its page, its name there, and where it stands in words
    """
    is_accuracy = cells["measure_number"].map(lambda number: results.measures[number].metric == ACCURACY)
    rows = cells[(cells["main"] | cells["is_run_column"]) & is_accuracy & (cells["comparison_number"] == 0)]
    rows = rows[rows["position"] == rows.groupby("document_number")["position"].transform("min")]
    kinds = rows["tuning"].map({DEFAULT: 0, TUNED: 1}).fillna(2)
    rows = rows.assign(kind=kinds, missing_last=rows["n"] == 0, falling=-rows["mean"])
    order = ["document_number", "column_number", "kind", "missing_last", "falling"]
    rows = rows.sort_values(order, kind="stable", ignore_index=True)
    is_drawn = rows["n"] >= LEAST_RUNS
    rows = rows.assign(
        usual=rows["usual"] & rows["competes"],
        title=rows["line_object"].map(lambda line: line.title).where(rows["main"], rows["line"]),
        heading=rows["table"].where(rows["main"], rows["document_title"]),
        drawn_low=rows["low"].where(is_drawn),
        drawn_high=rows["high"].where(is_drawn),
    )
    numbers = pd.Series(map(with_std, rows["published_mean"], rows["published_std"]), rows.index)
    printed = numbers.where(rows["published_mean"].notna(), rows["status"])
    rows["published"] = printed.where(rows["printed"].notna(), "-")

    if ranking:
        key = [*TASK, "method"]
        groups = ranking.cells[[*key, "group"]].dropna().drop_duplicates(key, keep="last")
        rows = rows.merge(groups, on=key, how="left")
        rows["group"] = rows["group"].where(rows["usual"])
    else:
        rows["group"] = pd.array([None] * len(rows), "Int64")
    for metric in OTHER_METRICS:
        rows[metric] = _by_metric(rows, metric, results)

    settings = [results.settings[place] for place in rows["place"]]
    members = results.members[results.members["place"].isin(rows["place"])]
    runs = run_links(members, "place")
    beside = _beside(study, rows, results)
    pages = rows["dataset"].map(lambda dataset: board_page(study.name, dataset))
    numbers = (rows.groupby("dataset").cumcount() + 1).astype(str)
    return rows.assign(
        beside=rows["place"].map(lambda place: beside.get(place, [])),
        protocol=[protocol_text(protocol_of(one)) if one else "" for one in settings],
        trust=_trust(rows, members),
        runs=rows["place"].map(lambda place: runs.get(place, [])),
        board=pages,
        anchor=pages.map(lambda page: Path(page).stem) + "-" + numbers,
        where=rows["dataset"].map(dataset_title) + " · " + rows["heading"],
        study_title=study.title,
    )


def _by_metric(rows: pd.DataFrame, metric: Metric, results: Results) -> pd.Series[float]:
    """The rows' means under another metric, where every run with numbers is known by it."""
    values = values_of(results._replace(metric=metric, clients={}), rows[rows["n"] > 0], TEST)
    numbers = values.groupby("place")["value"].agg(["mean", "count"]).reindex(rows["place"])
    is_whole = numbers["count"].to_numpy() == rows["n"].to_numpy()
    return pd.Series(numbers["mean"].to_numpy(), rows.index).where(is_whole)


def _beside(study: Study, rows: pd.DataFrame, results: Results) -> dict[int, list[tuple[str, float, str]]]:
    """Place -> what is known beside its mean: the mean over seeds of ``SPREAD``, under the study's
    other readings and by the other metrics.

    Newcomers are other clients than the baseline's, and attackers are no clients to be fair to.
    """
    members = results.members
    members = members.assign(baseline=members["baseline"].where(~members["special"].astype(bool)))
    measured = with_spread(rows[rows["n"] > 0], results._replace(members=members)).set_index("place")
    parts = []
    for measure in SPREAD:
        title = measure.title.replace("Local", study.title_of(study.baseline))
        parts.append((title, measured[measure.name], ""))
    stages = measured["line_object"].map(lambda line: line.stage)
    for reading in study.readings:
        has_place = stages.isin(["", reading.stage]) | (reading.stage == study.primary.stage)
        asked = measured.assign(stage=stages.where(stages != "", reading.stage), rule=reading.rule)
        values = values_of(results, asked[has_place].reset_index(), TEST)
        title = f"{reading.stage}, {reading.rule}"
        means = values.groupby("place")["value"].mean()
        parts.append((title, means, "another reading; no grade rests on it"))
    for metric in OTHER_METRICS:
        title = TITLES[metric][0].upper() + TITLES[metric][1:]
        parts.append((title, rows.set_index("place")[metric], "of the same rounds; no grade rests on it"))
    found = defaultdict(list)
    for title, numbers, note in parts:
        for place, number in numbers.dropna().items():
            found[int(str(place))].append((title, float(number), note))
    return found


def _trust(rows: pd.DataFrame, members: pd.DataFrame) -> pd.Series[str]:
    """Who made the rows' runs: ``own``, ``shipped``, or the state of an imported bundle; several where those
    are several. ``published``: the row has a paper's number alone.
    """
    shipped = members["origin"].map(lambda origin: "shipped" if origin else "own")
    names = members["bundle_state"].where(members["bundle_state"] != "", shipped)
    known = members[["place"]].assign(trust=names).drop_duplicates().sort_values(["place", "trust"])
    by_place = known.groupby("place")["trust"].agg(", ".join).astype(object)
    without_runs = rows["printed"].notna().map({True: "published", False: ""})
    return rows["place"].map(by_place).astype(object).fillna(without_runs)


def run_links(runs: pd.DataFrame, by: str) -> dict[Any, list[Any]]:
    """Value of a column -> ``RUN`` of each of its runs, by seed."""
    runs = runs.sort_values(RUN, kind="stable")
    return {key: list(part[RUN].itertuples(index=False)) for key, part in runs.groupby(by)}


def coverage(rows: pd.DataFrame) -> tuple[int, int, list[tuple[str, int]]]:
    """Of a board's rows in main tables and usual settings: how many have numbers, how many there are, and
    what became of the others.
    """
    usual_rows = rows[rows["usual"]]
    missing_verdicts = Counter(usual_rows.loc[usual_rows["n"] == 0, "verdict"])
    return len(usual_rows) - missing_verdicts.total(), len(usual_rows), sorted(missing_verdicts.items())


def guests(study: Study, results: Results, suite: Collection[str]) -> tuple[list[str], list[str]]:
    """Methods beyond the study's rows and the suite: those that compete, and those that do not yet."""
    competing = [experiment.name for experiment in study.experiments if experiment.competes]
    own_methods = {line.method for line in study.lines} | set(suite)
    cells = results.cells[results.cells["study"] == study.name]
    places = cells.loc[cells["document"].isin(competing), "place"]
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


class Scale(NamedTuple):
    """An axis of a picture from ``low`` to ``high``."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Where a value stands, in percent of the width; values beyond an end stand at it."""
        share = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return round(100 * (MARGIN + (1 - 2 * MARGIN) * share), 2)


def rankings_of(rows: pd.DataFrame) -> Iterator[tuple[Scale, Scale, list[dict[str, Any]]]]:
    """The rankings of a board in the order of its rows: an axis of accuracy, one of differences, and the rows
    of a task in one kind of settings. Tasks share their axes.
    """
    entries = dict(zip(rows.index, records(rows), strict=True))
    for _, task in rows.groupby(["heading", "scenario", "clients", "point"], sort=False):
        ends = usual_ends(task, ["mean", "published_mean"], ["drawn_low", "drawn_high"])
        low, high = (ends.min(), ends.max()) if len(ends) else (0.0, 0.0)
        padding = max(0.0, LEAST_WIDTH - (high - low)) / 2
        gaps = usual_ends(task, ["difference"], ["low_difference", "high_difference"])
        reach = max([1.0, *gaps.abs()])
        for _, part in task.groupby("tuning", sort=False):
            part_rows = [entries[label] for label in part.index]
            yield Scale(low - padding, high + padding), Scale(-reach, reach), part_rows


def usual_ends(rows: pd.DataFrame, centres: list[str], ends: list[str]) -> pd.Series[float]:
    """The numbers in some columns that lie no further from the middle half of the ``centres`` than its width
    (at least a point): on an axis that held the others, too, nobody would see the intervals of most.
    """
    middle = pd.concat([rows[name] for name in centres])
    numbers: pd.Series[float] = pd.concat([rows[name] for name in (*centres, *ends)])
    lower, upper = middle.quantile(0.25), middle.quantile(0.75)
    reach = max(upper - lower, 1.0)
    return numbers[numbers.between(lower - reach, upper + reach)]
