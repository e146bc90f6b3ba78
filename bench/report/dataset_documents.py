"""Statistics of data sets: the papers' printed numbers beside the suite's measurements."""

from __future__ import annotations

import math

import pandas as pd
from scipy.special import stdtrit

from bench.frames.verdicts import LEVEL, STATES
from bench.report.document import Document, listing
from bench.studies.dataset_tables import (
    PARTITIONS,
    PRINTED,
    printed_statistics,
    shipped_statistics,
    texts,
    with_printed_names,
)
from bench.studies.study import Study

SHARES = ("clustering", "heterogeneity", "training_ratio")
"""Quantities that are shares, not counts."""

CLOSE = 0.02
"""Relative tolerance of a statistic of drawn clients if only one draw was measured."""

LEGEND = (
    "Reproduced: equal in all printed digits (three decimals of shares, whole numbers else). Compatible, of "
    "drawn clients alone: in the 95 % interval in which one more draw would lie, or where one draw was "
    f"measured, at most {100 * CLOSE:g} % off. Else above or below."
)


def verdicts(rows: pd.DataFrame) -> pd.Series[str]:
    """The verdicts on statistics."""
    difference = (rows["measured"] - rows["published"]).astype(float)
    half_unit = rows["quantity"].isin(SHARES).map({True: 0.5e-3, False: 0.5}) * (1 + 1e-9)
    tolerance = CLOSE * rows["published"].abs().where(rows["scenario"] != "global", 0.0)
    quantile = float(stdtrit(PARTITIONS - 1, (1 + LEVEL) / 2))
    one_more = quantile * rows["deviation"].astype(float) * math.sqrt(1 + 1 / PARTITIONS)
    tolerance = one_more.fillna(tolerance)
    verdict = pd.Series("below", rows.index).mask(difference > 0, "above")
    verdict = verdict.mask(difference.abs() <= tolerance, "compatible")
    verdict = verdict.mask(difference.abs() <= half_unit, "reproduced")
    return verdict.mask(rows["measured"].isna(), STATES["no_data"])


def dataset_document(study: Study) -> Document | None:
    """The document about a study's data sets; None if its papers print no statistics."""
    shipped = shipped_statistics()
    measured = with_printed_names(shipped[shipped["paper"].isin(study.papers)], study)
    if measured.empty:
        return None
    measured = measured.drop(columns=["published", "paper"]).drop_duplicates(PRINTED)
    rows = measured.merge(printed_statistics(study), on=PRINTED, how="right")
    for name in ("dataset", "scenario"):
        rows[name] = rows[name].fillna(rows[f"printed_{name}"])
    rows["verdict"] = verdicts(rows)
    words = texts(rows).assign(verdict=rows["verdict"])
    labels = rows["dataset"].map(study.title_of) + ", " + words["clients"] + ", " + words["quantity"]
    shown = words.set_index(labels.rename("Statistic"))[["measured", "published", "verdict"]]
    views = []
    for (paper, table), part in shown.groupby([rows["paper"].array, rows["table"].array], sort=False):
        name = f"{paper}_{table}".lower().replace(" ", "_")
        views.append(listing(name, f"{study.paper_title(str(paper))}, {table}", part))
    record = rows.drop(columns=["dataset", "scenario"])
    record = record.rename(columns=lambda name: name.removeprefix("printed_"))
    return Document(
        study,
        "datasets",
        "data sets",
        "Statistics of the data sets as papers print them beside those measured here.",
        caption=(
            "Statistics of the data sets as the papers print them. Counts of clients are means over them, "
            "heterogeneity is a median over pairs.",
            "Those measured come with the suite; scripts/measure_statistics.py makes them from raw files.",
        ),
        views=tuple(views),
        fine_print=(LEGEND,),
        records={f"{study.name}_datasets": record},
    )
