"""The answers that runs give to a study's claims, and the document of a list of claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import inf, isfinite, nan
from typing import Any, NamedTuple

import pandas as pd

from bench.frames.graded_cells import VALUE, Results, values_of
from bench.frames.ranking import scores_of
from bench.frames.stored_runs import WHERE, rows_of
from bench.frames.verdicts import STATES
from bench.report.captions import statistic
from bench.report.document import Document
from bench.report.table import Table, listing
from bench.statistics.paired import LEAST_RUNS_IN_COMMON, side_by_side
from bench.statistics.summary import t_interval
from bench.studies.claims import Claim, Claims
from bench.studies.study import Study
from bench.studies.wording import signed

HOLDS, FAILS, OPEN, UNMEASURED = "holds", "does not hold", "can't be told", "not measured"
"""Answers to a claim."""

ROUNDING = 1e-9
"""By how much numbers that are the same may differ as binary fractions."""

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
"""Columns of the cells frame that claims read, beside ``VALUE``."""


class Found(NamedTuple):
    """What the runs of one place, or the mean of several, say to a claim: the ``differences`` of its sides in
    every unit, none without runs.

    is_of_one_run   the units are the clients of a single run
    places          rows of the places frame
    verdicts        those of cells that were run and have no numbers
    """

    table: str
    place: str
    first: list[str]
    second: list[str]
    differences: pd.Series[float]
    is_of_one_run: bool
    published: float
    places: list[int]
    verdicts: list[str]


def claims_about(study: Study, cells: pd.DataFrame, listed: Claims) -> list[Claim]:
    """The claims of a list of which one table has all lines among the cells."""
    of_tables = cells[cells["study"] == study.name].groupby("document")["line"]
    lines: dict[str, set[str]] = {str(name): set(part) for name, part in of_tables}
    found = []
    for claim in listed.claims:
        sides = {*claim.first, *claim.second}
        if any(sides <= lines.get(name, set()) for name in (*claim.tables, *claim.reduced)):
            found.append(claim)
    return found


def answered(study: Study, results: Results, cells: pd.DataFrame, claims: Sequence[Claim]) -> pd.DataFrame:
    """What the runs say to every claim at every place, a row each: the columns ``PUBLIC``, and

    number            of the claim, from 1
    distance          by how much the interval lies within the claim's range
    is_reduced        the runs are those of a reduced protocol, as there are none of the whole one
    places, verdicts  as of ``Found``
    """
    board = cells.loc[(cells["study"] == study.name) & (cells["comparison_number"] == 0), [*READ, *VALUE]]
    lines = {line for claim in claims for line in (*claim.first, *claim.second)}
    board = board[board["line"].isin(lines)].merge(results.places[["place", "column_number"]], on="place")
    is_scored = (board["position"] == 0) & (board["n"] > 0)
    rows = scores_of(results, board[is_scored].drop_duplicates("place"), study.average)
    scores = {int(str(place)): part for place, part in rows.groupby("place")}
    answers = []
    for number, claim in enumerate(claims, 1):
        found = _found(study, results, board, scores, claim, claim.tables)
        reduced = [] if _is_measured(found) else _found(study, results, board, scores, claim, claim.reduced)
        is_reduced = _is_measured(reduced)
        found = reduced if is_reduced else found
        if claim.average and _is_measured(found):
            found = [_mean(found)]
        for one in found:
            texts = {"first": ", ".join(one.first), "second": ", ".join(one.second)}
            judged = {"claim": claim.text, "number": number, "is_reduced": is_reduced, **_judged(claim, one)}
            answers.append({**one._asdict(), **texts, **judged})
    more = ["number", "distance", "is_reduced", "places", "verdicts"]
    return pd.DataFrame(answers, columns=[*PUBLIC, *more])


def _is_measured(found: Iterable[Found]) -> bool:
    return any(len(one.differences) for one in found)


def _found(
    study: Study,
    results: Results,
    board: pd.DataFrame,
    scores: Mapping[int, pd.DataFrame],
    claim: Claim,
    names: Iterable[str],
) -> list[Found]:
    """What the runs of some tables say to a claim, place by place; only where its lines are planned.

    ``scores`` are those of clients by place.
    """
    points_of = {experiment.name: experiment.points for experiment in study.experiments}
    found = []
    for name in names:
        lines = board[(board["document"] == name) & board["line"].isin([*claim.first, *claim.second])]
        is_measure = lines["measure"] == (claim.measure.name if claim.measure else "")
        is_shown = bool(is_measure.any())
        lines = lines[is_measure if is_shown else lines["position"] == 0]
        values = _values_by_seed(results, lines, claim, is_shown)
        cells = {
            (*(getattr(row, name) for name in WHERE), row.point, row.line): row for row in rows_of(lines)
        }
        columns = lines.sort_values("column_number")[WHERE].drop_duplicates()
        points = [claim.points] if claim.points else [(point.label, point.label) for point in points_of[name]]
        for where, (first_point, second_point) in product(columns.itertuples(index=False, name=None), points):
            other = (*where[:2], claim.second_clients or where[2])
            first = [cells[key] for line in claim.first if (key := (*where, first_point, line)) in cells]
            second = [cells[key] for line in claim.second if (key := (*other, second_point, line)) in cells]
            if not claim.only.has(*where) or not first or bool(second) != bool(claim.second):
                continue
            texts = [
                f"{study.title_of(where[0])} {where[2]}",
                f"less {other[2]}" if other != where else "",
                where[1],
                first_point if first_point == second_point else f"{first_point} less {second_point}",
            ]
            place = ", ".join(filter(None, texts))
            is_published = is_shown or not claim.measure
            found.append(_difference(claim, name, place, first, second, values, scores, is_published))
    return found


def _values_by_seed(
    results: Results, lines: pd.DataFrame, claim: Claim, is_shown: bool
) -> dict[int, pd.Series[float]]:
    """Place -> what the claim's measure makes of each of its runs, by seed; only of places of which every run
    with numbers has one.
    """
    if claim.measure and not is_shown:
        values = values_of(results, lines, claim.measure)
    else:
        values = lines[VALUE].merge(results.values, on=VALUE)
    sizes = results.members[results.members["is_done"]].groupby("place").size()
    return {
        int(str(place)): part.set_index("seed")["value"]
        for place, part in values.groupby("place")
        if len(part) == sizes[place]
    }


def _difference(
    claim: Claim,
    table: str,
    place: str,
    first: list[Any],
    second: list[Any],
    values: Mapping[int, pd.Series[float]],
    scores: Mapping[int, pd.DataFrame],
    is_published: bool,
) -> Found:
    """What the cells of one place differ by, in the runs and in the paper: accuracies client by client, all
    else by seed.
    """
    every = [*first, *second]
    verdicts = sorted({row.verdict for row in every if not row.n} - {STATES["not_run"]})
    differences, is_of_one_run = pd.Series(dtype=float), False
    if all(row.n for row in every):
        by_seed = {row.place: values.get(row.place, pd.Series(dtype=float)) for row in every}
        if claim.each:
            first = [min(first, key=lambda row: by_seed[row.place].mean())]
            second = [max(second, key=lambda row: by_seed[row.place].mean())] if second else []
        sides = [[row.place for row in side] for side in (first, second) if side]
        if claim.measure or claim.average or claim.second_clients or not second:
            means = [pd.DataFrame([by_seed[one] for one in side]).mean(skipna=False) for side in sides]
            differences = _less(claim, means)
        else:
            parts = [_mean_scores([scores[one] for one in side]) for side in sides]
            pair = pd.concat([parts[0].assign(method="first"), parts[1].assign(method="second")])
            table_of_both = side_by_side(pair, ["first", "second"])
            differences = pd.Series(table_of_both.differences("first", "second"))
            is_of_one_run = table_of_both.common_runs("first", "second") < LEAST_RUNS_IN_COMMON
    printed = [pd.Series([row.published_mean for row in side]) for side in (first, second) if side]
    published = _less(claim, [pd.Series([side.mean(skipna=False)]) for side in printed]).mean()
    return Found(
        table,
        place,
        list(dict.fromkeys(row.line for row in first)),
        list(dict.fromkeys(row.line for row in second)),
        differences,
        is_of_one_run,
        float(published) if is_published else nan,
        [row.place for row in (*first, *second)],
        verdicts,
    )


def _mean_scores(cells: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The mean over cells of every client's score in every run that all of them have."""
    keys = ["partition", "seed", "client", "part"]
    by_client = pd.concat(cells).groupby(keys, as_index=False, sort=False)
    mean = by_client.agg(value=("value", "mean"), weight=("weight", "first"), cells=("value", "size"))
    return mean[mean["cells"] == len(cells)].drop(columns="cells")


