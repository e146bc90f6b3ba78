"""A study's tables of data sets as a document: published statistics beside measured ones, with verdicts.

The measured ones are those of ``results/dataset_statistics.json``, which ``bench data stats --json`` prints.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import groupby

import pandas as pd
from scipy.special import stdtrit

from bench.frames.verdicts import LEVEL, STATES
from bench.report.document import Document
from bench.report.table import listing
from bench.studies.dataset_tables import SHARES, Statistic, published_rows
from bench.studies.study import Study

CLOSE = 0.02
"""Share by which a statistic of drawn clients may be off where only one draw was measured."""

LEGEND = (
    "Reproduced: equal in all printed digits, which are three decimals of shares and whole numbers else. "
    "Compatible, of drawn clients alone: in the 95 % interval in which one more draw would lie; where one "
    f"draw was measured, at most {100 * CLOSE:g} % off. Else above or below. The margin of accuracies has no "
    "say here."
)


def judge_statistic(row: Statistic, partitions: int) -> str:
    """The verdict on a statistic, empty without a published value; a deviation is of ``partitions`` draws."""
    if row.published is None:
        return ""
    if row.measured is None:
        return STATES["no_data"]
    difference = row.measured - row.published
    unit = 1e-3 if row.quantity in SHARES else 1.0
    if abs(difference) <= unit / 2 * (1 + 1e-9):
        return "reproduced"
    tolerance = 0.0 if row.scenario == "global" else CLOSE * abs(row.published)
    if row.deviation is not None and partitions > 1:
        quantile = float(stdtrit(partitions - 1, (1 + LEVEL) / 2))
        tolerance = quantile * row.deviation * math.sqrt(1 + 1 / partitions)
    return "compatible" if abs(difference) <= tolerance else "above" if difference > 0 else "below"


@cache
def shipped_statistics() -> tuple[Statistic, ...]:
    """The measured statistics that come with the suite."""
    rows = json.loads((files("bench.results") / "dataset_statistics.json").read_text(encoding="utf-8"))
    return tuple(Statistic(**row) for row in rows)


def dataset_document(study: Study) -> Document | None:
    """The document of a study that describes its data sets; None of one whose papers print no statistics."""
    description = study.data_table
    if description is None:
        return None
    targets = [row for paper in study.papers for row in published_rows(paper, study.published)]
    if not targets:
        return None
    statistics: dict[tuple[str, str, int, str], Statistic] = {}
    for row in shipped_statistics():
        if row.paper == description.paper:
            name = description.names.get(row.dataset, row.dataset)
            scenario = description.scenarios.get(row.scenario, row.scenario)
            statistics.setdefault((name, scenario, row.clients, row.quantity), row)
    records, views = [], []
    for (paper, table), values in groupby(targets, lambda target: (target[0].paper, target[0].table)):
        rows = []
        for value, mean in values:
            key = value.dataset, value.scenario, value.clients or 1, value.metric
            row = replace(statistics.get(key, Statistic(*key, None, None)), published=mean)
            verdict, measured = judge_statistic(row, description.partitions), row.measured
            difference = None if measured is None or not mean else 100 * (measured / mean - 1)
            texts = {
                "Measured": "-" if measured is None else _text(measured, value.metric),
                "Published": _text(mean, value.metric),
                "Difference": "-" if difference is None else f"{difference:+.1f} %",
                "Verdict": verdict,
            }
            title = study.title_of(row.dataset)
            rows.append((f"{title}, {row.setting}, {value.metric.replace('_', ' ')}", texts))
            records.append(
                {
                    "paper": paper,
                    "table": table,
                    "dataset": value.dataset,
                    "scenario": value.scenario,
                    "clients": str(value.clients or ""),
                    "quantity": value.metric,
                    "measured": measured,
                    "deviation": row.deviation,
                    "published": mean,
                    "verdict": verdict,
                }
            )
        name = f"{paper}_{table}".lower().replace(" ", "_")
        views.append(listing(name, f"{study.paper_title(paper)}, {table}", "Statistic", rows))
    caption = (
        "Statistics of the data sets as the papers print them. Counts of clients are means over them, "
        "heterogeneity is a median over pairs.",
        "Measured by 'bench data stats --json', from files; what the report reads comes with the suite.",
    )
    return Document(
        study,
        "datasets",
        "data sets",
        "Statistics of the data sets as papers print them beside those measured here.",
        caption,
        tuple(views),
        tuple(views),
        fine_print=(LEGEND,),
        records={f"{study.name}_datasets": pd.DataFrame(records)},
    )


def _text(value: float, quantity: str) -> str:
    """A statistic with the digits that papers print."""
    return f"{value:.3f}" if quantity in SHARES else f"{value:,.0f}"
