"""The document of a list of claims: the answer to each, and what was measured at each place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from bench.frames.graded_cells import Results
from bench.report.captions import statistic
from bench.report.claims import (
    FAILS,
    HOLDS,
    OPEN,
    PUBLIC,
    UNMEASURED,
    answered,
    claims_about,
    deciding,
    verdict,
)
from bench.report.document import Document
from bench.report.table import Table, listing
from bench.studies.claims import Claim, Claims
from bench.studies.study import Study
from bench.studies.wording import signed

MOST_NAMED = 3
"""Lines of a side that a table names; more are counted."""


def claim_document(study: Study, results: Results, cells: pd.DataFrame, listed: Claims) -> Document | None:
    """The document of a list of claims; None where no run says anything about any of them."""
    claims = claims_about(study, cells, listed)
    places = answered(study, results, cells, claims)
    known = places[places["units"] > 0]
    if known.empty:
        return None
    grids = {table.name: table.grid or ", ".join(study.grids) for table in study.experiments}
    by_claim = dict(list(places.groupby("number")))
    verdicts, rows = [], []
    for number, claim in enumerate(claims, 1):
        found = by_claim.get(number, places[:0])
        verdicts.append(verdict(claim, found["answer"]))
        source = f" ({claim.source})" if claim.source else ""
        texts = {"Answer": verdicts[-1], "Difference": _difference(claim, found, grids)}
        rows.append((f"{number}. {claim.text}{source}", texts))
    table = listing("claims", "Claims", "Claim", rows)
    fails = "does not" if verdicts.count(FAILS) == 1 else "do not"
    words = {FAILS: fails, OPEN: OPEN, UNMEASURED: UNMEASURED}
    counts = [f"{verdicts.count(HOLDS)} of {len(claims)} hold"]
    counts += [f"{verdicts.count(answer)} {word}" for answer, word in words.items() if answer in verdicts]
    shown = cells[cells["place"].isin({place for part in known["places"] for place in part})]
    document = statistic(
        study,
        listed.name,
        listed.title,
        f"{', '.join(counts)}.",
        shown,
        results,
        (
            "A claim holds at a place where the 95 % interval of the difference lies above zero, or in the "
            "range that it names, does not hold where it lies outside, and can't be told else.",
        ),
        (
            "Lines of another stage are read as their tables say.",
            "Differences are the first's less the second's: of accuracies in points, paired by client and "
            "seed (the unit is the client, the mean of its seeds, where all runs are on one partition); of "
            "other numbers, other clients and means over places, paired by seed. Intervals are Student's, "
            "uncorrected, of two runs or more in common: of one run nobody knows what is the seed's.",
            "A claim holds as a whole where it does at every place measured, or where it says most at more "
            "than half; it does not where it fails at one, or at half. Of several places the one that "
            "decides stands with its difference: where the claim fails most clearly or holds most narrowly "
            "or, of most, the one that makes the majority. 'To run': the grids that would measure it.",
            "'Reduced': runs with less data and fewer rounds than the paper's, which speak of order alone.",
            *listed.remarks,
        ),
        views=(table,),
        details=(_places(claims, places),),
        printed=(table,),
        records={"differences": places[PUBLIC]},
    )
    return replace(document, cells=document.cells[:0])  # they stand in the documents of their experiments


def _difference(claim: Claim, found: pd.DataFrame, grids: Mapping[str, str]) -> str:
    """What was measured, in a line: a difference with its interval, of several places the deciding one's and
    how many hold; of nothing why, or the ``grids`` (by table) to run.
    """
    known = found[found["units"] > 0]
    if known.empty:
        lost = sorted({verdict for verdicts in found["verdicts"] for verdict in verdicts})
        names = dict.fromkeys(grids[name] for name in (*claim.tables, *claim.reduced) if name in grids)
        return ", ".join(lost) or f"to run: {', '.join(names)}"
    decisive = deciding(claim, found)
    text = f"{_number(claim, decisive['difference'])} {_interval(claim, decisive)}"
    if len(known) > 1:
        answers = found["answer"].tolist()
        counts = f"{answers.count(HOLDS)} of {len(known)} hold, {answers.count(FAILS)} do not"
        text = f"{text} in {decisive['place']}; {counts}"
    text += f"; {len(found) - len(known)} not run" if len(known) < len(found) else ""
    return text + "; reduced" * bool(found["is_reduced"].iloc[0])


def _places(claims: Sequence[Claim], places: pd.DataFrame) -> Table:
    """What was measured or published, a row a place."""
    rows = []
    shown = places[(places["units"] > 0) | places["published"].notna()]
    for row in shown.to_dict("records"):
        claim = claims[row["number"] - 1]
        texts = {
            "Answer": row["answer"],
            "Difference": _number(claim, row["difference"]),
            "95 % interval": _interval(claim, row),
            "Units": str(row["units"]),
            "Published": _number(claim, row["published"]),
            "First": _titles(row["lines"][0]),
            "Second": _titles(row["lines"][1]) or "-",
        }
        rows.append((f"{row['number']}. {row['place']}", texts))
    return listing("differences", "Differences, place by place", "Place", rows)


def _number(claim: Claim, value: float) -> str:
    if pd.isna(value):
        return "-"
    digits = 1 if claim.relative else claim.measure.digits if claim.measure else 2
    return signed(value, digits) + " %" * claim.relative


def _interval(claim: Claim, row: Mapping[Any, Any] | pd.Series[Any]) -> str:
    if not row["units"]:
        return "-"
    if pd.isna(row["low"]):
        return "no spread" if claim.exact else "no interval"
    return f"[{_number(claim, row['low'])}, {_number(claim, row['high'])}]"


def _titles(titles: Sequence[str]) -> str:
    """The names of lines, or how many there are where they are many."""
    return ", ".join(titles) if len(titles) <= MOST_NAMED else f"{len(titles)} lines"
