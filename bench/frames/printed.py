"""The cells of the studies' tables, and the published values beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from bench.frames.stored_runs import parts_of, rows_of
from bench.metric_names import Metric
from bench.studies.experiment import Plans
from bench.studies.measures import Measure, measure_of_metric
from bench.studies.published import Published, PublishedRuns, published
from bench.studies.settings import Column, Settings, difference_text
from bench.studies.study import Study

PRINTED = [
    *("paper", "printed", "published_mean", "published_std", "status"),  # from ``Published``
    *("n_p", "redrawn", "population"),  # from ``PublishedRuns``; only for cells with numbers
    "bar",  # why the value is no target for the cell's runs; "": it is one
    "published_on",  # for cells with numbers: other data sets, if the value is printed on these alone; or ""
]
"""Columns of the published value of a cell."""

Printed = dict[tuple[str | int | None, ...], tuple[int, Published]]
"""Data set, scenario and clients as the paper names them -> row number in ``PAPER.csv``, and the value."""


def asked_cells(
    studies: Mapping[str, Study],
    plans: Plans,
    places: pd.DataFrame,
    settings: Mapping[int, Settings],
    metric: Metric,
) -> tuple[pd.DataFrame, list[Measure]]:
    """Return one cell per place, measure and comparison, in the order of the tables; and the measures by
    number. If several published values fit a cell, it takes the first, in the order of the targets, then of
    the line's settings.
    """
    printed: dict[tuple[str, ...], Printed] = defaultdict(dict)
    for study in studies.values():
        for paper in study.papers:
            for number, value in enumerate(published(paper, study.published)):
                what = study.name, paper, value.table, value.method, value.setting, value.metric
                printed[what][value.dataset, value.scenario, value.clients] = number, value
    measures: dict[Measure, int] = {}
    tables = dict(parts_of(places, ["study", "document"]))
    parts = []
    for study, experiment in ((studies[name], one) for name in plans for one in plans[name]):
        declared = experiment.measures or study.measures
        known = list(filter(None, (measure_of_metric(measure, metric) for measure in declared)))
        if all(measure.is_extra for measure in known) or (study.name, experiment.name) not in tables:
            continue
        rows = []
        places_here = list(rows_of(tables[study.name, experiment.name]))
        comparisons = enumerate(experiment.comparisons.items())
        for (number, (label, targets)), (position, measure) in product(comparisons, enumerate(known)):
            reading, kind = measure.reading or study.primary, measure.metric or measure.name
            is_named = position > 0 and not measure.is_extra
            cell = {
                "comparison_number": number,
                "measure_number": measures.setdefault(measure, len(measures)),
                "position": position,
                "table": label + (f" ({measure.title})" if is_named else ""),
                "measure": measure.name,
                "metric": kind,
                "primary": not measure.is_extra,
                "rule": reading.rule,
            }
            bar = experiment.reduced or measure.not_comparable_reason
            for place in places_here:
                # A line with its own stage is shown for readings of that stage and of the primary stage.
                stage = place.stage or reading.stage
                if reading.stage not in (stage, study.primary.stage):
                    continue
                values = []
                for (paper, table), base in product(targets, place.line_object.printed):
                    setting = ";".join(filter(None, (base, place.point_object.printed, measure.printed)))
                    method = place.row.published or place.row.method
                    what = study.name, paper, table, method, setting, kind
                    values.append(printed[what])
                beside = _beside(study, place, values, settings[place.place], bar)
                rows.append({**cell, "place": place.place, "stage": stage, "beside": beside})
        order = ["column_number", "inner", "position"]
        if experiment.main:
            order = ["position", "line_number", "column_number"]
        part = pd.DataFrame(rows).merge(places.drop(columns="stage"), on="place")
        parts.append(part.sort_values(["comparison_number", *order]))
    cells = pd.concat(parts, ignore_index=True)
    cells[PRINTED] = pd.DataFrame(cells.pop("beside").tolist(), columns=PRINTED)
    return cells.assign(order=cells.index), list(measures)


def _beside(
    study: Study, place: Any, values: Iterable[Printed], settings: Settings, bar: str
) -> tuple[Any, ...]:
    """Return ``PRINTED`` for the first of the values printed for a place. ``bar``: why it is no target."""
    column = Column(place.dataset, place.scenario, place.clients)
    dataset, scenario, clients = study.printed_column(column)
    here = place.point_object.datasets.get(place.dataset, dataset), scenario, clients
    unknown = astuple(PublishedRuns(1))
    found = next((one[here] for one in values if here in one), None)
    if found is None:
        others = {str(where[0]) for one in values for where in one}
        if place.state or dataset in others:  # the cell's own data set, with other clients
            others = set()
        # If several data sets share a printed name, the one in the main tables gives the title.
        own = {column.dataset for column in study.columns}
        titles = {study.datasets.get(one, one): study.title_of(one) for one in own}
        published_on = ", ".join(sorted(titles.get(one, study.title_of(one)) for one in others))
        return *(np.nan,) * 5, *unknown, "", published_on
    number, value = found
    facts = value.paper, number, value.mean, value.std, value.status
    if place.state:
        return *facts, *unknown, "", ""
    runs = astuple(study.published_runs(value, column))
    return *facts, *runs, bar or _bar(study, value, column, place, settings), ""


def _bar(study: Study, target: Published, column: Column, place: Any, settings: Settings) -> str:
    """Return why a published value is no target for the runs of a place; empty if it is one."""
    reason = study.barred(target, column, settings)
    if reason:
        return reason
    varied = {*place.line_object.settings, *place.point_object.settings}
    # If a paper does not state the participation, all clients train in every round.
    stated = {"protocol.participation": 1.0, **study.paper_protocol(target, column)}
    paper_has = {key: value for key, value in stated.items() if key in settings and key not in varied}
    run = {key: settings[key] for key in paper_has}
    difference = difference_text(run, paper_has)
    if not difference:
        return ""
    return f"protocol differs: run with {difference}, the paper has {difference_text(paper_has, run)}"


def readings_of(cells: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cell and reading, sorted by cell. A published value may fit several stages."""
    may_be_any = cells["printed"].notna() & (cells["bar"] == "") & (cells["state"] == "")
    others = []
    for cell in rows_of(cells[may_be_any]):
        stages = () if cell.line_object.stage else cell.row.printed_stages
        others += [(cell.Index, stage) for stage in stages if stage != cell.stage]
    numbers, stages = zip(*others, strict=True) if others else ((), ())
    readings = pd.concat([cells, cells.loc[list(numbers)].assign(stage=list(stages))])
    return readings.sort_values("order", kind="stable", ignore_index=True)
