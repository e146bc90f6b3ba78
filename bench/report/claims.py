"""The answers that runs give to a study's claims, and the document of a list of claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite, nan
from statistics import fmean
from typing import Any

import pandas as pd

from bench.frames.graded_cells import VALUE, Results, values_of
from bench.frames.ranking import scores_of
from bench.frames.stored_runs import WHERE
from bench.frames.verdicts import STATES
from bench.report.captions import statistic
from bench.report.document import Document
from bench.report.table import listing
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

CLIENT = ["partition", "seed", "client", "part"]
"""What names a score of a client."""


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

    number      of the claim, from 1
    distance    by how much the interval lies within the claim's range
    is_reduced  the runs are those of a reduced protocol, as there are none of the whole one
    places      rows of the places frame
    verdicts    those of cells that were run and have no numbers
    """
    board = cells[(cells["study"] == study.name) & (cells["comparison_number"] == 0)]
    board = board.merge(results.places[["place", "column_number", "inner"]], on="place")
    lines = {line for claim in claims for line in (*claim.first, *claim.second)}
    board = board[board["line"].isin(lines)]
    scored = board[(board["position"] == 0) & (board["n"] > 0)].drop_duplicates("place")
    scores = scores_of(results, scored, study.average)
    rows = []
    for number, claim in enumerate(claims, 1):
        found = _differences(study, results, board, scores, claim, claim.tables)
        is_reduced = not _is_measured(found)
        if is_reduced:
            reduced = _differences(study, results, board, scores, claim, claim.reduced)
            is_reduced = _is_measured(reduced)
            found = reduced if is_reduced else found
        if claim.average and _is_measured(found):
            found = [_mean(found)]
        about = {"claim": claim.text, "number": number, "is_reduced": is_reduced}
        rows += [{**about, **row, **_judged(claim, row)} for row in found]
    more = ["number", "distance", "is_reduced", "places", "verdicts"]
    return pd.DataFrame(rows, columns=[*PUBLIC, *more])


def _is_measured(found: Iterable[dict[str, Any]]) -> bool:
    return any(len(row["differences"]) for row in found)


def _differences(
    study: Study,
    results: Results,
    board: pd.DataFrame,
    scores: pd.DataFrame,
    claim: Claim,
    names: Iterable[str],
) -> list[dict[str, Any]]:
    """What the sides of a claim differ by in some tables, at the places where its lines are planned."""
    sizes = results.members[results.members["is_done"]].groupby("place").size()
    found = []
    for name in names:
        lines = board[(board["document"] == name) & board["line"].isin([*claim.first, *claim.second])]
        is_measure = lines["measure"] == (claim.measure.name if claim.measure else "")
        is_shown = bool(is_measure.any())
        lines = lines[is_measure if is_shown else lines["position"] == 0]
        if claim.measure and not is_shown:
            values = values_of(results, lines, claim.measure)
        else:
            values = lines[VALUE].merge(results.values, on=VALUE)
        # A place counts where every run with numbers has a value.
        is_whole = values.groupby("place")["run"].transform("size") == values["place"].map(sizes)
        values = values[is_whole].assign(weight=1.0)
        for where, sides in _sides(claim, lines):
            row = _difference(claim, sides, values, scores)
            row["published"] = row["published"] if is_shown or not claim.measure else nan
            found.append({"table": name, "place": _place(study, claim, where), **row})
    return found


def _sides(claim: Claim, lines: pd.DataFrame) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """The cells of both sides (column ``side``) at every place, which is that of the first side."""
    lines = lines.assign(number=lines["line"].map([*claim.first, *claim.second].index))
    lines = lines.sort_values(["column_number", "number", "inner"])
    first, second = lines[lines["line"].isin(claim.first)], lines[lines["line"].isin(claim.second)]
    is_asked = [claim.only.has(*where) for where in first[WHERE].itertuples(index=False, name=None)]
    first = first[pd.Series(is_asked, first.index, dtype=bool)]
    if claim.points:
        first = first[first["point"] == claim.points[0]]
        second = second[second["point"] == claim.points[1]].assign(point=claim.points[0])
    if claim.second_clients:
        second = second[second["clients"] == claim.second_clients].drop(columns="clients")
        second = second.merge(first[WHERE].drop_duplicates(), on=["dataset", "scenario"])
    both = pd.concat([first.assign(side="first"), second.assign(side="second")], ignore_index=True)
    for where, sides in both.groupby([*WHERE, "point"], sort=False):
        if sides["side"].nunique() == 1 + bool(claim.second):
            yield where, sides


def _place(study: Study, claim: Claim, where: tuple[Any, ...]) -> str:
    """A place in words: ``Cora 20, non-overlapping``, with the point."""
    dataset, scenario, clients, point = where
    less = claim.second_clients
    texts = [
        f"{study.title_of(dataset)} {clients}",
        f"less {less}" if less and less != clients else "",
        scenario,
        " less ".join(claim.points) if claim.points else point,
    ]
    return ", ".join(filter(None, texts))


