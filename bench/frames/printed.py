"""What papers print beside cells, and whether the runs can be compared to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import pandas as pd

from bench.frames.stored_runs import WHERE, rows_of
from bench.studies.experiment import Plans
from bench.studies.published import Published, published
from bench.studies.settings import Column, Settings, difference_text
from bench.studies.study import Study

PUBLISHED = ["study", "paper", "printed_table", "printed_method", "printed_setting", "metric"]
"""What a published value is looked up by, beside where it was measured."""

PRINTED_WHERE = ["printed_dataset", "printed_scenario", "printed_clients"]

VALUE = ["paper", "printed", "published_mean", "published_std", "status"]
"""What cells have of a published value."""

PRINTED_NAMES = {
    **{name: f"printed_{name}" for name in ("table", "dataset", "scenario", "clients", "method", "setting")},
    **{name: f"published_{name}" for name in ("mean", "std")},
}
"""Names of a published value's fields beside cells."""

EVERYBODY = {"protocol.participation": 1.0}
"""What papers mean that state nothing else: all clients train in every round."""


def published_frame(studies: Mapping[str, Study]) -> pd.DataFrame:
    """Every value that the studies' papers print: what it is looked up by (``PUBLISHED``, ``PRINTED_WHERE``),
    printed (its number in ``PAPER.csv``, from 0), published_mean, published_std, status.
    """
    rows = [
        (name, number, value)
        for name, study in studies.items()
        for paper in study.papers
        for number, value in enumerate(published(paper, study.published))
    ]
    values = pd.DataFrame([value for _, _, value in rows]).rename(columns=PRINTED_NAMES)
    values["study"] = [name for name, _, _ in rows]
    values["printed"] = [number for _, number, _ in rows]
    numbers = ["printed_clients", "published_mean", "published_std"]
    return values[[*PUBLISHED, *PRINTED_WHERE, *VALUE[1:]]].astype(dict.fromkeys(numbers, float))


