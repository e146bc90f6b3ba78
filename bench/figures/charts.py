"""The figures of an experiment: their data, titles and captions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench.figures import style
from bench.figures.panels import Figure
from bench.frames.graded_cells import DocumentCells
from bench.frames.stored_runs import WHERE, parts_of
from bench.grids.grid import PARTITION_SEED
from bench.metric_names import ACCURACY
from bench.statistics.summary import with_intervals
from bench.studies.measures import Measure
from bench.studies.members import Members
from bench.studies.settings import PER_SEED, Column
from bench.studies.wording import AVERAGES, STAGES, ranges, reading_text

FEW = 6
"""The most curves in one drawing. If there are more, each curve gets a small drawing of its own."""

PAGE = 6
"""The most panels of a figure. If there are more, each data set gets a figure of its own."""

ROUNDED = 9
"""Decimals of a difference. Rounding makes equal differences equal, so that clients keep their order."""

SMALL_DRAWINGS = (
    " Every method has a drawing of its own, before all others in grey, with its last value above it."
)
BAND = "line: mean over seeds, band: 95 % interval of the mean (Student's t, of three seeds or more)."

INTERVAL = ["n", "mean", "std", "low", "high"]
LINE = ["panel", "line_number", "place", *WHERE, "method", "look"]
"""The columns that identify the line of a row."""


def _measures(shown: DocumentCells) -> tuple[Measure, ...]:
    return shown.experiment.measures or shown.study.measures


def _rows(shown: DocumentCells) -> pd.DataFrame:
    """The cells of the first comparison, by column and line, with new columns. ``panel`` is the column's
    number, ``x`` the point's value on the axis, ``look`` the line's look. ``method`` is the line's name in a
    figure's data: its method, or its title if the method is not enough. ``is_main`` marks the first measure
    and point, ``is_plain`` usual settings and runs of the line's own method, ``is_rival`` the experiment's
    own lines without baseline and references.
    """
    study, places = shown.study, shown.results.places
    places = places[(places["study"] == study.name) & (places["document"] == shown.experiment.name)]
    lines = tuple(dict.fromkeys(places.sort_values("line_number")["line_object"]))
    looks = style.looks_of(study, lines)
    counts = Counter(line.method for line in lines if not line.setting)
    is_alone = {line: counts[line.method] == 1 and not line.setting for line in lines}
    rows = shown.cells[shown.cells["comparison_number"] == 0]
    is_own = np.array([line.is_own for line in rows["line_object"]], bool)
    rows = rows.assign(
        panel=rows["column_number"],
        x=rows["point_object"].map(lambda point: point.x),
        is_main=(rows["point_number"] == 0) & (rows["measure"] == _measures(shown)[0].name),
        is_plain=rows["usual"] & (rows["reads"] == rows["method"]),
        is_rival=is_own & ~rows["method"].isin((study.baseline, *study.references)),
        method=[line.method if is_alone[line] else looks[line].label for line in rows["line_object"]],
        look=rows["line_object"].map(lambda line: looks[line]),
    )
    return rows.sort_values(["panel", "line_number"], kind="stable", ignore_index=True)


def _lines(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of lines with numbers under the usual settings. Each run occurs once."""
    return rows[rows["is_main"] & rows["is_plain"] & (rows["n"] > 0)]


def _members(shown: DocumentCells, lines: pd.DataFrame, stage: str = "trained", rule: str = "") -> Members:
    """The runs with numbers of these lines. The clients' test scores are read only if a ``rule`` is given."""
    results, rows = shown.results, shown.results.done_of(lines)
    test = results.clients_at(stage, rule) if rule else pd.DataFrame()
    return Members(rows, results.source, ACCURACY, stage, rule, test, results.settings)


def _reading(shown: DocumentCells, measure: Measure | None = None) -> str:
    """Words for stage and rule (of the measure, else the study's primary ones) and the average of clients."""
    reading = (measure and measure.reading) or shown.study.primary
    return f"{reading_text(reading)}, {AVERAGES[shown.study.average]}"