def _less(claim: Claim, sides: Sequence[pd.Series[float]]) -> pd.Series[float]:
    """The first side less the second, where there is one."""
    first, *others = sides
    for second in others:
        first = 100 * (first / second - 1) if claim.relative else first - second
    return first.dropna()


def _mean(found: Sequence[Found]) -> Found:
    """The mean over the places that were measured, by seed: the seeds that all of them have."""
    known = [one for one in found if len(one.differences)]
    by_seed = pd.concat([one.differences for one in known], axis=1).mean(axis=1, skipna=False)
    return known[0]._replace(
        place=f"mean of {len(known)} of {len(found)} places",
        differences=by_seed.dropna(),
        published=pd.Series([one.published for one in known]).mean(skipna=False),
        places=[place for one in known for place in one.places],
    )


def _judged(claim: Claim, found: Found) -> dict[str, Any]:
    """The answer at a place: whether the 95 % interval lies within the claim's range, whose ends do not
    belong to it. There is no interval of fewer than two units, of clients of one run, and of numbers without
    spread.
    """
    differences, (low, high) = found.differences, claim.range
    mean = float(differences.mean())
    interval = None if claim.exact or found.is_of_one_run else t_interval(differences.tolist())
    start, end = (mean, mean) if claim.exact else interval or (-inf, inf)
    if differences.empty:
        answer = UNMEASURED
    elif claim.exact:
        answer = HOLDS if low - ROUNDING <= mean <= high + ROUNDING else FAILS
    else:
        answer = HOLDS if low < start and end < high else FAILS if end <= low or high <= start else OPEN
    ends = dict(zip(("low", "high"), interval or (nan, nan), strict=True))
    distance = min(start - low if isfinite(low) else inf, high - end if isfinite(high) else inf)
    return {"difference": mean, **ends, "units": len(differences), "distance": distance, "answer": answer}


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
    rows = []
    for number, claim in enumerate(claims, 1):
        found = places[places["number"] == number]
        label = f"{number}. {claim.text}" + (f" ({claim.source})" if claim.source else "")
        rows.append((label, verdict(claim, found["answer"]), _difference_text(claim, found, grids)))
    shown = pd.DataFrame(rows, columns=["Claim", "Answer", "Difference"])
    table = listing("claims", "Claims", shown.set_index("Claim"))
    answers = shown["Answer"].tolist()
    words = {FAILS: "does not" if answers.count(FAILS) == 1 else "do not", OPEN: OPEN, UNMEASURED: UNMEASURED}
    counts = [f"{answers.count(HOLDS)} of {len(claims)} hold"]
    counts += [f"{answers.count(answer)} {word}" for answer, word in words.items() if answer in answers]
    document = statistic(
        study,
        listed.name,
        listed.title,
        f"{', '.join(counts)}.",
        cells[cells["place"].isin({place for part in known["places"] for place in part})],
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
    shown = places[(places["units"] > 0) | places["published"].notna()]
    of_rows = [claims[number - 1] for number in shown["number"]]
    rows = pd.DataFrame(
        {
            "Place": shown["number"].astype(str) + ". " + shown["place"],
            "Answer": shown["answer"],
            "Difference": list(map(_number_text, of_rows, shown["difference"])),
            "95 % interval": list(map(_interval_text, of_rows, shown.to_dict("records"))),
            "Units": shown["units"],
            "Published": list(map(_number_text, of_rows, shown["published"])),
            "First": shown["first"],
            "Second": shown["second"].replace("", "-"),
        }
    )
    return listing("differences", "Differences, place by place", rows.set_index("Place"))


def _number_text(claim: Claim, value: float) -> str:
    digits = 1 if claim.relative else claim.measure.digits if claim.measure else 2
    return signed(value, digits) + " %" * (claim.relative and pd.notna(value))


def _interval_text(claim: Claim, row: Mapping[Any, Any] | pd.Series[Any]) -> str:
    if not row["units"]:
        return "-"
    if pd.isna(row["low"]):
        return "no spread" if claim.exact else "no interval"
    return f"[{_number_text(claim, row['low'])}, {_number_text(claim, row['high'])}]"
