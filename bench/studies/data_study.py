"""A study of a data set that no study has: whatever was run on it, without published values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pandas as pd

from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.grids.grid import Line
from bench.studies.experiment import Comparison, Experiment
from bench.studies.settings import Column, Reading
from bench.studies.study import Study


def data_study(dataset: str, columns: Iterable[Column], methods: Collection[str]) -> type[Study]:
    """A study named after a data set, with one main table: a line for each method, in the columns given.

    A method that is not installed has no line of the study's; the table finds its runs all the same.
    """
    beside, places = (Comparison("measured"),), tuple(sorted(columns))
    content = {
        "name": dataset,
        "title": DATASETS.all()[dataset].title if dataset in DATASETS.all() else dataset,
        "grids": (),
        "lines": tuple(Line(name, kind.title) for name, kind in METHODS.all().items() if name in methods),
        "experiments": (Experiment("runs", "All methods", beside, main=True, columns=places),),
        "primary": Reading("trained", "best_val"),
        "readings": (Reading("received", "best_val"),),
    }
    return type("DataStudy", (Study,), content)


def with_data_studies(
    studies: Mapping[str, type[Study]], datasets: Iterable[str], runs: pd.DataFrame
) -> dict[str, type[Study]]:
    """The studies, and one for each of the data sets that was run and that none of them has a table of."""
    known = {column.dataset for kind in studies.values() for column in kind().columns}
    found = dict(studies)
    for dataset in datasets:
        rows = runs[runs["dataset"] == dataset]
        if dataset not in known and not rows.empty:
            places = zip(rows["dataset"], rows["scenario"], rows["clients"], strict=True)
            columns = {Column(*place) for place in places}
            found[dataset] = data_study(dataset, columns, set(rows["method"]))
    return found
