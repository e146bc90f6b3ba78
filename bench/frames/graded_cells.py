"""The cells frame: every number of every table, measured beside published, with its verdict.

The way of a cell: the studies' experiments give its *place* (a line and a column of a table), the place has
*members* (the runs that are planned or found for it), a measure gives every member a *value*, and values are
averaged, set beside what is printed, and graded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench.frames.members import costs, joined, members_frame, states
from bench.frames.places import places_frame
from bench.frames.printed import beside_published, printed_runs, readings_of
from bench.frames.spread import UNKNOWN, between_partitions, drawn, pools_of, with_spread
from bench.frames.stored_runs import DEFAULT, OTHER, TUNED, UsualRuns, first_usual, runs_frame, usual_frame
from bench.frames.verdicts import agreed, judged
from bench.metric_names import ACCURACY, ROC_AUC, Metric
from bench.statistics.summary import with_intervals
from bench.store.tables import Tables
from bench.studies.declarations import plans_of
from bench.studies.experiment import Plans
from bench.studies.measures import Measure, measure_of_metric
from bench.studies.members import Members, accuracy_by_run, check_kept, client_rows
from bench.studies.settings import Reading, Settings
from bench.studies.study import Study
from bench.tune.apply import Configuration, Configurations, configurations

COLUMNS = {
    "study": "string",
    "table": "string",  # comparison and measure, for readers
    "dataset": "string",
    "scenario": "string",
    "clients": "int64",
    "method": "string",
    "setting": "string",  # what the runs have other than the method's usual settings
    "stage": "string",
    "rule": "string",
    "n": "int64",  # seeds with numbers
    "mean": "float64",  # over seeds; accuracies in percent
    "std": "float64",  # sample standard deviation over seeds
    "s_d": "float64",  # standard deviation between partitions, in points
    "s_d_source": "string",  # where s_d is from: bench.frames.spread
    "draws": "Int64",  # how often the square of s_d counts in the tolerance
    "partitions": "Int64",  # partitions that were run
    "published_mean": "float64",
    "published_std": "float64",  # as printed
    "n_p": "Int64",  # runs behind the published mean
    "difference": "float64",  # measured minus published mean, in points
    "low_difference": "float64",  # 90 % interval of the difference
    "high_difference": "float64",
    "margin": "float64",  # a reproduction has its interval within this many points
    "tolerance": "float64",  # a compatible difference is at most that large
    "control": "float64",  # what learning nothing reaches on the same clients
    "verdict": "string",
    "reason": "string",  # why there is no grade, and which runs are missing
    "document": "string",  # the experiment
    "line": "string",
    "point": "string",
    "measure": "string",
    "low": "float64",  # Student's 95 % interval of the mean
    "high": "float64",
    "planned": "int64",  # seeds that a grid plans
    "lost": "int64",  # runs without numbers
    "tuning": "string",  # default, tuned, other settings
    "seconds": "float64",  # of a run, median
    "megabytes": "float64",  # of a run in both directions, mean
    "peak_mib": "float64",  # of a run, mean
    "s_d_freedom": "float64",  # degrees of freedom of s_d
    "origin": "string",  # whose the runs are
    "primary": "bool",  # verdicts rest on it: no other reading of the document's first measure
    "paper": "string",  # the published row: its paper
    "printed": "Int64",  # ... and its number in PAPER.csv, from 0
    "population": "boolean",  # the printed deviation is over n, not n - 1
    "rests_on_spread": "bool",  # compatible only because of s_d
    "usual": "bool",  # of a line that the study has, not one found in the database under other settings
    "order": "int64",  # of the rows
    "status": "string",  # what is printed in place of a mean
    "runs": "int64",  # members of the place
    "place": "int64",  # row of the places frame
    "comparison_number": "int64",  # of the table's comparisons, from 0
    "position": "int64",  # of the measure among the table's, from 0
    "measure_number": "int64",  # in the values frame
    "no_grade": "string",  # why there is no grade
    "missing": "string",  # which of the planned seeds of a measured cell have no numbers
    "baseline_n": "Int64",  # runs of the baseline with the same seeds on the same clients
    "baseline_mean": "float64",  # over these
    "baseline_std": "float64",
    "control_n": "Int64",  # runs whose clients the control was run on
    "control_std": "float64",
}
"""Columns of the cells frame and their types. Key: study, document, table, dataset, scenario, clients, line,
point, measure; or place, comparison_number, measure_number.
"""

WRITTEN = list(COLUMNS)[: list(COLUMNS).index("origin") + 1]
"""Columns of ``cells.csv``."""

PUBLIC = list(COLUMNS)[: list(COLUMNS).index("primary") + 1]
"""Columns of the frame that ``bench.cells`` reads."""

DOCUMENT = ["study", "document"]
VALUE = ["measure_number", "stage", "rule", "place"]
"""What cells that show the same values have in common."""

VALUES = {
    "place": "int64",
    "measure_number": "int64",
    "stage": "str",
    "rule": "str",
    "run": "int64",
    "seed": "int64",
    "value": "float64",
}
"""Columns of the values frame, a row a member and measure, and their types."""

EVIDENCE = {
    "reading": "int64",
    "control": "float64",
    "control_n": "float64",
    "control_std": "float64",
    "baseline_n": "float64",
    "baseline_mean": "float64",
    "baseline_std": "float64",
    "s_d": "float64",
    "s_d_source": "str",
    "s_d_freedom": "float64",
    "draws": "int64",
    "partitions": "float64",
}
"""What a verdict rests on beside the measured values, and the types."""


class Results(NamedTuple):
    """What was collected from a source: the frames of runs, places, members, values and cells; the measures
    by number; the settings by place; the searches behind tuned runs by the number that the runs have; what
    the clients of all runs score by stage and rule.
    """

    runs: pd.DataFrame
    places: pd.DataFrame
    members: pd.DataFrame
    values: pd.DataFrame
    cells: pd.DataFrame
    measures: list[Measure]
    settings: dict[int, Settings]
    searches: list[Configuration]
    source: Tables
    metric: Metric
    clients: dict[tuple[str, str], pd.DataFrame]

    def clients_at(self, stage: str, rule: str) -> pd.DataFrame:
        """What the clients of all runs score on the test split, as ``bench.studies.members.client_rows``."""
        if (stage, rule) not in self.clients:
            runs = self.runs.loc[self.runs["state"] == "done", "run"].tolist()
            self.clients[stage, rule] = client_rows(self.source, runs, self.metric, stage, "test", rule)
        return self.clients[stage, rule]


def collect(
    source: Tables,
    studies: Iterable[Study],
    metric: Metric = ACCURACY,
    winners: Configurations | None = None,
    plans: Plans | None = None,
    usual_runs: UsualRuns | None = None,
) -> Results:
    """Every cell of every study: everything that is planned, published or run.

    ``winners`` are the tuned configurations (None: all that are at hand), ``metric`` is what clients are
    scored by. ``plans`` are the experiments of these studies and of others that are at hand, ``usual_runs``
    the usual settings in place of those that the studies' grids plan.

    Raises:
        RequestError: a study names something that there is not; the source has no runs, or none with this
            metric.
    """
    by_name = {study.name: study for study in studies}
    all_plans = plans or plans_of(by_name)
    plans = {name: all_plans[name] for name in by_name}
    hashes = {digest for tables in all_plans.values() for table in tables for digest in table.hashes}
    main_grids = [grid for study in by_name.values() for grid in study.grids]
    pooled_grids = [grid for study in by_name.values() for grid in (*study.pooled_grids, *study.split_grids)]
    planned, planned_settings = usual_frame([*main_grids, *pooled_grids])
    usual = first_usual(planned[planned["grid"].isin(main_grids)])
    if usual_runs is not None:
        usual, planned_settings = usual_runs[0], {**planned_settings, **usual_runs[1]}

    by_file = (winners or configurations()).by_file
    searches = [search for file_searches in by_file.values() for search in file_searches]
    runs, run_settings = runs_frame(source, usual, planned_settings, hashes, searches)
    places, settings = places_frame(by_name, plans, runs, usual, {**planned_settings, **run_settings})
    members = members_frame(by_name, places, runs)

    places = places.merge(states(places, members), on="place")
    cells, measures = asked_cells(by_name, plans, places, metric)
    cells = without_empty(beside_published(by_name, plans, cells))
    cells = cells.join(printed_runs(by_name, cells, settings))
    readings = readings_of(cells)

    done = runs[runs["state"] == "done"]
    if metric != ACCURACY:
        known = client_rows(source, done["run"].tolist(), metric, "trained", "test", "last")
        check_kept(metric, len(done), len(done) - known["run"].nunique())
    pools = {name: pools_of(study, planned, runs) for name, study in by_name.items()}
    values, evidence, clients_by_reading = [no_rows(VALUES)], [no_rows(EVIDENCE)], {}
    for (stage, rule), part in readings[readings["state"] == ""].groupby(["stage", "rule"]):
        reading = Reading(str(stage), str(rule))
        clients = client_rows(source, done["run"].tolist(), metric, reading.stage, "test", reading.rule)
        clients_by_reading[reading.stage, reading.rule] = clients
        values.append(measured(part, measures, members, reading, clients, source, metric, settings))
        scores: dict[str, pd.DataFrame] = {metric: accuracy_by_run(clients)}
        if (part["metric"] == ROC_AUC).any() and metric != ROC_AUC:
            areas = client_rows(source, done["run"].tolist(), ROC_AUC, reading.stage, "test", reading.rule)
            scores[ROC_AUC] = accuracy_by_run(areas)
        for (name, kind), rows in part.groupby(["study", "metric"], sort=False):
            by_run = scores.get(str(kind), scores[metric])[by_name[str(name)].average]
            rows = rows.join(beside(members, "baseline", by_run), on="place")
            if str(kind) not in scores:
                evidence.append(rows.reindex(columns=list(EVIDENCE)))
                continue
            families = between_partitions(done.assign(value=done["run"].map(by_run)).dropna(subset="value"))
            control = beside(members, "control", by_run).rename(columns={"control_mean": "control"})
            family = members.groupby("place")["family"].first()
            weighed = drawn(rows, settings).join(control.join(family), on="place")
            evidence.append(with_spread(weighed, families, *pools[str(name)])[list(EVIDENCE)])
    measured_values = pd.concat(values, ignore_index=True)
    readings = readings.merge(averaged(measured_values), on=VALUE, how="left")
    readings = readings.merge(pd.concat(evidence), on="reading", how="left")
    margins = {name: study.margin for name, study in by_name.items()}
    graded = agreed(judged(completed(readings, margins)))
    shown = cells_frame(graded, costs(members))
    frames = runs, places, members, measured_values, shown
    return Results(*frames, measures, settings, searches, source, metric, clients_by_reading)


def no_rows(columns: Mapping[str, str]) -> pd.DataFrame:
    """No rows with these columns, where nothing has numbers."""
    return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in columns.items()})


def measured(
    cells: pd.DataFrame,
    measures: Sequence[Measure],
    members: pd.DataFrame,
    reading: Reading,
    clients: pd.DataFrame,
    source: Tables,
    metric: Metric,
    settings: dict[int, Settings],
) -> pd.DataFrame:
    """The values of cells under one reading: columns place, run, seed, value, measure_number, stage, rule.

    ``clients`` are the rows of clients of all runs under that reading.
    """
    parts = []
    for number, measure_cells in cells.groupby("measure_number"):
        rows = members[members["place"].isin(measure_cells["place"]) & members["is_done"]]
        seen = Members(rows, source, metric, reading.stage, reading.rule, clients, settings)
        values = measures[int(str(number))].of(seen)
        parts.append(rows[["place", "run", "seed"]].assign(value=values, measure_number=number))
    together = pd.concat(parts, ignore_index=True).dropna(subset="value")
    return together.assign(stage=reading.stage, rule=reading.rule)[list(VALUES)]


def values_of(results: Results, cells: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """The values of cells under a measure that their table does not show: the columns ``VALUES``."""
    parts = [no_rows(VALUES)]
    for (stage, rule), part in cells.groupby(["stage", "rule"]):
        reading = measure.reading or Reading(str(stage), str(rule))
        members = results.members[results.members["place"].isin(part["place"])]
        clients = results.clients_at(reading.stage, reading.rule)
        part = part.assign(measure_number=0)
        seen = results.source, results.metric, results.settings
        parts.append(measured(part, [measure], members, reading, clients, *seen))
    return pd.concat(parts, ignore_index=True)


def asked_cells(
    studies: Mapping[str, Study], plans: Plans, places: pd.DataFrame, metric: Metric
) -> tuple[pd.DataFrame, list[Measure]]:
    """Every place under every measure beside every comparison of its table, in the order of the tables, and
    the measures by their number.

    To the columns of the places come comparison_number, measure_number, table, measure, metric,
    measure_printed, primary, not_comparable, stage, rule, order.
    """
    measures: dict[Measure, int] = {}
    experiments = [(name, experiment) for name, tables in plans.items() for experiment in tables]
    rows = []
    for document_number, (name, experiment) in enumerate(experiments):
        study = studies[name]
        declared = [measure_of_metric(one, metric) for one in experiment.measures or study.measures]
        known = [measure for measure in declared if measure is not None]
        if all(measure.is_extra for measure in known):
            continue
        for (number, comparison), (position, measure) in product(
            enumerate(experiment.comparisons), enumerate(known)
        ):
            reading = measure.reading or study.primary
            is_named = position > 0 and not measure.is_extra
            row = {
                "study": name,
                "document": experiment.name,
                "document_number": document_number,
                "comparison_number": number,
                "measure_number": measures.setdefault(measure, len(measures)),
                "position": position,
                "table": comparison.label + (f" ({measure.title})" if is_named else ""),
                "measure": measure.name,
                "metric": measure.metric,
                "measure_printed": measure.printed,
                "primary": not measure.is_extra,
                "not_comparable": experiment.reduced or measure.not_comparable_reason,
                "stage": reading.stage,
                "rule": reading.rule,
                "primary_stage": study.primary.stage,
            }
            rows.append(row)
    cells = _in_order(_read_as_lines_are(places.merge(pd.DataFrame(rows), on=DOCUMENT)))
    cells["order"] = cells.index
    return cells, list(measures)


def _read_as_lines_are(cells: pd.DataFrame) -> pd.DataFrame:
    """A line of one stage stands where that stage is asked for, and in place of the study's primary one."""
    line_stage = pd.Series([line.stage for line in cells["line_object"]], cells.index)
    is_other = (line_stage != "") & (line_stage != cells["stage"])
    has_place = ~is_other | (cells["stage"] == cells["primary_stage"])
    return cells.assign(stage=line_stage.where(is_other, cells["stage"]))[has_place]


