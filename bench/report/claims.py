"""The answers that runs give to a study's claims, and the document of a list of claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import inf, nan
from statistics import fmean
from typing import Any

import pandas as pd

from bench.frames.graded_cells import VALUE, Results, values_of
from bench.frames.ranking import scores_of
from bench.frames.stored_runs import WHERE, rows_of
from bench.frames.verdicts import STATES
from bench.report.captions import statistic
from bench.report.document import Document
from bench.report.table import Table, listing
from bench.statistics.paired import LEAST_RUNS_IN_COMMON, side_by_side
from bench.statistics.summary import Interval, t_interval
from bench.studies.claims import Claim, Claims
from bench.studies.study import Study
from bench.studies.wording import signed

HOLDS, FAILS, OPEN, UNMEASURED = "holds", "does not hold", "can't be told", "not measured"
"""Answers to a claim."""

ROUNDING = 1e-9
"""By how much numbers that are the same may differ as binary fractions."""

MOST_NAMED = 3
"""Lines of a side that a table names; more are counted."""

PUBLIC = [
    "claim",
    "table",
    "place",
    "first",
    "second",
    "difference",
    "low",
    "high",
    "units",
    "published",
    "answer",
]
"""Columns of ``differences.csv``."""

READ = [
    *WHERE,
    "document",
    "line",
    "point",
    "method",
    "measure",
    "position",
    "n",
    "published_mean",
    "verdict",
]
READ += VALUE
"""Columns of the cells frame that claims read."""

Sides = tuple[Sequence[Any], Sequence[Any]]
"""The rows of the cells that a claim compares: the first ones and the second ones."""


def claims_about(study: Study, cells: pd.DataFrame, listed: Claims) -> list[Claim]:
    """The claims of a list of which one table has all lines among the cells."""
    of_tables = cells[cells["study"] == study.name].groupby("document")["line"]
    lines: dict[str, set[str]] = {str(name): set(part) for name, part in of_tables}
    return [
        claim
        for claim in listed.claims
        if any(
            {*claim.first, *claim.second} <= lines.get(name, set())
            for name in (*claim.tables, *claim.reduced)
        )
    ]


def answered(study: Study, results: Results, cells: pd.DataFrame, claims: Sequence[Claim]) -> pd.DataFrame:
    """What the runs say to every claim at every place, a row each: the columns ``PUBLIC``, and

    number       of the claim, from 1
    distance     by how much the interval lies within the claim's range
    is_reduced   the runs are those of a reduced protocol, as there are none of the whole one
    lines        titles of both sides
    places       rows of the places frame
    verdicts     those of cells that were run and have no numbers
    """
    board = cells.loc[(cells["study"] == study.name) & (cells["comparison_number"] == 0), READ]
    board = board.merge(results.places[["place", "column_number"]], on="place")
    tables = {str(name): table for name, table in board.groupby("document")}
    runs = _Runs(study, results, _scores(study, results, tables, claims))
    rows = []
    for number, claim in enumerate(claims, 1):
        found = [row for name in claim.tables if name in tables for row in runs.at(claim, tables[name])]
        if not any(len(row["differences"]) for row in found):
            names = [name for name in claim.reduced if name in tables]
            reduced = [row for name in names for row in runs.at(claim, tables[name])]
            if any(len(row["differences"]) for row in reduced):
                found = [{**row, "is_reduced": True} for row in reduced]
        if claim.average and any(len(row["differences"]) for row in found):
            found = [_mean(found)]
        rows += [{"number": number, "is_reduced": False, **row, **_judged(claim, row)} for row in found]
    return pd.DataFrame(
        rows, columns=[*PUBLIC, "number", "distance", "is_reduced", "lines", "places", "verdicts"]
    )


def _is_by_seed(claim: Claim) -> bool:
    """Whether runs are paired by seed, and not their clients."""
    return bool(claim.measure or claim.average or claim.second_clients or not claim.second)


def _scores(
    study: Study, results: Results, tables: Mapping[str, pd.DataFrame], claims: Sequence[Claim]
) -> dict[int, pd.DataFrame]:
    """Place -> what its clients score, of all lines that claims compare client by client."""
    parts = [
        tables[name][tables[name]["line"].isin([*claim.first, *claim.second])]
        for claim in claims
        for name in (*claim.tables, *claim.reduced)
        if name in tables and not _is_by_seed(claim)
    ]
    if not parts:
        return {}
    cells = pd.concat(parts)
    cells = cells[(cells["position"] == 0) & (cells["n"] > 0)].drop_duplicates("place")
    rows = scores_of(results, cells, study.average)
    return {int(str(place)): part for place, part in rows.groupby("place")}


class _Runs:
    """The runs of the cells that claims compare; ``scores`` are those of their clients by place."""

    def __init__(self, study: Study, results: Results, scores: Mapping[int, pd.DataFrame]) -> None:
        self.study, self.results, self.scores = study, results, scores
        members = results.members
        self.sizes = members[members["is_done"]].groupby("place").size()

    def at(self, claim: Claim, table: pd.DataFrame) -> Iterator[dict[str, Any]]:
        """What the runs of a table say, place by place; only where its lines are planned."""
        (experiment,) = (each for each in self.study.experiments if each.name == table["document"].iloc[0])
        is_measure = table["measure"] == (claim.measure.name if claim.measure else "")
        has_measure = bool(is_measure.any())
        table = table[is_measure if has_measure else table["position"] == 0]
        lines = table[table["line"].isin([*claim.first, *claim.second])]
        cells = {
            (*(getattr(row, name) for name in WHERE), row.point, row.line): row for row in rows_of(lines)
        }
        values = self._values(claim, lines, has_measure)
        columns = table.sort_values("column_number")[WHERE].drop_duplicates()
        labels = [point.label for point in experiment.points]
        points = [claim.points] if claim.points else [(point, point) for point in labels]
        for where, (first_point, second_point) in product(columns.itertuples(index=False, name=None), points):
            other = (*where[:2], claim.second_clients or where[2])
            first = [cells[key] for line in claim.first if (key := (*where, first_point, line)) in cells]
            second = [cells[key] for line in claim.second if (key := (*other, second_point, line)) in cells]
            if claim.only.has(*where) and first and bool(second) == bool(claim.second):
                texts = [
                    f"{self.study.title_of(where[0])} {where[2]}",
                    f"less {other[2]}" if other != where else "",
                    where[1],
                    first_point if first_point == second_point else f"{first_point} less {second_point}",
                ]
                is_published = has_measure or not claim.measure
                found = self._difference(claim, (first, second), values, is_published)
                yield {"table": experiment.name, "place": ", ".join(filter(None, texts)), **found}

    def _values(self, claim: Claim, lines: pd.DataFrame, has_measure: bool) -> dict[int, pd.Series[float]]:
        """Place -> what the claim's measure makes of each of its runs, by seed; only of places of which every
        run with numbers has one.
        """
        if has_measure or not claim.measure:
            values = lines[VALUE].merge(self.results.values, on=VALUE)
        else:
            values = values_of(self.results, lines, claim.measure)
        return {
            int(str(place)): part.set_index("seed")["value"]
            for place, part in values.groupby("place")
            if len(part) == self.sizes[place]
        }

    def _difference(
        self, claim: Claim, sides: Sides, values: Mapping[int, pd.Series[float]], is_published: bool
    ) -> dict[str, Any]:
        """What the cells of one place differ by, in the runs and in the paper."""
        every = [*sides[0], *sides[1]]
        numbers = {row.place: values.get(row.place, pd.Series(dtype=float)) for row in every}
        differences, is_of_one_run = pd.Series(dtype=float), False
        if all(row.n for row in every):
            if claim.each:
                lowest = min(sides[0], key=lambda row: numbers[row.place].mean())
                highest = [max(sides[1], key=lambda row: numbers[row.place].mean())] if sides[1] else []
                sides = [lowest], highest
            if _is_by_seed(claim):
                by_seed = [pd.DataFrame([numbers[row.place] for row in side]) for side in sides if side]
                differences = _less(claim, [side.mean(skipna=False) for side in by_seed])
            else:
                rows = [_mean_scores([self.scores[row.place] for row in side]) for side in sides]
                names = ["first", "second"]
                pair = pd.concat([part.assign(method=name) for part, name in zip(rows, names, strict=True)])
                table = side_by_side(pair, names)
                differences = pd.Series(table.differences(*names))
                is_of_one_run = table.common_runs(*names) < LEAST_RUNS_IN_COMMON
        printed = [pd.Series([_published_mean(side)]) for side in sides if side]
        return {
            "first": list(dict.fromkeys(row.line for row in sides[0])),
            "second": list(dict.fromkeys(row.line for row in sides[1])),
            "differences": differences,
            "is_of_one_run": is_of_one_run,
            "published": float(_less(claim, printed).mean()) if is_published else nan,
            "places": [row.place for side in sides for row in side],
            "verdicts": sorted({row.verdict for row in every if not row.n} - {STATES["not_run"]}),
        }


def _mean_scores(cells: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The mean over cells of every client's score in every run that all of them have."""
    if len(cells) == 1:
        return cells[0]
    keys = ["partition", "seed", "client", "part"]
    mean = (
        pd.concat(cells)
        .groupby(keys, as_index=False)
        .agg(value=("value", "mean"), weight=("weight", "first"), cells=("value", "size"))
    )
    return mean[mean["cells"] == len(cells)].drop(columns="cells")


