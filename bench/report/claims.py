"""The answers that runs give to a study's claims, and the document of a list of claims."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from math import inf, nan
from typing import Any

import numpy as np
import pandas as pd

from bench.frames.graded_cells import VALUE, Results, values_of
from bench.frames.ranking import scores_of
from bench.frames.stored_runs import WHERE, parts_of, rows_of
from bench.report.document import Document, listing
from bench.statistics.paired import LEAST_RUNS_IN_COMMON, paired
from bench.statistics.summary import t_interval
from bench.studies.claims import Claim, Claims
from bench.studies.study import Study
from bench.studies.wording import AVERAGES, reading_text, signed

HOLDS, FAILS, OPEN, UNMEASURED = "holds", "does not hold", "can't be told", "not measured"
"""Answers to a claim."""

ROUNDING = 1e-9
"""The largest difference between binary fractions that count as equal."""

PUBLIC = ["claim", "table", "place", "first", "second"]
PUBLIC += ["difference", "low", "high", "units", "published", "answer"]
"""Columns of ``differences.csv``."""

CELL = ["document", *WHERE, "point", "line", "place", "n", "published_mean"]
"""The columns of a cell that claims use."""

CLIENT = ["partition", "seed", "client", "part", "weight"]
"""The columns that identify a client's score."""

Row = dict[str, Any]

Numbers = dict[Any, float]
"""Unit of a place -> value. The units are seeds, or the clients of runs."""


def answered(study: Study, results: Results, cells: pd.DataFrame, claims: Sequence[Claim]) -> pd.DataFrame:
    """The answers of the runs: a row for every claim and place. Columns are ``PUBLIC`` and

    number      the claim's number, from 0
    distance    from the interval to the nearer end of the claim's range; negative if it goes outside
    is_reduced  the answer uses a reduced protocol, because the whole protocol has no runs
    """
    board = cells[(cells["study"] == study.name) & (cells["comparison_number"] == 0)]
    board = board.merge(results.places[["place", "column_number", "inner"]], on="place")
    board = board.assign(done=board["place"].map(results.done_of(board)["place"].value_counts()))
    tables = {str(name): lines for name, lines in board.groupby("document")}
    results = results._replace(values=results.values[results.values["place"].isin(board["place"])])
    accuracies = board[(board["measure"] == "") | (board["position"] == 0)].sort_values("measure")
    scores = scores_of(results, accuracies.drop_duplicates("place"), study.average)
    places_of = partial(_places, study, results, _by_place(scores, CLIENT))
    rows = []
    for number, claim in enumerate(claims):
        whole, reduced = (
            [row for name in names if name in tables for row in places_of(claim, tables[name])]
            for names in (claim.tables, claim.reduced)
        )
        is_measured = [any(place["differences"] for place in places) for places in (whole, reduced)]
        is_reduced = is_measured == [False, True]
        about = reduced if is_reduced else whole
        measured = [place for place in about if place["differences"]]
        if claim.average and measured:
            mean = {
                "place": f"mean of {len(measured)} of {len(about)} places",
                "differences": _mean([place["differences"] for place in measured]),
                "published": np.mean([place["published"] for place in measured]),
            }
            about = [{**measured[0], **mean}]
        facts = {"number": number, "claim": claim.text, "is_reduced": is_reduced}
        rows += [{**place, **facts, **_judged(claim, place)} for place in about]
    return pd.DataFrame(rows, columns=[*PUBLIC, "number", "distance", "is_reduced"])