def _in_order(cells: pd.DataFrame) -> pd.DataFrame:
    """Main tables by measure, line and column; experiments by column, place and measure."""
    return (
        cells.assign(
            first=cells["position"].where(cells["main"], cells["column_number"]),
            second=cells["line_number"].where(cells["main"], cells["inner"]),
            third=cells["column_number"].where(cells["main"], cells["position"]),
        )
        .sort_values(["document_number", "comparison_number", "first", "second", "third"], ignore_index=True)
        .drop(columns=["first", "second", "third"])
    )


def without_empty(cells: pd.DataFrame) -> pd.DataFrame:
    """Leave out cells of which nothing is planned, published or run, and further comparisons that print no
    value.

    A line that was found in the database is not there for what is published.
    """
    is_printed = cells["printed"].notna()
    has_place = (cells["runs"] > 0) | cells["is_planned"] | (is_printed & cells["usual"])
    return cells[has_place & (is_printed | (cells["comparison_number"] == 0))]


def averaged(values: pd.DataFrame) -> pd.DataFrame:
    """n, mean and std over seeds, and Student's interval of the mean, low to high."""
    numbers = values.groupby(VALUE)["value"].agg(n="count", mean="mean", std="std").reset_index()
    return with_intervals(numbers, least=2)


def beside(members: pd.DataFrame, name: str, accuracy: pd.Series[float]) -> pd.DataFrame:
    """What the runs beside members reach, the ``baseline`` or ``control``: their number, mean and standard
    deviation by place (``baseline_n``, ``baseline_mean``, ``baseline_std``).
    """
    done = members[members["is_done"]]
    numbers = done[name].map(accuracy).groupby(done["place"]).agg(["count", "mean", "std"])
    return numbers.set_axis([f"{name}_n", f"{name}_mean", f"{name}_std"], axis=1)


