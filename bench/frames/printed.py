"""What papers print beside cells, and whether the runs can be compared to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
import pandas as pd

from bench.frames.stored_runs import rows_of
from bench.studies.experiment import Plans, Target
from bench.studies.published import Published, PublishedRuns, published
from bench.studies.settings import Column, Settings, difference_text
from bench.studies.study import Study

EVERYBODY = {"protocol.participation": 1.0}
"""What papers mean that state nothing else: all clients train in every round."""

PRINTED = ["paper", "printed", "published_mean", "published_std", "status"]
PRINTED += ["n_p", "redrawn", "population", "bar", "published_on"]
"""Columns that ``beside_published`` adds."""


def beside_published(
    studies: Mapping[str, Study], plans: Plans, cells: pd.DataFrame, settings: Mapping[int, Settings]
) -> pd.DataFrame:
    """The cells with the first value that is printed of each: targets in their order, settings in theirs.

    paper, printed               the paper and the number of the value in ``PAPER.csv``, from 0
    published_mean, published_std, status   as in ``Published``
    n_p, redrawn, population     as in ``PublishedRuns``, of cells with numbers
    bar                          why the value is no target for the cell's runs; "": it is one
    published_on                 titles of the only data sets on which the tables have the line, point and
                                 measure of a cell with numbers; "": others, or none
    """
    values: dict[tuple[Any, ...], tuple[int, Published]] = {}
    datasets: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for study in studies.values():
        for paper in study.papers:
            for number, value in enumerate(published(paper, study.published)):
                what = (study.name, paper, value.table, value.method, value.setting, value.metric)
                values[*what, value.dataset, value.scenario, value.clients] = number, value
                datasets[what].add(value.dataset)
    targets = {
        (name, experiment.name, number): comparison.targets
        for name, experiments in plans.items()
        for experiment in experiments
        for number, comparison in enumerate(experiment.comparisons)
    }
    rows: list[tuple[Any, ...]] = []
    for cell in rows_of(cells):
        study, column = studies[cell.study], Column(cell.dataset, cell.scenario, cell.clients)
        dataset, scenario, clients = study.printed_column(column)
        where = cell.point_object.datasets.get(cell.dataset, dataset), scenario, clients
        asked = [*_asked(cell, targets[cell.study, cell.document, cell.comparison_number])]
        found = next((values[*what, *where] for what in asked if (*what, *where) in values), None)
        printed: tuple[Any, ...] = (np.nan,) * 5
        runs, bar, published_on = PublishedRuns(1), "", ""
        if found:
            number, value = found
            printed = value.paper, number, value.mean, value.std, value.status
        if found and not cell.state:
            runs = study.published_runs(value, column)
            bar = cell.not_comparable or _bar(study, value, column, cell, settings[cell.place])
        elif not cell.state:
            published_on = _titles(study, cell.dataset, {one for what in asked for one in datasets[what]})
        rows.append((*printed, *astuple(runs), bar, published_on))
    return cells.join(pd.DataFrame(rows, cells.index, PRINTED))


def _asked(cell: Any, targets: tuple[Target, ...]) -> Iterator[tuple[str, ...]]:
    """Study, paper, table, method, setting and metric of the values that a cell may stand beside."""
    for target in targets:
        for base in cell.line_object.printed:
            setting = ";".join(filter(None, (base, cell.point_object.printed, cell.measure_printed)))
            yield cell.study, target.paper, target.table, cell.row.published_name, setting, cell.metric


def _titles(study: Study, dataset: str, datasets: set[str]) -> str:
    """Titles of published data sets; none where the cell's own is one of them, with other clients."""
    if study.datasets.get(dataset, dataset) in datasets:
        return ""
    # Of several data sets that one name stands for, the main tables' own gives it its title.
    own = {column.dataset for column in study.columns}
    title_of = {study.datasets.get(one, one): study.title_of(one) for one in own}
    return ", ".join(sorted(title_of.get(one, study.title_of(one)) for one in datasets))


def _bar(study: Study, target: Published, column: Column, cell: Any, settings: Settings) -> str:
    """Why a published value is no target for the runs of a cell."""
    varied = {*cell.line_object.settings, *cell.point_object.settings}
    stated = {**EVERYBODY, **study.paper_protocol(target, column)}
    paper_has = {key: value for key, value in stated.items() if key in settings and key not in varied}
    run = {key: settings[key] for key in paper_has}
    difference = difference_text(run, paper_has)
    if difference:
        difference = (
            f"protocol differs: run with {difference}, the paper has {difference_text(paper_has, run)}"
        )
    return study.barred(target, column, settings) or difference


def readings_of(cells: pd.DataFrame) -> pd.DataFrame:
    """A row a cell and reading: a published value may be that of several stages."""
    may_be_any = cells["printed"].notna() & (cells["bar"] == "") & (cells["state"] == "")
    others = cells[may_be_any]
    lines = zip(others["line_object"], others["row"], others["stage"], strict=True)
    stages = [
        [] if line.stage else [stage for stage in row.printed_stages if stage != own]
        for line, row, own in lines
    ]
    others = others.assign(stage=pd.Series(stages, others.index, dtype=object)).explode("stage")
    readings = pd.concat([cells, others.dropna(subset="stage")]).sort_values("order", kind="stable")
    return readings.reset_index(drop=True)
