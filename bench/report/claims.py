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

CELL = ["number", "document", "place"]
"""What names a cell that claims are about: the claim's number, the table, the place."""

CLIENT = ["partition", "seed", "client", "part"]
"""What names a score of a client."""


def answered(study: Study, results: Results, cells: pd.DataFrame, claims: Sequence[Claim]) -> pd.DataFrame:
    """What the runs say to every claim at every place, a row each: the columns ``PUBLIC``, and

    number      of the claim, from 0
    distance    by how much the interval lies within the claim's range
    is_reduced  the runs are those of a reduced protocol, as there are none of the whole one
    """
    board = cells[(cells["study"] == study.name) & (cells["comparison_number"] == 0)]
    board = board.merge(results.places[["place", "column_number", "inner"]], on="place")
    places = _places(study, results, board, claims)
    rows = []
    for number, claim in enumerate(claims):
        of_claim = [place for place in places if place["number"] == number]
        whole = [place for place in of_claim if place["table"] in claim.tables]
        reduced = [place for place in of_claim if place["table"] in claim.reduced]
        is_reduced = bool(_measured(reduced)) and not _measured(whole)
        chosen = reduced if is_reduced else whole
        if claim.average and _measured(chosen):
            chosen = [_mean(chosen)]
        about = {"claim": claim.text, "is_reduced": is_reduced}
        rows += [{**place, **about, **_judged(claim, place)} for place in chosen]
    return pd.DataFrame(rows, columns=[*PUBLIC, "number", "distance", "is_reduced"])