def beside_published(studies: Mapping[str, Study], plans: Plans, cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with the first value that is printed of each: targets in their order, settings in theirs.

    New columns: paper, printed, published_mean, published_std, status, and published_on, the titles of the
    only data sets on which the tables have this line, point and measure.
    """
    targets = pd.DataFrame(
        [
            {"study": name, "document": experiment.name, "comparison_number": number, "target": target}
            for name, experiments in plans.items()
            for experiment in experiments
            for number, comparison in enumerate(experiment.comparisons)
            for target in comparison.targets
        ]
    )
    if targets.empty:
        nothing = pd.Series(pd.NA, cells.index)
        numbers = dict.fromkeys(VALUE[1:4], math.nan)
        return cells.assign(paper=nothing, status=nothing, **numbers, published_on="")
    printed = published_frame(studies)
    targets["paper"] = [target.paper for target in targets["target"]]
    targets["printed_table"] = [target.table for target in targets["target"]]
    asked = cells.merge(targets, on=["study", "document", "comparison_number"])
    asked["printed_setting"] = [
        [";".join(filter(None, (base, point.printed, measure))) for base in line.printed]
        for line, point, measure in asked[["line_object", "point_object", "measure_printed"]].itertuples(
            index=False
        )
    ]
    asked["printed_method"] = [row.published_name for row in asked["row"]]
    places = asked[["study", *WHERE, "point_object"]]
    where = [_printed_where(studies[row.study], row) for row in rows_of(places)]
    asked[PRINTED_WHERE] = pd.DataFrame(where, asked.index).astype({2: float})
    asked = asked[["order", "target", "dataset", *PUBLISHED[:3], *PRINTED_WHERE, *PUBLISHED[3:]]]
    asked = asked.explode("printed_setting", ignore_index=True)
    found = asked.merge(printed, on=[*PUBLISHED, *PRINTED_WHERE]).drop_duplicates("order")
    cells = cells.merge(found[["order", *VALUE]], on="order", how="left")
    without_value = asked[asked["order"].isin(cells.loc[cells["printed"].isna(), "order"])]
    titles = _published_elsewhere(studies, without_value, printed)
    cells["published_on"] = (
        cells["order"].map(titles).astype(object).fillna("").where(cells["state"] == "", "")
    )
    return cells


def _printed_where(study: Study, row: Any) -> tuple[str, str, int | None]:
    """Data set, scenario and clients by which a paper has a place."""
    dataset, *rest = study.printed_column(Column(row.dataset, row.scenario, row.clients))
    return row.point_object.datasets.get(row.dataset, dataset), *rest


def _published_elsewhere(
    studies: Mapping[str, Study], asked: pd.DataFrame, printed: pd.DataFrame
) -> dict[Any, str]:
    """Cell's order -> titles of the data sets on which the published tables have its line, point and measure;
    none where the column's own is one of them, with other clients.
    """
    found = asked.drop(columns=PRINTED_WHERE).merge(printed, on=PUBLISHED)
    titles: dict[Any, str] = {}
    for order, part in found.groupby("order"):
        study, dataset = studies[part["study"].iloc[0]], part["dataset"].iloc[0]
        on = set(part["printed_dataset"])
        if study.datasets.get(dataset, dataset) not in on:
            # Of several data sets that one name stands for, the main tables' own gives it its title.
            own = {column.dataset for column in study.columns}
            title_of = {study.datasets.get(one, one): study.title_of(one) for one in own}
            titles[order] = ", ".join(sorted(title_of.get(one, study.title_of(one)) for one in on))
    return titles


def printed_runs(
    studies: Mapping[str, Study], cells: pd.DataFrame, settings: Mapping[int, Settings]
) -> pd.DataFrame:
    """What is known of the runs behind the published value of every measured cell.

    n_p, redrawn, population   as in ``PublishedRuns``
    bar                        why the value is no target for the cell's runs; "": it is one
    """
    known = ["place", *WHERE, "line_object", "point_object", "state", "not_comparable"]
    rows = []
    for row in rows_of(cells[["study", "paper", "printed", *known]]):
        if pd.isna(row.printed) or row.state:
            rows.append((1, False, False, ""))
            continue
        study, column = studies[row.study], Column(row.dataset, row.scenario, row.clients)
        target = published(row.paper, study.published)[int(row.printed)]
        runs = study.published_runs(target, column)
        bar = row.not_comparable or _bar(study, target, column, row, settings[row.place])
        rows.append((*astuple(runs), bar))
    return pd.DataFrame(rows, cells.index, ["n_p", "redrawn", "population", "bar"])


def _bar(study: Study, target: Published, column: Column, row: Any, settings: Settings) -> str:
    barred = study.barred(target, column, settings)
    if barred:
        return barred
    varied = {*row.line_object.settings, *row.point_object.settings}
    stated = {**EVERYBODY, **study.paper_protocol(target, column)}
    paper_has = {key: value for key, value in stated.items() if key in settings and key not in varied}
    run = {key: settings[key] for key in paper_has}
    run_difference = difference_text(run, paper_has)
    if not run_difference:
        return ""
    return f"protocol differs: run with {run_difference}, the paper has {difference_text(paper_has, run)}"


def readings_of(cells: pd.DataFrame) -> pd.DataFrame:
    """A row a cell and reading, numbered by ``reading``: a published value may be that of several stages."""
    may_be_any = cells["printed"].notna() & (cells["bar"] == "") & (cells["state"] == "")
    others = cells[may_be_any]
    lines = zip(others["line_object"], others["row"], others["stage"], strict=True)
    stages = [
        [] if line.stage else [stage for stage in row.printed_stages if stage != own]
        for line, row, own in lines
    ]
    others = others.assign(stage=pd.Series(stages, others.index, dtype=object)).explode("stage")
    readings = pd.concat([cells, others.dropna(subset="stage")]).sort_values("order", kind="stable")
    return readings.reset_index(drop=True).rename_axis("reading").reset_index()
