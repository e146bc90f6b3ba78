"""The figures of an experiment: which frame each of them shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from bench.figures import style
from bench.figures.panels import Figure, Mark, Panel
from bench.frames.graded_cells import COLUMNS, Results
from bench.frames.stored_runs import WHERE, parts_of
from bench.grids.grid import PARTITION_SEED
from bench.metric_names import ACCURACY
from bench.statistics.summary import with_intervals
from bench.studies.experiment import Experiment
from bench.studies.measures import Measure
from bench.studies.members import Members
from bench.studies.settings import PER_SEED, Column
from bench.studies.study import Study
from bench.studies.wording import AVERAGES, STAGES, ranges, reading_text

FEW = 6
"""Curves that can be told apart in one drawing; of more, each has a small drawing of its own."""

PAGE = 6
"""Panels of a figure. Of more panels there is a figure a data set."""

ROUNDED = 9
"""Decimals of a difference: equal ones stay in the order of clients."""

SMALL_DRAWINGS = (
    " Every method has a drawing of its own, before all others in grey, with its last value above it."
)
BAND = "line: mean over seeds, band: 95 % interval of the mean (Student's t, of three seeds or more)."

INTERVAL = ["n", "mean", "std", "low", "high"]
LINE = ["panel", "line_number", "place", *WHERE, "method"]
"""Columns that say which line a row is of."""


@dataclass(frozen=True, eq=False)
class Shown:
    """What an experiment's figures show: its selected ``cells``, as the cells frame has them."""

    study: Study
    experiment: Experiment
    results: Results
    cells: pd.DataFrame

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of the experiment's cells."""
        return self.experiment.measures or self.study.measures

    @cached_property
    def marks(self) -> dict[int, Mark]:
        """Line number -> how the line is drawn and named in a figure's frame: as its method or, where several
        lines have one method, by its title.
        """
        places = self.results.places
        own = places[(places["study"] == self.study.name) & (places["document"] == self.experiment.name)]
        own = own.sort_values("line_number")
        lines = dict(zip(own["line_number"], own["line_object"], strict=True))
        counts = Counter(line.method for line in lines.values() if not line.setting)
        looks = style.looks_of(self.study, tuple(lines.values()))
        marks = {}
        for number, line in lines.items():
            title = self.study.line_title(line)
            is_alone = counts[line.method] == 1 and not line.setting
            marks[number] = Mark(line.method if is_alone else title, title, looks[line])
        return marks

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The cells beside the first comparison, by column and line. Beside the columns of the cells frame:
        ``method`` is the name of the line in a figure's frame, ``panel`` the number of the column, ``x`` the
        place of the point on the axis, ``is_main`` of the first measure and point, ``is_plain`` in the usual
        settings and of the line's own method, ``is_rival`` neither the baseline nor a reference, and of the
        experiment's own lines.
        """
        places = ["place", "line_number", "column_number", "reads", "point_object", "line_object"]
        rows = self.cells.loc[self.cells["comparison_number"] == 0, list(COLUMNS)]
        rows = rows.merge(self.results.places[places], on="place")
        is_first = rows["point_object"].map(lambda point: point == self.experiment.points[0])
        others = (self.study.baseline, *self.study.references)
        is_own = np.array([line.is_own for line in rows["line_object"]], bool)
        rows = rows.assign(
            panel=rows["column_number"],
            x=rows["point_object"].map(lambda point: point.x),
            is_main=is_first & (rows["measure"] == self.measures[0].name),
            is_plain=rows["usual"] & (rows["reads"] == rows["method"]),
            is_rival=is_own & ~rows["method"].isin(others),
            method=[self.marks[number].method for number in rows["line_number"]],
        )
        return rows.sort_values(["panel", "line_number"], kind="stable", ignore_index=True)

    @cached_property
    def lines(self) -> pd.DataFrame:
        """The rows of lines with numbers under the usual settings, each run once."""
        rows = self.rows
        return rows[rows["is_main"] & rows["is_plain"] & (rows["n"] > 0)]

    def members(self, lines: pd.DataFrame, stage: str = "trained", rule: str = "") -> Members:
        """The runs with numbers of these lines; what their clients score only by a ``rule``."""
        members = self.results.members
        rows = members[members["is_done"] & members["place"].isin(lines["place"])]
        test = self.results.clients_at(stage, rule) if rule else pd.DataFrame()
        return Members(rows, self.results.source, ACCURACY, stage, rule, test, self.results.settings)

    def reading(self, measure: Measure | None = None) -> str:
        """Stage and rule of a measure, or of the primary comparison, and how clients are averaged."""
        reading = (measure and measure.reading) or self.study.primary
        return f"{reading_text(reading)}, {AVERAGES[self.study.average]}"

    def figures(
        self,
        kind: str,
        name: str,
        data: pd.DataFrame,
        columns: Sequence[str],
        quantity: str,
        caption: str,
        **options: Any,
    ) -> list[Figure]:
        """A figure of panels of a ``kind``, in parts that fit a page; none without data.

        Each ``panel`` of the data has the ``columns`` beside where a line is measured. The ``caption`` gets
        the seeds. Many panels, and several of many curves, have a figure a data set.
        """
        lines = data.groupby("panel")["line_number"].nunique()
        is_crowded = kind == "curves" and bool((lines > FEW).any())
        is_split = len(lines) > (1 if is_crowded else PAGE)
        members = self.results.members
        places = self.cells.loc[self.cells["usual"], "place"]
        seeds = ranges(members.loc[members["is_done"] & members["place"].isin(places), "seed"])
        caption = f"{caption}{SMALL_DRAWINGS if is_crowded else ''} Seeds: {seeds}."
        figures = []
        data = data.assign(part=data["dataset"] if is_split else "")
        for dataset, part in data.groupby("part", sort=False):
            panels = []
            for _, rows in parts_of(part, "panel"):
                title = self.study.column_title(Column(*rows[WHERE].iloc[0]))
                frame = rows[[*WHERE, "method", *columns]].reset_index(drop=True)
                marks = tuple(self.marks[line] for line in rows["line_number"].unique())
                panels.append(Panel("multiples" if is_crowded else kind, title, frame, marks, **options))
            ending = f"_{re.sub('[^A-Za-z0-9.-]+', '-', str(dataset))}" if is_split else ""
            stem = f"{self.study.name}_{self.experiment.name}_{name}{ending}"
            title = f"{self.study.title}: {self.experiment.title}. {quantity}: mean over seeds"
            if "low" in columns and part.loc[part["n"] > 0, "low"].notna().any():  # not of published values
                title += ", 95 % interval"
            figures.append(Figure(stem, caption, panels, title))
        return figures


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def lines(shown: Shown) -> list[Figure]:
    """The first measure of every line beside its published value, also in columns of which nothing was run.

    Nobody knows the interval of a published value: it has the deviation that is printed.
    """
    rows = shown.rows[shown.rows["is_main"]]
    measured = with_intervals(rows[rows["n"] > 0]).assign(kind="measured")
    printed = rows[rows["published_mean"].notna()]
    mean, std = printed["published_mean"], printed["published_std"]
    printed = printed.assign(kind="published", n=0, mean=mean, std=std, low=mean - std, high=mean + std)
    data = pd.concat([measured, printed]).sort_values(["panel", "line_number"], kind="stable")
    measure = shown.measures[0]
    caption = (
        f"{measure.meaning.capitalize()}: {shown.reading(measure)}; filled: measured mean "
        "over seeds, open: published, alone where nothing was run; bar: 95 % interval of the measured mean, "
        "of three seeds or more, and the standard deviation that is printed with a published one."
    )
    return shown.figures("pairs", "lines", data, ["kind", *INTERVAL], _capital(measure.meaning), caption)


def convergence(shown: Shown) -> list[Figure]:
    """Test accuracy by round: mean over clients, then mean and interval over seeds. A round has parts where
    every local epoch was evaluated.
    """
    parts = [shown.lines[LINE].iloc[:0].assign(row=0, n=0, mean=0.0, std=0.0)]
    for stage, lines in parts_of(shown.lines, "stage"):
        members = shown.members(lines, stage)
        curves = members.curves()
        curves["place"] = curves["member"].map(members.rows["place"])
        means = curves.groupby(["place", "row"])["value"].agg(n="count", mean="mean", std="std")
        rows = lines[LINE].merge(means.reset_index(), on="place")
        if stage == "trained":
            settings = [shown.results.settings[place] for place in rows["place"]]
            by_epoch = np.array([one.get("protocol.evaluate") == "epoch" for one in settings], bool)
            epochs = np.array([int(one["protocol.local_epochs"]) for one in settings])
            rows["row"] = rows["row"] / np.where(by_epoch, epochs, 1)
        parts.append(rows)
    data = with_intervals(pd.concat(parts)).rename(columns={"row": "round"})
    data = data.sort_values(["panel", "line_number"], kind="stable")
    # A model of all data in one place is drawn beside the others on the same data, as far as those go.
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
    return shown.figures("curves", "convergence", data, columns, "Test accuracy by round", caption)


def differences(shown: Shown) -> list[Figure]:
    """Every client's accuracy minus the baseline's, sorted: who is hurt, and by how much; of the experiment's
    own lines.

    Clients are averaged over seeds, but apart where each seed has its partition: then client 3 of one seed
    has nothing to do with client 3 of another.
    """
    baseline = shown.study.title_of(shown.study.baseline)
    lines = shown.lines[shown.lines["is_rival"]]
    parts = []
    for (stage, rule), part in parts_of(lines, ["stage", "rule"]):
        members = shown.members(part, stage, rule)
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
        f"over seeds that share a partition, sorted for each method by itself: {shown.reading()}; below 0: "
        f"clients that are better off with {baseline}."
    )
    return shown.figures(
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


def points(shown: Shown) -> list[Figure]:
    """Every measure along the experiment's points, a figure each, of lines with two points or more."""
    axis = shown.experiment.axis
    figures: list[Figure] = []
    for measure in shown.measures:
        rows = shown.rows
        rows = rows[(rows["measure"] == measure.name) & (rows["n"] > 0) & rows["x"].notna()]
        rows = rows[rows.groupby(["panel", "line_number"])["x"].transform("size") > 1]
        data = with_intervals(rows).rename(columns={"x": axis})
        caption = f"{measure.meaning.capitalize()}: {shown.reading(measure)}; {BAND}"
        quantity, columns = f"{_capital(measure.meaning)} by {axis}", [axis, *INTERVAL]
        options = {"x": axis, "x_label": _capital(axis)}
        figures += shown.figures("curves", measure.name, data, columns, quantity, caption, **options)
    return figures


DRAWINGS: dict[str, Callable[[Shown], list[Figure]]] = {
    "lines": lines,
    "convergence": convergence,
    "differences": differences,
    "points": points,
}
"""How each of ``bench.studies.experiment.Figure`` is drawn."""

MAIN = ("convergence", "differences")
"""Figures of a main table."""


def figures(results: Results, study: Study, experiment: Experiment, cells: pd.DataFrame) -> Iterator[Figure]:
    """The figures that an experiment names, those of them in which there is something to draw.

    ``cells`` are the experiment's selected rows of the cells frame.
    """
    shown = Shown(study, experiment, results, cells)
    for name in experiment.figures or (MAIN if experiment.main else ()):
        yield from DRAWINGS[name](shown)