def _difference(
    claim: Claim, sides: pd.DataFrame, values: pd.DataFrame, scores: pd.DataFrame
) -> dict[str, Any]:
    """What the sides of a place differ by, in the runs and in the paper: accuracies client by client, all
    else by seed.
    """
    differences, is_of_one_run = pd.Series(dtype=float), False
    lost = sides.loc[sides["n"] == 0, "verdict"]
    if lost.empty:
        if claim.each:
            reached = sides["place"].map(values.groupby("place")["value"].mean())
            lowest = reached[sides["side"] == "first"].idxmin()
            highest = [reached[sides["side"] == "second"].idxmax()] if claim.second else []
            sides = sides.loc[[lowest, *highest]]
        if claim.measure or claim.average or claim.second_clients or not claim.second:
            by_seed = _side_means(sides, values, ["seed"]).pivot(index="seed", columns="side", values="value")
            differences = _less(claim, by_seed).dropna()
        else:
            rows = _side_means(sides, scores, CLIENT).rename(columns={"side": "method"})
            table = side_by_side(rows, ["first", "second"])
            differences = pd.Series(table.differences("first", "second"))
            is_of_one_run = table.common_runs("first", "second") < LEAST_RUNS_IN_COMMON
    printed = sides.groupby("side")["published_mean"].agg(lambda means: means.mean(skipna=False))
    titles = sides.groupby("side")["line"].agg(lambda lines: ", ".join(dict.fromkeys(lines)))
    return {
        "first": titles["first"],
        "second": titles.get("second", ""),
        "differences": differences,
        "is_of_one_run": is_of_one_run,
        "published": _less(claim, printed.to_frame().T).iloc[0],
        "places": sides["place"].tolist(),
        "verdicts": sorted({*lost} - {STATES["not_run"]}),
    }


def _side_means(sides: pd.DataFrame, rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The mean over the cells of each side of what all of them have, by some keys."""
    found = sides[["place", "side"]].merge(rows, on="place").groupby(["side", *keys], as_index=False)
    means = found.agg(value=("value", "mean"), weight=("weight", "first"), cells=("value", "size"))
    return means[means["cells"] == means["side"].map(sides["side"].value_counts())]


def _less(claim: Claim, sides: pd.DataFrame) -> pd.Series[float]:
    """The first side less the second, where there is one."""
    if not claim.second:
        return sides["first"]
    if claim.relative:
        return 100 * (sides["first"] / sides["second"] - 1)
    return sides["first"] - sides["second"]


def _mean(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean over the places that were measured, by seed: the seeds that all of them have."""
    known = [row for row in found if len(row["differences"])]
    by_seed = pd.concat([row["differences"] for row in known], axis=1).mean(axis=1, skipna=False)
    return {
        **known[0],
        "place": f"mean of {len(known)} of {len(found)} places",
        "differences": by_seed.dropna(),
        "published": fmean(row["published"] for row in known),
        "places": [place for row in known for place in row["places"]],
    }


def _judged(claim: Claim, row: Mapping[str, Any]) -> dict[str, Any]:
    """The answer at a place: whether the 95 % interval lies within the claim's range, whose ends do not
    belong to it. There is no interval of fewer than two units, of clients of one run, and of numbers without
    spread.
    """
    differences, (low, high) = row["differences"], claim.range
    mean = float(differences.mean())
    interval = None if claim.exact or row["is_of_one_run"] else t_interval(differences.tolist())
    start, end = (mean, mean) if claim.exact else interval or (-inf, inf)
    if differences.empty:
        answer = UNMEASURED
    elif claim.exact:
        answer = HOLDS if low - ROUNDING <= mean <= high + ROUNDING else FAILS
    else:
        answer = HOLDS if low < start and end < high else FAILS if end <= low or high <= start else OPEN
    first, last = interval or (nan, nan)
    distance = min(start - low if isfinite(low) else inf, high - end if isfinite(high) else inf)
    numbers = {"difference": mean, "low": first, "high": last, "units": len(differences)}
    return {**numbers, "distance": distance, "answer": answer}


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
    measured = places.loc[(places["units"] > 0) | places["published"].notna(), PUBLIC]
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
            "Differences are the first's less the second's: of accuracies in points, paired by client and "
            "seed; of other numbers, other clients and means over places, paired by seed. A claim holds as "
            "a whole where it does at every place measured, or where it says most at more than half. Of "
            "several places the one that decides stands with its difference. 'To run': the grids that would "
            "measure it. 'Reduced': runs with less data and fewer rounds, which speak of order alone.",
            *listed.remarks,
        ),
        views=(table,),
        details=(listing("differences", "Differences, place by place", measured.set_index("claim")),),
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


def _number_text(claim: Claim, value: float) -> str:
    digits = 1 if claim.relative else claim.measure.digits if claim.measure else 2
    return signed(value, digits) + " %" * claim.relative


def _interval_text(claim: Claim, row: pd.Series[Any]) -> str:
    if pd.isna(row["low"]):
        return "no spread" if claim.exact else "no interval"
    return f"[{_number_text(claim, row['low'])}, {_number_text(claim, row['high'])}]"
