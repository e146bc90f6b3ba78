"""The answers that runs give to a study's claims, and the document of a list of claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan
from typing import Any

import numpy as np
import pandas as pd

from bench.frames.graded_cells import VALUE, Results, values_of
from bench.frames.ranking import scores_of
from bench.frames.stored_runs import WHERE, parts_of
from bench.frames.verdicts import STATES
from bench.report.document import Document
from bench.report.table import listing
from bench.statistics.paired import LEAST_RUNS_IN_COMMON, side_by_side
from bench.statistics.summary import t_interval
from bench.studies.claims import Claim, Claims
from bench.studies.study import Study
from bench.studies.wording import AVERAGES, reading_text, signed

HOLDS, FAILS, OPEN, UNMEASURED = "holds", "does not hold", "can't be told", "not measured"
"""Answers to a claim."""

ROUNDING = 1e-9
"""By how much numbers that are the same may differ as binary fractions."""

PUBLIC = ["claim", "table", "place", "first", "second"]
PUBLIC += ["difference", "low", "high", "units", "published", "answer"]
"""Columns of ``differences.csv``."""

SIDES = ["first", "second"]

CLIENT = ["partition", "seed", "client", "part"]
"""What names a score of a client."""


def answered(study: Study, results: Results, cells: pd.DataFrame, claims: Sequence[Claim]) -> pd.DataFrame:
    """What the runs say to every claim at every place, a row each: the columns ``PUBLIC``, and

    number      of the claim, from 0
    distance    by how much the interval lies within the claim's range
    is_reduced  the runs are those of a reduced protocol, as there are none of the whole one
    lost        verdicts of cells that were run and have no numbers
    """
    board = cells[(cells["study"] == study.name) & (cells["comparison_number"] == 0)]
    board = board.merge(results.places[["place", "column_number", "inner"]], on="place")
    results = results._replace(values=results.values[results.values["place"].isin(board["place"])])
    tables = {str(name): lines for name, lines in board.groupby("document")}
    rows = []
    for number, claim in enumerate(claims):
        places = _places(study, results, tables, claim, claim.tables)
        reduced = [] if _measured(places) else _places(study, results, tables, claim, claim.reduced)
        is_reduced = bool(_measured(reduced))
        places = reduced if is_reduced else places
        if claim.average and _measured(places):
            places = [_mean(places)]
        about = {"claim": claim.text, "number": number, "is_reduced": is_reduced}
        rows += [{**about, **place, **_judged(claim, place)} for place in places]
    return pd.DataFrame(rows, columns=[*PUBLIC, "number", "distance", "is_reduced", "lost"])


def _measured(places: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [place for place in places if len(place["differences"])]


def _places(
    study: Study, results: Results, tables: Mapping[str, pd.DataFrame], claim: Claim, names: Sequence[str]
) -> list[dict[str, Any]]:
    """What the sides of a claim differ by at every place of some tables, in the runs and in the paper."""
    sizes = results.members[results.members["is_done"]].groupby("place").size()
    titles_of_sides = {*claim.first, *claim.second}
    places = []
    for table in names:
        if table not in tables or not titles_of_sides <= set(tables[table]["line"]):
            continue
        lines = tables[table][tables[table]["line"].isin(titles_of_sides)]
        is_measure = lines["measure"] == (claim.measure.name if claim.measure else "")
        is_shown = claim.measure is None or is_measure.any()
        lines = lines[is_measure if is_measure.any() else lines["position"] == 0]
        sides = _sides(claim, lines)
        if sides.empty:
            continue
        if is_shown:
            values = results.values[results.values["place"].isin(lines["place"])]
            values = lines[VALUE].merge(values, on=VALUE)
        else:
            values = values_of(results, lines, claim.measure)
        # A place counts where every run with numbers has a value.
        is_whole = values.groupby("place")["run"].transform("size") == values["place"].map(sizes)
        values = values[is_whole].assign(weight=1.0)
        if claim.each:
            sides = _closest(sides, values)
        differences = _differences(study, results, sides, values, claim)
        titles = sides.groupby(["row", "side"])["line"].agg(lambda lines: ", ".join(dict.fromkeys(lines)))
        printed = sides.groupby(["row", "side"])["published_mean"].agg(lambda means: means.mean(skipna=False))
        published = _less(claim, printed.unstack())
        for row, cells in parts_of(sides, "row"):
            units, is_of_one_run = differences.get(row, (pd.Series(dtype=float), False))
            place = {
                "table": table,
                "place": _place_text(study, claim, cells.iloc[0]),
                "first": titles[row, "first"],
                "second": titles.get((row, "second"), ""),
                "differences": units,
                "is_of_one_run": is_of_one_run,
                "published": published[row] if is_shown else nan,
                "lost": {*cells.loc[cells["n"] == 0, "verdict"]} - {STATES["not_run"]},
            }
            places.append(place)
    return places


def _sides(claim: Claim, lines: pd.DataFrame) -> pd.DataFrame:
    """The cells of both sides of a claim, a row a cell and side; ``row`` numbers the places, which are those
    of the first side, ``is_lost`` says that one of its cells has no numbers.
    """
    order = [*claim.first, *claim.second]
    lines = lines.assign(line_number=lines["line"].map(order.index))
    lines = lines.sort_values(["column_number", "line_number", "inner"])
    first, second = (lines[lines["line"].isin(titles)] for titles in (claim.first, claim.second))
    is_asked = [claim.only.has(*where) for where in first[WHERE].itertuples(index=False, name=None)]
    first = first[np.array(is_asked, bool)]
    if claim.points:
        first = first[first["point"] == claim.points[0]]
        second = second[second["point"] == claim.points[1]].assign(point=claim.points[0])
    if claim.second_clients:
        second = second[second["clients"] == claim.second_clients].drop(columns="clients")
        second = second.merge(first[WHERE].drop_duplicates(), on=["dataset", "scenario"])
    sides = pd.concat([first.assign(side="first"), second.assign(side="second")], ignore_index=True)
    places = sides.groupby([*WHERE, "point"], sort=False)
    is_whole = places["side"].transform("nunique") == 1 + bool(claim.second)
    sides = sides.assign(row=places.ngroup())[is_whole]
    return sides.assign(is_lost=(sides["n"] == 0).groupby(sides["row"]).transform("any"))


def _closest(sides: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    """The lowest cell of the first side and the highest of the second, at places where all have numbers."""
    reached = sides["place"].map(values.groupby("place")["value"].mean())
    height = reached.where(sides["side"] == "first", -reached)
    ordered = sides.assign(height=height).sort_values("height", kind="stable")
    closest = ordered.drop_duplicates(["row", "side"])
    return sides[sides["is_lost"] | sides.index.isin(closest.index)]


def _differences(
    study: Study, results: Results, sides: pd.DataFrame, values: pd.DataFrame, claim: Claim
) -> dict[int, tuple[pd.Series[float], bool]]:
    """Row -> what the sides differ by, and whether that is of clients of one run; no row lacks numbers.

    Accuracies are compared client by client, all else by seed.
    """
    known = sides[~sides["is_lost"]]
    by_seed = claim.measure or claim.average or claim.second_clients or not claim.second
    if by_seed:
        means = _side_means(known, values, ["seed"]).pivot(
            index=["row", "seed"], columns="side", values="value"
        )
        units = _less(claim, means.reindex(columns=SIDES)).dropna().rename("units").reset_index("row")
        return {row: (part["units"], False) for row, part in parts_of(units, "row")}
    differences = {}
    scores = scores_of(results, known.drop_duplicates("place"), study.average)
    for row, part in parts_of(_side_means(known, scores, CLIENT), "row"):
        table = side_by_side(part.rename(columns={"side": "method"}), SIDES)
        is_of_one_run = table.common_runs(*SIDES) < LEAST_RUNS_IN_COMMON
        differences[row] = pd.Series(table.differences(*SIDES)), is_of_one_run
    return differences


def _side_means(sides: pd.DataFrame, values: pd.DataFrame, units: list[str]) -> pd.DataFrame:
    """The mean over the cells of each side of the units that all of them have, by row and side."""
    counts = sides.groupby(["row", "side"]).size().rename("count")
    found = sides[["row", "side", "place"]].merge(values, on="place").groupby(["row", "side", *units])
    means = found.agg(value=("value", "mean"), weight=("weight", "first"), cells=("value", "size"))
    means = means.reset_index().join(counts, on=["row", "side"])
    return means[means["cells"] == means["count"]]


def _less(claim: Claim, sides: pd.DataFrame) -> pd.Series[float]:
    """The first side less the second, where there is one."""
    if not claim.second:
        return sides["first"]
    first, second = sides["first"], sides["second"]
    return 100 * (first / second - 1) if claim.relative else first - second


def _place_text(study: Study, claim: Claim, place: pd.Series[Any]) -> str:
    """A place in words: ``Cora 20, non-overlapping``, with the point."""
    less = claim.second_clients
    texts = [
        f"{study.title_of(place['dataset'])} {place['clients']}",
        f"less {less}" if less and less != place["clients"] else "",
        place["scenario"],
        " less ".join(claim.points) if claim.points else place["point"],
    ]
    return ", ".join(filter(None, texts))


def _mean(places: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean over the measured places by seed: the seeds that all of them have."""
    measured = _measured(places)
    differences = pd.concat([place["differences"] for place in measured], axis=1).mean(axis=1, skipna=False)
    return {
        **measured[0],
        "place": f"mean of {len(measured)} of {len(places)} places",
        "differences": differences.dropna(),
        "published": float(np.mean([place["published"] for place in measured])),
    }