def _figures(
    shown: DocumentCells,
    kind: str,
    name: str,
    data: pd.DataFrame,
    columns: Sequence[str],
    quantity: str,
    caption: str,
    **options: Any,
) -> list[Figure]:
    """One figure with panels of a ``kind``, or one for each data set; none if ``data`` is empty.

    The data keeps ``panel``, federation, ``method`` and ``columns``. Seeds are added to the caption.
    Data sets are apart if there are over ``PAGE`` panels, or several and one has over ``FEW`` curves.
    """
    study, experiment = shown.study, shown.experiment
    lines = data.groupby("panel")["line_number"].nunique()
    is_crowded = kind == "curves" and bool((lines > FEW).any())
    is_split = len(lines) > (1 if is_crowded else PAGE)
    seeds = ranges(shown.results.done_of(shown.cells[shown.cells["usual"]])["seed"])
    caption = f"{caption}{SMALL_DRAWINGS if is_crowded else ''} Seeds: {seeds}."
    figures = []
    data = data.assign(part=data["dataset"] if is_split else "").sort_values("panel", kind="stable")
    firsts = data.drop_duplicates("panel").set_index("panel")
    titles = {panel: study.column_title(Column(*where)) for panel, *where in firsts[WHERE].itertuples()}
    data["panel"] = data["panel"].map(titles)
    for dataset, part in data.groupby("part", sort=False):
        ending = f"_{re.sub('[^A-Za-z0-9.-]+', '-', str(dataset))}" if is_split else ""
        title = f"{study.title}: {experiment.title}. {quantity}: mean over seeds"
        if "low" in columns and part.loc[part["n"] > 0, "low"].notna().any():  # published: n = 0
            title += ", 95 % interval"
        figure = Figure(
            f"{study.name}_{experiment.name}_{name}{ending}",
            "multiples" if is_crowded else kind,
            title,
            caption,
            part[["panel", *WHERE, "method", *columns]].reset_index(drop=True),
            dict(zip(part["method"], part["look"], strict=True)),
            **options,
        )
        figures.append(figure)
    return figures


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def lines(shown: DocumentCells, rows: pd.DataFrame) -> list[Figure]:
    """The first measure of every line with its published value, also in columns without runs.

    The interval of a published value is unknown. Its bar shows the printed standard deviation.
    """
    rows = rows[rows["is_main"]]
    measured = with_intervals(rows[rows["n"] > 0]).assign(kind="measured")
    printed = rows[rows["published_mean"].notna()]
    mean, std = printed["published_mean"], printed["published_std"]
    printed = printed.assign(kind="published", n=0, mean=mean, std=std, low=mean - std, high=mean + std)
    data = pd.concat([measured, printed]).sort_values(["panel", "line_number"], kind="stable")
    measure = _measures(shown)[0]
    caption = (
        f"{measure.meaning.capitalize()}: {_reading(shown, measure)}; filled: measured mean "
        "over seeds, open: published, alone where nothing was run; bar: 95 % interval of the measured mean, "
        "of three seeds or more, and the standard deviation that is printed with a published one."
    )
    return _figures(shown, "pairs", "lines", data, ["kind", *INTERVAL], _capital(measure.meaning), caption)


def convergence(shown: DocumentCells, rows: pd.DataFrame) -> list[Figure]:
    """Test accuracy by round: mean over clients, then mean and interval over seeds. If every local epoch was
    evaluated, rounds are fractions.
    """
    shown_lines = _lines(rows)
    parts = [shown_lines[LINE].iloc[:0].assign(row=0, n=0, mean=0.0, std=0.0)]
    for stage, lines in parts_of(shown_lines, "stage"):
        members = _members(shown, lines, stage)
        curves = members.curves()
        curves["place"] = curves["member"].map(members.rows["place"])
        means = curves.groupby(["place", "row"])["value"].agg(n="count", mean="mean", std="std")
        rounds = lines[LINE].merge(means.reset_index(), on="place")
        if stage == "trained":
            settings = [shown.results.settings[place] for place in rounds["place"]]
            by_epoch = np.array([one.get("protocol.evaluate") == "epoch" for one in settings], bool)
            epochs = np.array([int(one["protocol.local_epochs"]) for one in settings])
            rounds["row"] = rounds["row"] / np.where(by_epoch, epochs, 1)
        parts.append(rounds)
    data = with_intervals(pd.concat(parts)).rename(columns={"row": "round"})
    data = data.sort_values(["panel", "line_number"], kind="stable")
    # A model of all data in one place is drawn in the panels of the same data, up to their last round.
    is_whole = data["clients"] == 1
    ends = (
        data[~is_whole].groupby(["dataset", "scenario", "panel"])["round"].max().rename("end").reset_index()
    )
    guests = data[is_whole].drop(columns="panel").merge(ends, on=["dataset", "scenario"])
    guests = guests[guests["round"] <= guests["end"]]
    data = pd.concat([data[~is_whole], guests]) if len(guests) else data
    if (data["round"] % 1 == 0).all():
        data = data.astype({"round": int})
    primary = shown.study.primary.stage
    caption = (
        f"Test accuracy of {STAGES[primary]} by round (stage {primary}, but for lines that are read at "
        f"another; no rule: all are shown), {AVERAGES[shown.study.average]}; {BAND} The axis need not show "
        "first rounds, nor curves far from the others."
    )
    columns = ["round", *INTERVAL]
    return _figures(shown, "curves", "convergence", data, columns, "Test accuracy by round", caption)


