"""A study's tables of data sets as a document: published statistics beside measured ones, with verdicts.

The measured ones are those of ``results/dataset_statistics.json``, which ``bench data stats --json`` prints.
"""

from __future__ import annotations

import json
import math
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from bench.frames.verdicts import LEVEL, STATES
from bench.report.document import Document
from bench.report.table import listing
from bench.studies.dataset_tables import SHARES, WHOLE, published_statistics, settings
from bench.studies.study import Study

CLOSE = 0.02
"""Share by which a statistic of drawn clients may be off where only one draw was measured."""

LEGEND = (
    "Reproduced: equal in all printed digits, which are three decimals of shares and whole numbers else. "
    "Compatible, of drawn clients alone: in the 95 % interval in which one more draw would lie; where one "
    f"draw was measured, at most {100 * CLOSE:g} % off. Else above or below. The margin of accuracies has no "
    "say here."
)

RECORD = ["paper", "table", "dataset", "scenario", "clients", "quantity", "measured", "deviation"]
RECORD += ["published", "verdict"]
"""Columns of the CSV file."""


def judged(rows: pd.DataFrame, partitions: int) -> list[str]:
    """The verdicts on statistics, empty without a published value; a deviation is of ``partitions`` draws."""
    difference = (rows["measured"] - rows["published"]).to_numpy(float)
    unit = rows["quantity"].isin(SHARES).map({True: 1e-3, False: 1.0}).to_numpy(float)
    tolerance = CLOSE * rows["published"].abs().where(rows["scenario"] != WHOLE[0], 0.0)
    if partitions > 1:
        quantile = float(stdtrit(partitions - 1, (1 + LEVEL) / 2))
        one_more = quantile * rows["deviation"].astype(float) * math.sqrt(1 + 1 / partitions)
        tolerance = one_more.fillna(tolerance)
    conditions: list[Any] = [
        rows["published"].isna(),
        rows["measured"].isna(),
        abs(difference) <= unit / 2 * (1 + 1e-9),
        abs(difference) <= tolerance.to_numpy(float),
        difference > 0,
    ]
    names: list[Any] = ["", STATES["no_data"], "reproduced", "compatible", "above"]
    return [str(name) for name in np.select(conditions, names, "below")]


@cache
def shipped_statistics() -> pd.DataFrame:
    """The measured statistics that come with the suite, a frame of ``bench.studies.dataset_tables``."""
    rows = json.loads((files("bench.results") / "dataset_statistics.json").read_text(encoding="utf-8"))
    return pd.DataFrame(rows)


def dataset_document(study: Study) -> Document | None:
    """The document of a study that describes its data sets; None of one whose papers print no statistics."""
    description = study.data_table
    if description is None:
        return None
    values = pd.concat([published_statistics(paper, study.published) for paper in study.papers])
    if values.empty:
        return None
    measured = shipped_statistics()
    rows = description.beside(measured[measured["paper"] == description.paper], values, "right")
    rows["verdict"] = judged(rows, description.partitions)
    titles, quantities = rows["dataset"].map(study.title_of), rows["quantity"].str.replace("_", " ")
    labels = titles + ", " + settings(rows) + ", " + quantities
    texts = rows[["measured", "published", "verdict"]].set_index(labels.rename("Statistic"))
    views = []
    for paper, table in dict.fromkeys(zip(rows["paper"], rows["table"], strict=True)):
        is_here = (rows["paper"] == paper) & (rows["table"] == table)
        title = f"{study.paper_title(paper)}, {table}"
        forms = {"measured": ",.5g", "published": ",.5g"}
        views.append(
            listing(f"{paper}_{table}".lower().replace(" ", "_"), title, texts[is_here.to_numpy()], forms)
        )
    record = rows.assign(
        dataset=rows["printed_dataset"],
        scenario=rows["printed_scenario"],
        clients=rows["clients"].astype(str).mask(rows["printed_scenario"] == WHOLE[0], ""),
    )
    return Document(
        study,
        "datasets",
        "data sets",
        "Statistics of the data sets as papers print them beside those measured here.",
        caption=(
            "Statistics of the data sets as the papers print them. Counts of clients are means over them, "
            "heterogeneity is a median over pairs.",
            "Measured by 'bench data stats --json', from files; what the report reads comes with the suite.",
        ),
        views=tuple(views),
        fine_print=(LEGEND,),
        records={f"{study.name}_datasets": record[RECORD]},
    )
