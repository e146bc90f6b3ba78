"""The cells frame: the measured and the published number of every cell of every table, with a verdict.

A cell is made in four steps. An experiment gives its *place* (a line and a column of a table). The place has
*members*: the runs that are planned or found for it. A measure gives every member a *value*. The mean of the
values is compared with the published number and graded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from bench.frames.places import members_frame, places_frame, states
from bench.frames.printed import asked_cells, readings_of
from bench.frames.spread import UNKNOWN, pool_of, with_spread
from bench.frames.stored_runs import (
    DEFAULT,
    OTHER,
    TUNED,
    UsualRuns,
    columns_of,
    parts_of,
    runs_frame,
    usual_of,
)
from bench.frames.verdicts import agreed, judged
from bench.metric_names import ACCURACY, ROC_AUC, Metric
from bench.statistics.summary import with_intervals
from bench.store.tables import Tables, plain_texts
from bench.studies.experiment import Experiment, Plans
from bench.studies.measures import Measure
from bench.studies.members import Members, accuracy_by_run, check_kept, client_rows
from bench.studies.settings import Settings
from bench.studies.study import Study
from bench.tune.record import Configurations, configurations

COLUMNS = columns_of("cells")
"""Columns of the cells frame and their types. Key: study, document, table, dataset, scenario, clients, line,
point, measure; or place, comparison_number, measure_number.
"""

WRITTEN = list(COLUMNS)[: list(COLUMNS).index("origin") + 1]
"""Columns of ``cells.csv``."""

VALUE = ["measure_number", "stage", "rule", "place"]
"""Columns that identify values: cells that agree in them show the same values."""

VALUES = columns_of("values")
"""Columns of the values frame and their types. The frame has one row per member and measure."""

BESIDE = [
    *("baseline_n", "baseline_mean", "baseline_std"),
    *("control_n", "control_mean", "control_std"),
    *("s_d", "s_d_source", "s_d_freedom", "partitions", "draws"),
]
"""Columns that a verdict reads in addition to the values. Only accuracies have more than the first three."""


class Results(NamedTuple):
    """Everything collected from a source: the frames of runs, places, members, values and cells; the measures
    by number; the settings by place; the scores of all clients by metric, stage and rule.
    """

    runs: pd.DataFrame
    places: pd.DataFrame
    members: pd.DataFrame
    values: pd.DataFrame
    cells: pd.DataFrame
    measures: list[Measure]
    settings: dict[int, Settings]
    source: Tables
    metric: Metric
    clients: dict[tuple[Metric, str, str], pd.DataFrame]

    def done_of(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Select the members with results at the places of ``cells``."""
        return self.members[self.members["is_done"] & self.members["place"].isin(cells["place"])]

    def clients_at(self, stage: str, rule: str, metric: Metric | None = None) -> pd.DataFrame:
        """Return the test scores of the clients of all runs: columns run, client, value (0 to 1), samples."""
        metric = metric or self.metric
        if (metric, stage, rule) not in self.clients:
            runs = self.runs.loc[self.runs["state"] == "done", "run"].tolist()
            rows = client_rows(self.source, runs, metric, stage, "test", rule)
            self.clients[metric, stage, rule] = rows[["run", "client", "value", "samples"]]
        return self.clients[metric, stage, rule]


def collect(
    source: Tables,
    studies: Iterable[Study],
    metric: Metric = ACCURACY,
    winners: Configurations | None = None,
    plans: Plans | None = None,
    usual_runs: UsualRuns | None = None,
) -> Results:
    """Collect every cell of every study: everything that is planned, published or run.

    Clients are scored by ``metric``. ``winners`` are the tuned configurations (None: all available ones).
    ``plans`` are the experiments of these studies, and of others where available (None: of these alone).
    ``usual_runs`` are the runs in usual settings (None: as the studies' grids plan them).
    """
    by_name = {study.name: study for study in studies}
    all_plans = plans or {name: study.experiments for name, study in by_name.items()}
    plans = {name: all_plans[name] for name in by_name}
    hashes = {digest for tables in all_plans.values() for table in tables for digest in table.hashes}
    grids = [grid for study in by_name.values() for grid in study.grids]
    usual = usual_of(grids) if usual_runs is None else usual_runs
    by_cell = configurations() if winners is None else winners
    searches = [search for cell_searches in by_cell.values() for search in cell_searches]
    runs, run_settings = runs_frame(source, usual, hashes, searches)
    places, settings = places_frame(by_name, plans, runs, usual, run_settings)
    members = members_frame(by_name, places, runs)
    places = places.join(states(places, members), on="place")
    cells, measures = asked_cells(by_name, plans, places, settings, metric)
    # Drop cells without a planned, stored or published run, and further comparisons without a published
    # value. In a line of unusual settings, which the database alone has, a published value keeps no cell.
    is_printed = cells["printed"].notna()
    has_place = (cells["runs"] > 0) | (cells["planned"] > 0) | (is_printed & cells["usual"])
    cells = cells[has_place & (is_printed | (cells["comparison_number"] == 0))]

    frames = runs, places, members, no_rows(VALUES), cells
    results = Results(*frames, measures, settings, source, metric, {})
    if metric != ACCURACY:
        done = runs.loc[runs["state"] == "done", "run"]
        check_kept(metric, done.tolist(), results.clients_at("trained", "last"))
    readings = readings_of(cells)
    values = measured(results, readings[readings["state"] == ""], measures)
    numbers = values.groupby(VALUE)["value"].agg(n="count", mean="mean", std="std").reset_index()
    readings = readings.merge(with_intervals(numbers, least=2), on=VALUE, how="left")
    graded = agreed(judged(_with_evidence(results, by_name, readings)))
    return results._replace(values=values, cells=cells_frame(graded))