def _measured(places: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [place for place in places if len(place["differences"])]


def _places(
    study: Study, results: Results, board: pd.DataFrame, claims: Sequence[Claim]
) -> list[dict[str, Any]]:
    """What the sides of all claims differ by at every place of their tables, in the runs and in the paper."""
    tables = {str(name): lines for name, lines in board.groupby("document")}
    parts, values = [], []
    for number, claim in enumerate(claims):
        titles = {*claim.first, *claim.second}
        for name in (*claim.tables, *claim.reduced):
            if name not in tables or not titles <= set(tables[name]["line"]):
                continue
            lines = tables[name][tables[name]["line"].isin(titles)]
            is_measure = lines["measure"] == (claim.measure.name if claim.measure else "")
            is_shown = claim.measure is None or bool(is_measure.any())
            lines = lines[is_measure if is_measure.any() else lines["position"] == 0]
            if is_shown:
                found = lines[VALUE].merge(results.values, on=VALUE)
            else:
                found = values_of(results, lines, claim.measure)
            values.append(found.assign(number=number, document=name))
            parts.append(_sides(claim, lines).assign(number=number, is_shown=is_shown))
    if not parts:
        return []
    sides = _whole(pd.concat(parts, ignore_index=True))
    runs = pd.concat(values)
    # A place counts where every run with numbers has a value.
    sizes = results.members[results.members["is_done"]].groupby("place").size()
    runs = runs[runs.groupby(CELL)["run"].transform("size") == runs["place"].map(sizes)]
    sides = _closest(sides, runs)
    differences = _differences(study, results, sides, runs)

    cells = sides.groupby(["row", "side"])
    lines_of = cells["line"].agg(lambda lines: ", ".join(dict.fromkeys(lines)))
    printed = cells["published_mean"].mean().where(cells["published_mean"].count() == cells.size())
    published = _less(printed.unstack(), sides)
    places = []
    for place in sides.drop_duplicates("row").sort_values("row").to_dict("records"):
        row, claim = place["row"], claims[place["number"]]
        units, is_of_one_run = differences.get(row, (pd.Series(dtype=float), False))
        places.append(
            {
                "number": place["number"],
                "table": place["document"],
                "place": _place_text(study, claim, place),
                "first": lines_of[row, "first"],
                "second": lines_of.get((row, "second"), ""),
                "differences": units,
                "is_of_one_run": is_of_one_run,
                "published": published[row] if place["is_shown"] else nan,
            }
        )
    return places


def _sides(claim: Claim, lines: pd.DataFrame) -> pd.DataFrame:
    """The cells of both sides of a claim in a table, a row a cell and side, at the places of the first."""
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
    return pd.concat([first.assign(side="first"), second.assign(side="second")]).assign(
        has_second=bool(claim.second),
        is_relative=claim.relative,
        is_each=claim.each,
        by_seed=bool(claim.measure or claim.average or claim.second_clients or not claim.second),
    )


def _whole(sides: pd.DataFrame) -> pd.DataFrame:
    """The cells at places that have all sides of their claim; ``row`` numbers the places, ``is_lost`` says
    that one of their cells has no numbers.
    """
    places = sides.groupby(["number", "document", *WHERE, "point"], sort=False)
    has_sides = places["side"].transform("nunique") == 1 + sides["has_second"]
    sides = sides.assign(row=places.ngroup())[has_sides]
    return sides.assign(is_lost=(sides["n"] == 0).groupby(sides["row"]).transform("any"))


def _closest(sides: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The sides; where a claim is about each line, only the lowest cell of the first and the highest of the
    second, at places where all have numbers.
    """
    reached = sides.join(runs.groupby(CELL)["value"].mean().rename("reached"), on=CELL)["reached"]
    ordered = sides.assign(height=reached.where(sides["side"] == "first", -reached))
    closest = ordered.sort_values("height", kind="stable").drop_duplicates(["row", "side"])
    return sides[~sides["is_each"] | sides["is_lost"] | sides.index.isin(closest.index)]


def _differences(
    study: Study, results: Results, sides: pd.DataFrame, runs: pd.DataFrame
) -> dict[int, tuple[pd.Series[float], bool]]:
    """Row -> what the sides differ by, and whether that is of clients of one run; no row lacks numbers.

    Accuracies are compared client by client, all else by seed.
    """
    sides = sides.assign(count=sides.groupby(["row", "side"])["place"].transform("size"))
    known = sides[~sides["is_lost"]]
    by_seed, by_client = known[known["by_seed"]], known[~known["by_seed"]]
    means = _side_means(by_seed.merge(runs[[*CELL, "seed", "value"]], on=CELL).assign(weight=1.0), ["seed"])
    pairs = means.pivot(index=["row", "seed"], columns="side", values="value")
    units = _less(pairs, sides).dropna().rename("units").reset_index("row")
    differences = {row: (part["units"], False) for row, part in parts_of(units, "row")}
    scores = scores_of(results, by_client.drop_duplicates("place"), study.average).drop(columns="method")
    means = _side_means(by_client.merge(scores, on="place"), CLIENT)
    for row, part in parts_of(means.rename(columns={"side": "method"}), "row"):
        table = side_by_side(part, SIDES)
        is_of_one_run = table.common_runs(*SIDES) < LEAST_RUNS_IN_COMMON
        differences[row] = pd.Series(table.differences(*SIDES)), is_of_one_run
    return differences


def _side_means(values: pd.DataFrame, units: list[str]) -> pd.DataFrame:
    """The mean over the cells of each side of the units that all of them have, by row and side."""
    means = values.groupby(["row", "side", *units], as_index=False).agg(
        value=("value", "mean"),
        weight=("weight", "first"),
        cells=("value", "size"),
        count=("count", "first"),
    )
    return means[means["cells"] == means["count"]]


def _less(pairs: pd.DataFrame, sides: pd.DataFrame) -> pd.Series[float]:
    """The first side less the second, where there is one, of pairs with ``row`` in the index."""
    pairs = pairs.reindex(columns=SIDES)
    about = sides.drop_duplicates("row").set_index("row")[["has_second", "is_relative"]]
    about = about.loc[pairs.index.get_level_values("row")].set_axis(pairs.index)
    first, second = pairs["first"], pairs["second"]
    difference = (first - second).mask(about["is_relative"], 100 * (first / second - 1))
    return difference.where(about["has_second"], first)


def _place_text(study: Study, claim: Claim, place: Mapping[Any, Any]) -> str:
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
    if not (places["units"] > 0).any():
        return None
    rows: list[tuple[str, str, str]] = []
    for number, found in parts_of(places, "number"):
        claim = listed.claims[number]
        label = f"{len(rows) + 1}. {claim.text}" + (f" ({claim.source})" if claim.source else "")
        answer, text = UNMEASURED, "-"
        if (found["units"] > 0).any():
            answer, text = deciding(claim, found)["answer"], _difference_text(claim, found)
        rows.append((label, answer, text))
    shown = pd.DataFrame(rows, columns=["Claim", "Answer", "Difference"])
    return Document(
        study,
        listed.name,
        listed.title,
        f"{_counted(shown['Answer'])}.",
        caption=(
            f"Test accuracy in percent, {AVERAGES[study.average]}; {reading_text(study.primary)}.",
            "A claim holds at a place where the 95 % interval of the difference lies above zero, or in the "
            "range that it names, does not hold where it lies outside, and can't be told else. "
            "differences.csv has every place.",
        ),
        views=(listing("claims", "Claims", shown.set_index("Claim")),),
        fine_print=(
            "Differences are the first's less the second's: of accuracies in points, paired by client and "
            "seed; of other numbers, other clients and means over places, paired by seed. A claim holds as "
            "a whole where it does at every place measured, or where it says most at more than half. The "
            "place that decides stands with its difference. 'Reduced': runs with less data and fewer rounds, "
            "which speak of order alone.",
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