def _places(
    study: Study, results: Results, scores: dict[int, Numbers], claim: Claim, table: pd.DataFrame
) -> list[Row]:
    """The measured and the published difference between a claim's sides, at every place of a table.

    Accuracies are compared client by client (``scores`` by place), other measures by seed.
    """
    order = [*claim.first, *claim.second]
    if not set(order) <= set(table["line"]):
        return []
    cells = table[table["line"].isin(order)]
    is_measure = cells["measure"] == (claim.measure.name if claim.measure else "")
    is_shown = claim.measure is None or bool(is_measure.any())
    cells = cells[is_measure if is_measure.any() else cells["position"] == 0]
    cells = cells.assign(line_number=cells["line"].map(order.index))
    cells = cells.sort_values(["column_number", "line_number", "inner"])
    values = results.values[results.values["place"].isin(cells["place"])]
    values = cells[VALUE].merge(values, on=VALUE)
    if not is_shown:
        values = values_of(results, cells, claim.measure)
    # A place counts only if every run with numbers has a value.
    done = cells.drop_duplicates("place").set_index("place")["done"]
    by_seed = {place: one for place, one in _by_place(values, ["seed"]).items() if len(one) == done[place]}
    is_by_client = bool(claim.second) and not (claim.measure or claim.average or claim.second_clients)
    numbers = scores if is_by_client else by_seed

    cells_by_place = defaultdict(list)
    for cell in rows_of(cells[CELL]):
        cells_by_place[cell.dataset, cell.scenario, cell.clients, cell.point].append(cell)
    places = []
    for (dataset, scenario, clients, point), here in list(cells_by_place.items()):
        other_clients = claim.second_clients or clients
        other_point = claim.points[1] if claim.points else point
        first = [cell for cell in here if cell.line in claim.first]
        second = cells_by_place[dataset, scenario, other_clients, other_point]
        second = [cell for cell in second if cell.line in claim.second]
        is_meant = claim.only.has(dataset, scenario, clients) and point in (claim.points or (point,))[:1]
        if not is_meant or not first or (claim.second and not second):
            continue
        is_known = all(cell.n > 0 for cell in (*first, *second))
        if claim.each and is_known:
            means = {place: np.mean([*values.values()]) for place, values in by_seed.items()}
            first = [min(first, key=lambda cell: means.get(cell.place, inf))]
            second = [max(second, key=lambda cell: means.get(cell.place, -inf))]
        sides = [[numbers.get(cell.place, {}) for cell in side if is_known] for side in (first, second)]
        differences, is_of_one_run = _differences(claim, _mean(sides[0]), _mean(sides[1]), is_by_client)
        published = [np.mean([cell.published_mean for cell in side] or [nan]) for side in (first, second)]
        column = f"{study.title_of(dataset)} {clients}"
        if other_clients != clients:
            column += f", less {other_clients}"
        places.append(
            {
                "table": first[0].document,
                "place": ", ".join(filter(None, [column, scenario, " less ".join(claim.points or [point])])),
                "first": ", ".join(cell.line for cell in first),
                "second": ", ".join(cell.line for cell in second),
                "differences": differences,
                "is_of_one_run": is_of_one_run,
                "published": _less(claim, *published) if is_shown else nan,
            }
        )
    return places


def _by_place(rows: pd.DataFrame, unit: list[str]) -> dict[int, Numbers]:
    """Place -> value by unit."""
    numbers: dict[int, Numbers] = defaultdict(dict)
    for place, *key, value in zip(*(rows[name] for name in ("place", *unit, "value")), strict=True):
        numbers[place][tuple(key)] = value
    return numbers


def _mean(parts: Sequence[Numbers]) -> Numbers:
    """The mean over the parts for every unit that all parts have."""
    units = [unit for unit in (parts[0] if parts else ()) if all(unit in part for part in parts)]
    return {unit: float(np.mean([part[unit] for part in parts])) for unit in units}


