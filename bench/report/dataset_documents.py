"""The statistics of data sets that a study's papers print beside those that come with the suite.

The measured ones are those of ``results/dataset_statistics.json``, which ``bench data stats --json`` prints.
"""

from __future__ import annotations

import json
import math
from functools import cache
from importlib.resources import files

import pandas as pd
from scipy.special import stdtrit

from bench.frames.verdicts import LEVEL, STATES
from bench.report.document import Document
from bench.report.table import listing
from bench.studies.dataset_tables import PRINTED, WHOLE, published_statistics, texts
from bench.studies.study import Study

SHARES = ("clustering", "heterogeneity", "training_ratio")
"""Quantities that are no counts."""

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


@cache
def shipped_statistics() -> pd.DataFrame:
    """The measured statistics that come with the suite, a frame of ``bench.studies.dataset_tables``."""
    file = files("bench.results") / "dataset_statistics.json"
    return pd.DataFrame(json.loads(file.read_text(encoding="utf-8")))


def judged_statistics(study: Study) -> pd.DataFrame:
    """The statistics that a study's papers print, a row each: the columns of measured ones, table, verdict.

    There is none of a study that describes no data sets.
    """
    table = study.data_table
    if table is None:
        return pd.DataFrame()
    values = pd.concat([published_statistics(paper, study.published) for paper in study.papers])
    measured = shipped_statistics()
    measured = table.printed(measured[measured["paper"] == table.paper]).drop_duplicates(PRINTED)
    rows = measured.drop(columns=["published", "paper"]).merge(values, on=PRINTED, how="right")
    for name in ("dataset", "scenario"):
        rows[name] = rows[name].fillna(rows[f"printed_{name}"])
    return rows.assign(verdict=verdicts(rows, table.partitions))


def verdicts(rows: pd.DataFrame, partitions: int) -> pd.Series[str]:
    """The verdicts on statistics; a deviation is of ``partitions`` draws."""
    difference = (rows["measured"] - rows["published"]).astype(float)
    half_unit = rows["quantity"].isin(SHARES).map({True: 0.5e-3, False: 0.5}) * (1 + 1e-9)
    tolerance = CLOSE * rows["published"].abs().where(rows["scenario"] != WHOLE[0], 0.0)
    if partitions:
        quantile = float(stdtrit(partitions - 1, (1 + LEVEL) / 2))
        one_more = quantile * rows["deviation"].astype(float) * math.sqrt(1 + 1 / partitions)
        tolerance = one_more.fillna(tolerance)
    verdict = pd.Series("below", rows.index).mask(difference > 0, "above")
    verdict = verdict.mask(difference.abs() <= tolerance, "compatible")
    verdict = verdict.mask(difference.abs() <= half_unit, "reproduced")
    return verdict.mask(rows["measured"].isna(), STATES["no_data"])


def dataset_document(study: Study) -> Document | None:
    """The document of a study that describes its data sets; None of one whose papers print no statistics."""
    rows = judged_statistics(study)
    if rows.empty:
        return None
    words = texts(rows)
    labels = rows["dataset"].map(study.title_of) + ", " + words["clients"] + ", " + words["quantity"]
    shown = rows.set_index(labels.rename("Statistic"))
    views = []
    forms = {"measured": ",.5g", "published": ",.5g"}
    for (paper, table), part in shown.groupby(["paper", "table"], sort=False):
        name = f"{paper}_{table}".lower().replace(" ", "_")
        title = f"{study.paper_title(str(paper))}, {table}"
        views.append(listing(name, title, part[["measured", "published", "verdict"]], forms))
    is_whole = rows["printed_scenario"] == WHOLE[0]
    record = rows.assign(
        dataset=rows["printed_dataset"],
        scenario=rows["printed_scenario"],
        clients=rows["clients"].astype(str).mask(is_whole, ""),
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