def completed(readings: pd.DataFrame, margins: Mapping[str, float]) -> pd.DataFrame:
    """The readings as ``judged`` takes them: n is 0 where there are no values, and the state says why."""
    is_empty = readings["n"].isna()
    no_values = (
        "no " + readings["metric"] + " of stage " + readings["stage"] + " and rule " + readings["rule"]
    )
    has_runs = is_empty & (readings["state"] == "")
    completed = readings.assign(
        n=readings["n"].fillna(0).astype(int),
        margin=readings["study"].map(margins),
        state=readings["state"].mask(has_runs, "not_applicable"),
        state_reason=readings["state_reason"].mask(has_runs, no_values),
        draws=readings["draws"].fillna(0),
        s_d_source=readings["s_d_source"].fillna(UNKNOWN).mask(is_empty),
    )
    others = [name for name in EVIDENCE if name.startswith(("control", "baseline"))]
    completed.loc[is_empty, ["s_d", "s_d_freedom", "partitions", *others]] = np.nan
    return completed


def cells_frame(cells: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """The columns ``COLUMNS`` of graded cells, in their order."""
    cells = cells.merge(costs, on="place", how="left").sort_values("order", ignore_index=True)
    is_measured = cells["n"] > 0
    missing = cells["missing"].where(is_measured, "")
    is_tuned = cells["tuned"].eq(True) & cells["main"]
    by_setting = cells["setting"].eq("").map({True: DEFAULT, False: OTHER})
    shown = cells.assign(
        reason=joined(cells["reason"].astype(object), missing),
        no_grade=cells["reason"],
        missing=missing,
        tuning=by_setting.mask(is_tuned, TUNED),
        origin=cells["origin"].fillna(""),
        order=range(len(cells)),
        **{name: cells[name].where(is_measured) for name in ("seconds", "megabytes", "peak_mib")},
    )
    kinds = {name: "object" if kind == "string" else kind for name, kind in COLUMNS.items()}
    return shown[list(COLUMNS)].astype(kinds)  # as in with_text_as_objects