def _judged(claim: Claim, place: Mapping[str, Any]) -> dict[str, Any]:
    """The answer at a place: whether the 95 % interval lies within the claim's range, whose ends do not
    belong to it. There is no interval of fewer than two units and of clients of one run; an ``exact`` number
    stands for its own.
    """
    differences, (low, high) = place["differences"], claim.range
    mean = float(differences.mean())
    interval = None if claim.exact or place["is_of_one_run"] else t_interval(differences.tolist())
    start, end = interval or (-inf, inf)
    if claim.exact:
        start, end, low, high = mean, mean, low - ROUNDING, high + ROUNDING
    answer = HOLDS if low < start and end < high else FAILS if end <= low or high <= start else OPEN
    first, last = interval or (nan, nan)
    return {
        "difference": mean,
        "low": first,
        "high": last,
        "units": len(differences),
        "distance": min(inf if low == -inf else start - low, inf if high == inf else high - end),
        "answer": UNMEASURED if differences.empty else answer,
    }


def deciding(claim: Claim, places: pd.DataFrame) -> pd.Series[Any]:
    """The measured place that has the answer to the claim as a whole: the one that is least for it or, of a
    claim about most places, the one without which no majority holds.
    """
    known = places[places["units"] > 0]
    known = known.assign(support=known["answer"].map([FAILS, OPEN, HOLDS].index))
    known = known.sort_values(["support", "distance"], kind="stable")
    return known.iloc[(len(known) - 1) // 2 if claim.most else 0]


def claim_document(study: Study, results: Results, cells: pd.DataFrame, listed: Claims) -> Document | None:
    """The document of a list of claims; None where no run says anything about any of them."""
    places = answered(study, results, cells, listed.claims)
    is_known = places["units"] > 0
    if not is_known.any():
        return None
    grids = {table.name: table.grid or ", ".join(study.grids) for table in study.experiments}
    rows: list[tuple[str, str, str]] = []
    for number, found in parts_of(places, "number"):
        claim = listed.claims[number]
        label = f"{len(rows) + 1}. {claim.text}" + (f" ({claim.source})" if claim.source else "")
        answer, text = UNMEASURED, ", ".join(sorted(set().union(*found["lost"])))
        if (found["units"] > 0).any():
            answer, text = deciding(claim, found)["answer"], _difference_text(claim, found)
        names = dict.fromkeys(grids[name] for name in (*claim.tables, *claim.reduced) if name in grids)
        rows.append((label, answer, text or f"to run: {', '.join(names)}"))
    shown = pd.DataFrame(rows, columns=["Claim", "Answer", "Difference"])
    printed = places.loc[is_known | places["published"].notna(), PUBLIC]
    return Document(
        study,
        listed.name,
        listed.title,
        f"{_counted(shown['Answer'])}.",
        caption=(
            f"Test accuracy in percent, {AVERAGES[study.average]}; {reading_text(study.primary)}.",
            "A claim holds at a place where the 95 % interval of the difference lies above zero, or in the "
            "range that it names, does not hold where it lies outside, and can't be told else.",
        ),
        views=(listing("claims", "Claims", shown.set_index("Claim")),),
        details=(listing("differences", "Differences, place by place", printed.set_index("claim")),),
        fine_print=(
            "Differences are the first's less the second's: of accuracies in points, paired by client and "
            "seed; of other numbers, other clients and means over places, paired by seed. A claim holds as "
            "a whole where it does at every place measured, or where it says most at more than half. The "
            "place that decides stands with its difference. 'To run': the grids that would measure it. "
            "'Reduced': runs with less data and fewer rounds, which speak of order alone.",
            *listed.remarks,
        ),
        records={"differences": places[PUBLIC]},
    )


def _counted(answers: pd.Series[str]) -> str:
    """``3 of 9 hold, 2 do not, 4 not measured``."""
    counts = answers.value_counts()
    words = {FAILS: "do not", OPEN: OPEN, UNMEASURED: UNMEASURED}
    parts = [f"{counts[answer]} {word}" for answer, word in words.items() if answer in counts]
    return ", ".join([f"{counts.get(HOLDS, 0)} of {len(answers)} hold", *parts])


def _difference_text(claim: Claim, places: pd.DataFrame) -> str:
    """The difference at the place that decides, and how many places hold."""
    place = deciding(claim, places)
    digits = 1 if claim.relative else claim.measure.digits if claim.measure else 2
    interval = "no interval"
    if pd.notna(place["low"]):
        interval = f"[{signed(place['low'], digits)}, {signed(place['high'], digits)}]"
    text = f"{signed(place['difference'], digits)}{' %' if claim.relative else ''} {interval}"
    if len(places) > 1:
        text += f" in {place['place']}; {_counted(places['answer'])}"
    return text + ("; reduced" if place["is_reduced"] else "")