def _differences(claim: Claim, first: Numbers, second: Numbers, is_by_client: bool) -> tuple[Numbers, bool]:
    """The differences by seed, or by unit of the paired tests; whether these are clients of a single run."""
    if not (is_by_client and first and second):
        seeds = [seed for seed in first if seed in second or not claim.second]
        return {seed: _less(claim, first[seed], second.get(seed, nan)) for seed in seeds}, False
    rows = [("first", *unit, value) for unit, value in first.items()]
    rows += [("second", *unit, value) for unit, value in second.items()]
    scores = pd.DataFrame(rows, columns=["method", *CLIENT, "value"], dtype=object)
    ((_, differences, _, runs),) = paired(scores, ["first", "second"])
    return dict(enumerate(differences.tolist())), runs < LEAST_RUNS_IN_COMMON


def _less(claim: Claim, first: float, second: float) -> float:
    """First side minus second side, in percent for ``relative`` claims. Without a second side: the first."""
    if not claim.second:
        return first
    return 100 * (first / second - 1) if claim.relative else first - second


def _judged(claim: Claim, place: Row) -> Row:
    """The answer at a place. A claim holds if the 95 % interval lies strictly within its range. Fewer than
    two units, or clients of a single run, have no interval. For an ``exact`` claim the mean alone must lie
    in the range.
    """
    differences, (low, high) = [*place["differences"].values()], claim.range
    mean = float(np.mean(differences)) if differences else nan
    interval = None if claim.exact or place["is_of_one_run"] else t_interval(differences)
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
        "answer": answer if differences else UNMEASURED,
    }


def deciding(claim: Claim, places: pd.DataFrame) -> pd.Series[Any]:
    """The measured place that decides the claim as a whole. It is the place that supports the claim least.
    If the claim is about most places, it is the median place: no majority holds without it.
    """
    known = places[places["units"] > 0]
    known = known.assign(support=known["answer"].map([FAILS, OPEN, HOLDS].index))
    known = known.sort_values(["support", "distance"], kind="stable")
    return known.iloc[(len(known) - 1) // 2 if claim.most else 0]


def claim_document(study: Study, results: Results, cells: pd.DataFrame, listed: Claims) -> Document | None:
    """The document of a list of claims; None if no claim was measured at any place."""
    places = answered(study, results, cells, listed.claims)
    if not (places["units"] > 0).any():
        return None
    shown = pd.DataFrame(columns=["Answer", "Difference"], dtype=object).rename_axis("Claim")
    for number, found in parts_of(places, "number"):
        claim, answer, text = listed.claims[number], UNMEASURED, "-"
        if (found["units"] > 0).any():
            place = deciding(claim, found)
            answer, text = place["answer"], _difference_text(claim, found, place)
        label = f"{len(shown) + 1}. {claim.text}" + (f" ({claim.source})" if claim.source else "")
        shown.loc[label] = answer, text
    return Document(
        study,
        listed.name,
        listed.title,
        f"{_counted(shown['Answer'])}.",
        caption=(
            f"Test accuracy in percent, {AVERAGES[study.average]}; {reading_text(study.primary)}.",
            "A claim holds at a place where the 95 % interval of the difference lies above zero, or in its "
            "range, does not hold where it lies outside, and can't be told else; differences.csv has all.",
        ),
        views=(listing("claims", "Claims", shown),),
        fine_print=(
            "Accuracies are compared in points by client and seed, all else by seed. A claim holds where it "
            "does at every place measured, or where it says most at more than half. The place that decides "
            "stands with its difference. 'Reduced': runs with less data and fewer rounds.",
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


def _difference_text(claim: Claim, places: pd.DataFrame, place: pd.Series[Any]) -> str:
    """The difference at the deciding ``place``, and the number of ``places`` for every answer."""
    digits = 1 if claim.relative else claim.measure.digits if claim.measure else 2
    interval = "no interval"
    if pd.notna(place["low"]):
        interval = f"[{signed(place['low'], digits)}, {signed(place['high'], digits)}]"
    text = f"{signed(place['difference'], digits)}{' %' if claim.relative else ''} {interval}"
    if len(places) > 1:
        text += f" in {place['place']}; {_counted(places['answer'])}"
    return text + ("; reduced" if place["is_reduced"] else "")