def differences(shown: DocumentCells, rows: pd.DataFrame) -> list[Figure]:
    """Every client's accuracy minus its own under the baseline, in points, sorted: which clients are hurt,
    and how much. Only the experiment's own lines are shown.

    Clients are averaged over seeds, unless each seed has its own partition: then client 3 of one seed has
    nothing to do with client 3 of another.
    """
    baseline = shown.study.title_of(shown.study.baseline)
    lines = _lines(rows)
    lines = lines[lines["is_rival"]]
    parts = []
    for (stage, rule), part in parts_of(lines, ["stage", "rule"]):
        members = _members(shown, part, stage, rule)
        parts.append(members.beside_baseline.join(members.rows[["place", "seed"]], on="member"))
    pairs = pd.concat(parts) if parts else lines
    if pairs.empty:
        return []
    settings = shown.results.settings
    is_apart = np.array([settings[place].get(PARTITION_SEED) == PER_SEED for place in pairs["place"]])
    pairs = pairs.assign(
        seed=pairs["seed"].where(is_apart, -1),
        difference=(100.0 * (pairs["value"] - pairs["value_alone"])).round(ROUNDED),
    )
    means = pairs.groupby(["place", "seed", "client"])["difference"].mean().reset_index()
    means = means.sort_values(["place", "difference"], kind="stable")
    by_place = means.groupby("place")["difference"]
    names = means["client"].astype(str)
    means = means.assign(
        client=names.where(means["seed"] < 0, names + " of seed " + means["seed"].astype(str)),
        share=100.0 * (by_place.cumcount() + 0.5) / by_place.transform("size"),
    )
    caption = (
        f"Every client's test accuracy minus its own under {baseline} with the same seed and partition, mean "
        f"over seeds that share a partition, sorted for each method by itself: {_reading(shown)}; below 0: "
        f"clients that are better off with {baseline}."
    )
    return _figures(
        shown,
        "curves",
        "differences",
        lines[LINE].merge(means, on="place"),
        ["client", "share", "difference"],
        f"Every client's test accuracy minus its own under {baseline}, sorted",
        caption,
        x="share",
        x_label="Clients, most hurt first (%)",
        y="difference",
        y_label=f"Points above {baseline}",
        level=0.0,
    )


def points(shown: DocumentCells, rows: pd.DataFrame) -> list[Figure]:
    """A figure for each measure: curves along the experiment's points, for lines with at least two points."""
    axis = shown.experiment.axis
    figures: list[Figure] = []
    for measure in _measures(shown):
        data = rows[(rows["measure"] == measure.name) & (rows["n"] > 0) & rows["x"].notna()]
        data = data[data.groupby(["panel", "line_number"])["x"].transform("size") > 1]
        data = with_intervals(data).rename(columns={"x": axis})
        caption = f"{measure.meaning.capitalize()}: {_reading(shown, measure)}; {BAND}"
        quantity, columns = f"{_capital(measure.meaning)} by {axis}", [axis, *INTERVAL]
        options = {"x": axis, "x_label": _capital(axis)}
        figures += _figures(shown, "curves", measure.name, data, columns, quantity, caption, **options)
    return figures


DRAWINGS: dict[str, Callable[[DocumentCells, pd.DataFrame], list[Figure]]] = {
    "lines": lines,
    "convergence": convergence,
    "differences": differences,
    "points": points,
}
"""Name in ``bench.studies.experiment.Figure`` -> function that makes the figures."""

MAIN = ("convergence", "differences")
"""The figures of a main table that names none."""


def figures(shown: DocumentCells) -> Iterator[Figure]:
    """The figures that an experiment names; a figure without data is left out."""
    rows = _rows(shown)
    for name in shown.experiment.figures or (MAIN if shown.experiment.main else ()):
        yield from DRAWINGS[name](shown, rows)