def _less(claim: Claim, sides: Sequence[pd.Series[float]]) -> pd.Series[float]:
    """The first side less the second, where there is one."""
    first, *others = sides
    for second in others:
        first = 100 * (first / second - 1) if claim.relative else first - second
    return first.dropna()


def _published_mean(side: Sequence[Any]) -> float:
    """The mean of the published values of a side; NaN where one has none."""
    return fmean(row.published_mean for row in side)


def _mean(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean over the places that were measured, by seed: the seeds that all of them have."""
    known = [row for row in found if len(row["differences"])]
    by_seed = pd.concat([row["differences"] for row in known], axis=1).mean(axis=1, skipna=False)
    titles = {
        side: list(dict.fromkeys(title for row in known for title in row[side]))
        for side in ("first", "second")
    }
    return {
        **known[0],
        **titles,
        "place": f"mean of {len(known)} of {len(found)} places",
        "differences": by_seed.dropna(),
        "published": fmean(row["published"] for row in known),
        "places": [place for row in known for place in row["places"]],
    }


def _judged(claim: Claim, row: dict[str, Any]) -> dict[str, Any]:
    """The answer at a place: whether the 95 % interval lies within the claim's range, whose ends do not
    belong to it. There is no interval of fewer than two units, of clients of one run, and of numbers without
    spread.
    """
    differences = row["differences"]
    mean = float(differences.mean()) if len(differences) else nan
    has_interval = not (claim.exact or row["is_of_one_run"])
    interval: Interval | None = t_interval(differences.tolist()) if has_interval else None
    low, high = claim.range
    start, end = (mean, mean) if claim.exact else interval or (-inf, inf)
    if not len(differences):
        answer = UNMEASURED
    elif claim.exact:
        answer = HOLDS if low - ROUNDING <= mean <= high + ROUNDING else FAILS
    else:
        answer = HOLDS if low < start and end < high else FAILS if end <= low or high <= start else OPEN
    distances = inf if low == -inf else start - low, inf if high == inf else high - end
    ends = dict(zip(("low", "high"), interval or (nan, nan), strict=True))
    lines = row["first"], row["second"]
    texts = dict(zip(("first", "second"), map(", ".join, lines), strict=True))
    numbers = {"difference": mean, "units": len(differences), "distance": min(distances)}
    return {"claim": claim.text, "lines": lines, **texts, **numbers, **ends, "answer": answer}


def deciding(claim: Claim, places: pd.DataFrame) -> pd.Series[Any]:
    """The measured place on which the answer rests: the one that is least for the claim or, of a claim
    about most places, the one without which no majority holds.
    """
    known = places[places["units"] > 0]
    known = known.assign(support=known["answer"].map([FAILS, OPEN, HOLDS].index))
    known = known.sort_values(["support", "distance"], kind="stable")
    return known.iloc[(len(known) - 1) // 2 if claim.most else 0]


def verdict(claim: Claim, answers: pd.Series[str]) -> str:
    """``HOLDS`` where the claim holds at every place measured (or most), ``FAILS`` where it fails at one
    (or at half of them), else ``OPEN``; ``UNMEASURED`` without any.
    """
    places = int((answers != UNMEASURED).sum())
    holding, failures = int((answers == HOLDS).sum()), int((answers == FAILS).sum())
    if not places:
        return UNMEASURED
    if claim.most:
        return HOLDS if 2 * holding > places else FAILS if 2 * failures >= places else OPEN
    return FAILS if failures else HOLDS if holding == places else OPEN


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
        texts = {"Answer": verdicts[-1], "Difference": _difference_text(claim, found, grids)}
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
        details=(_places_table(claims, places),),
        printed=(table,),
        records={"differences": places[PUBLIC]},
    )
    return replace(document, cells=document.cells[:0])  # they stand in the documents of their experiments


def _difference_text(claim: Claim, found: pd.DataFrame, grids: Mapping[str, str]) -> str:
    """What was measured, in a line: a difference with its interval, of several places the deciding one's and
    how many hold; of nothing why, or the ``grids`` (by table) to run.
    """
    known = found[found["units"] > 0]
    if known.empty:
        lost = sorted({verdict for verdicts in found["verdicts"] for verdict in verdicts})
        names = dict.fromkeys(grids[name] for name in (*claim.tables, *claim.reduced) if name in grids)
        return ", ".join(lost) or f"to run: {', '.join(names)}"
    decisive = deciding(claim, found)
    text = f"{_number_text(claim, decisive['difference'])} {_interval_text(claim, decisive)}"
    if len(known) > 1:
        answers = found["answer"].tolist()
        counts = f"{answers.count(HOLDS)} of {len(known)} hold, {answers.count(FAILS)} do not"
        text = f"{text} in {decisive['place']}; {counts}"
    text += f"; {len(found) - len(known)} not run" if len(known) < len(found) else ""
    return text + "; reduced" * bool(found["is_reduced"].iloc[0])


def _places_table(claims: Sequence[Claim], places: pd.DataFrame) -> Table:
    """What was measured or published, a row a place."""
    rows = []
    shown = places[(places["units"] > 0) | places["published"].notna()]
    for row in shown.to_dict("records"):
        claim = claims[row["number"] - 1]
        texts = {
            "Answer": row["answer"],
            "Difference": _number_text(claim, row["difference"]),
            "95 % interval": _interval_text(claim, row),
            "Units": str(row["units"]),
            "Published": _number_text(claim, row["published"]),
            "First": _titles(row["lines"][0]),
            "Second": _titles(row["lines"][1]) or "-",
        }
        rows.append((f"{row['number']}. {row['place']}", texts))
    return listing("differences", "Differences, place by place", "Place", rows)


def _number_text(claim: Claim, value: float) -> str:
    if pd.isna(value):
        return "-"
    digits = 1 if claim.relative else claim.measure.digits if claim.measure else 2
    return signed(value, digits) + " %" * claim.relative


def _interval_text(claim: Claim, row: Mapping[Any, Any] | pd.Series[Any]) -> str:
    if not row["units"]:
        return "-"
    if pd.isna(row["low"]):
        return "no spread" if claim.exact else "no interval"
    return f"[{_number_text(claim, row['low'])}, {_number_text(claim, row['high'])}]"


def _titles(titles: Sequence[str]) -> str:
    """The names of lines, or how many there are where they are many."""
    return ", ".join(titles) if len(titles) <= MOST_NAMED else f"{len(titles)} lines"