def no_rows(columns: Mapping[str, str]) -> pd.DataFrame:
    """Return an empty frame with these columns and types."""
    return pd.DataFrame(columns=list(columns)).astype(dict(columns))


def measured(results: Results, cells: pd.DataFrame, measures: Sequence[Measure]) -> pd.DataFrame:
    """Compute the values of cells with runs: columns ``VALUES``. ``measure_number`` indexes ``measures``."""
    parts = [no_rows(VALUES)]
    for (stage, rule, number), part in parts_of(cells, ["stage", "rule", "measure_number"]):
        rows = results.done_of(part)
        clients = results.clients_at(stage, rule)
        seen = Members(rows, results.source, results.metric, stage, rule, clients, results.settings)
        values = rows[["place", "run", "seed"]].assign(value=measures[number].of(seen))
        parts.append(values.assign(measure_number=number, stage=stage, rule=rule)[list(VALUES)])
    return plain_texts(pd.concat(parts).dropna(subset="value").reset_index(drop=True))


def values_of(results: Results, cells: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Compute the values of cells under a measure that their table does not show: the columns ``VALUES``."""
    reading = {"stage": measure.reading.stage, "rule": measure.reading.rule} if measure.reading else {}
    return measured(results, cells.assign(measure_number=0, **reading), [measure])


def _with_evidence(results: Results, studies: Mapping[str, Study], readings: pd.DataFrame) -> pd.DataFrame:
    """Add to the readings the columns ``BESIDE`` and all others that ``judged`` reads.

    Baseline and control runs are read like the members. Without values n is 0, and ``state`` says why.
    """
    done = results.runs.loc[results.runs["state"] == "done", ["run", "family", "partition_hash"]]
    members = results.members[results.members["is_done"]]
    pools = {name: pool_of(study, results.runs) for name, study in studies.items()}
    readings = readings.join(members.groupby("place")["family"].first(), on="place")
    parts = [pd.DataFrame(columns=BESIDE)]
    with_values = readings[readings["n"] > 0]
    for (stage, rule, kind), same in parts_of(with_values, ["stage", "rule", "metric"]):
        is_accuracy = kind in (results.metric, ROC_AUC)
        clients = results.clients_at(stage, rule, kind if is_accuracy else results.metric)
        accuracies = accuracy_by_run(clients)
        for name, part in parts_of(same, "study"):
            by_run = accuracies[studies[name].average]
            shown = results.done_of(part)
            for beside in ("baseline", "control") if is_accuracy else ("baseline",):
                numbers = shown[beside].map(by_run).groupby(shown["place"]).agg(["count", "mean", "std"])
                names = [f"{beside}_n", f"{beside}_mean", f"{beside}_std"]
                part = part.join(numbers.set_axis(names, axis=1), on="place")
            if is_accuracy:
                values = done.assign(value=done["run"].map(by_run)).dropna(subset="value")
                part = with_spread(part, values, pools[name], results.settings)
            parts.append(part.reindex(columns=BESIDE))
    readings = readings.join(pd.concat(parts[1:] or parts))
    is_empty = readings["n"].isna()
    reading = "stage " + readings["stage"] + " and rule " + readings["rule"]
    has_runs = is_empty & (readings["state"] == "")
    return readings.assign(
        n=readings["n"].fillna(0).astype(int),
        margin=readings["study"].map({name: study.margin for name, study in studies.items()}),
        state=readings["state"].mask(has_runs, "not_applicable"),
        state_reason=readings["state_reason"].mask(has_runs, "no " + readings["metric"] + " of " + reading),
        draws=readings["draws"].fillna(0),
        s_d_source=readings["s_d_source"].astype(object).fillna(UNKNOWN).mask(is_empty),
        control=readings["control_mean"],
    )


def cells_frame(cells: pd.DataFrame) -> pd.DataFrame:
    """The columns ``COLUMNS`` of graded cells."""
    is_measured = cells["n"] > 0
    missing = cells["missing"].where(is_measured, "")
    reasons = zip(cells["reason"], missing, strict=True)
    tuning = cells["setting"].eq("").map({True: DEFAULT, False: OTHER})
    shown = cells.assign(
        reason=["; ".join(filter(None, both)) for both in reasons],
        no_grade=cells["reason"],
        missing=missing,
        tuning=tuning.mask(cells["tuned"] & cells["main"], TUNED),
        order=range(len(cells)),
        **{name: cells[name].where(is_measured) for name in ("seconds", "megabytes", "peak_mib")},
    )
    kinds = {name: "object" if kind == "string" else kind for name, kind in COLUMNS.items()}
    return shown[list(COLUMNS)].astype(kinds)


class DocumentCells(NamedTuple):
    """The cells of an experiment that a report shows, and all ``results``. The columns of ``cells`` are those
    of the cells frame and those described in ``bench.report.document.document_cells``.
    """

    study: Study
    experiment: Experiment
    cells: pd.DataFrame
    results: Results
