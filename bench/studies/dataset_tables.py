"""Statistics of data sets, measured and as papers print them.

``scripts/measure_statistics.py`` writes the measured statistics that come with the suite. The whole data set
has the scenario ``global`` and one client. ``deviation``: standard deviation (ddof 1) over partitions.
"""

from __future__ import annotations

import json
from importlib.resources import files

import pandas as pd

from bench.studies.published import published
from bench.studies.study import Study
from bench.studies.wording import number

PRINTED = ["printed_dataset", "printed_scenario", "clients", "quantity"]
"""Columns that identify a published statistic."""

PARTITIONS = 10
"""Number of partitions behind every mean with a deviation."""


def shipped_statistics() -> pd.DataFrame:
    """The statistics that come with the suite."""
    text = (files("bench.results") / "dataset_statistics.json").read_text(encoding="utf-8")
    return pd.DataFrame(json.loads(text))


def printed_statistics(study: Study) -> pd.DataFrame:
    """The statistics of data sets that a study's papers print: the rows ``dataset_stats`` and
    ``hyperedge_stats`` of their files. Columns: ``PRINTED``, paper, table, published.
    """
    rows = [
        (row.dataset, row.scenario, row.clients or 1, row.metric, row.paper, row.table, row.mean)
        for paper in study.papers
        for row in published(paper, study.published)
        if row.study in ("dataset_stats", "hyperedge_stats") and row.mean is not None
    ]
    return pd.DataFrame(rows, columns=[*PRINTED, "paper", "table", "published"])


def with_printed_names(rows: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Measured statistics with the columns ``PRINTED``."""
    return rows.assign(
        printed_dataset=rows["dataset"].replace(dict(study.datasets)),
        printed_scenario=rows["scenario"].replace(dict(study.scenarios)),
    )


def texts(rows: pd.DataFrame) -> pd.DataFrame:
    """Statistics in words: the columns clients, quantity, measured, published."""
    words = rows[["measured", "published"]].map(_number)
    words.insert(0, "quantity", rows["quantity"].str.replace("_", " "))
    clients = rows["scenario"] + " " + rows["clients"].astype(str)
    words.insert(0, "clients", clients.mask(rows["scenario"] == "global", "whole"))
    return words


def _number(value: float) -> str:
    """Format a count without decimals, a mean of counts with one decimal, a share with three."""
    return number(value, ".3f" if 0 < value < 1 else ",.1f" if value % 1 else ",.0f")
