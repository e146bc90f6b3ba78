"""The statistics of data sets that a study's papers print beside those that come with the suite.

The measured ones are those of ``results/dataset_statistics.json``, which ``bench data stats --json`` prints.
"""

from __future__ import annotations

import json
import math
from importlib.resources import files

import pandas as pd
from scipy.special import stdtrit

from bench.frames.verdicts import LEVEL, STATES
from bench.report.document import Document
from bench.report.table import listing
from bench.studies.dataset_tables import PRINTED, printed_statistics, texts, with_printed_names
from bench.studies.study import DataTable, Study

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

RECORD = ["paper", "table", "printed_dataset", "printed_scenario", "clients", "quantity"]
RECORD += ["measured", "deviation", "published", "verdict"]
"""Columns of the CSV file, without ``printed_``."""


def judged_statistics(study: Study, table: DataTable) -> pd.DataFrame:
    """The statistics that a study's papers print beside those that come with the suite, with verdicts."""
    file = files("bench.results") / "dataset_statistics.json"
    shipped = pd.DataFrame(json.loads(file.read_text(encoding="utf-8")))
    measured = with_printed_names(shipped[shipped["paper"] == table.paper], study).drop_duplicates(PRINTED)
    measured = measured.drop(columns=["published", "paper"])
    rows = measured.merge(printed_statistics(study), on=PRINTED, how="right")
    for name in ("dataset", "scenario"):
        rows[name] = rows[name].fillna(rows[f"printed_{name}"])
    return rows.assign(verdict=verdicts(rows, table.partitions))


def verdicts(rows: pd.DataFrame, partitions: int) -> pd.Series[str]:
    """The verdicts on statistics; a deviation is of ``partitions`` draws."""
    difference = (rows["measured"] - rows["published"]).astype(float)
    half_unit = rows["quantity"].isin(SHARES).map({True: 0.5e-3, False: 0.5}) * (1 + 1e-9)
    tolerance = CLOSE * rows["published"].abs().where(rows["scenario"] != "global", 0.0)
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
    if study.data_table is None:
        return None
    rows = judged_statistics(study, study.data_table)
    words = texts(rows).assign(verdict=rows["verdict"])
    labels = rows["dataset"].map(study.title_of) + ", " + words["clients"] + ", " + words["quantity"]
    shown = words.set_index(labels.rename("Statistic"))[["measured", "published", "verdict"]]
    views = []
    for (paper, table), part in shown.groupby([rows["paper"].array, rows["table"].array], sort=False):
        name = f"{paper}_{table}".lower().replace(" ", "_")
        views.append(listing(name, f"{study.paper_title(str(paper))}, {table}", part))
    record = rows[RECORD].rename(columns=lambda name: name.removeprefix("printed_"))
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
        records={f"{study.name}_datasets": record},
    )
