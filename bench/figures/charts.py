"""The figures of an experiment: which frame each of them shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from bench.figures import style
from bench.figures.panels import Figure, Mark, Panel
from bench.frames.graded_cells import COLUMNS, Results
from bench.frames.stored_runs import WHERE, parts_of, rows_of
from bench.grids.grid import PARTITION_SEED
from bench.metric_names import ACCURACY
from bench.statistics.summary import with_intervals
from bench.studies.experiment import Experiment
from bench.studies.measures import Measure
from bench.studies.members import Members
from bench.studies.settings import PER_SEED, Column, epochs_at
from bench.studies.study import Study
from bench.studies.wording import AVERAGES, STAGES, ranges, reading_text

PAGE = 6
"""Panels of a figure. Of more panels there is a figure a data set."""

ROUNDED = 9
"""Decimals of a difference: equal ones stay in the order of clients."""

ARTEFACT = "collaboration"
"""Name under which a method keeps its last collaboration matrix: ``[clients, clients]``, or
``[layers, clients, clients]`` where it has one a layer."""

SMALL_DRAWINGS = (
    " Below, every method has a drawing of its own on the same axes, with its last value above it."
)
BAND = "line: mean over seeds, band: 95 % interval of the mean (Student's t, of three seeds or more)."

INTERVAL = ["n", "mean", "std", "low", "high"]
LINE = ["panel", "line_number", "place", *WHERE, "method", "is_ranked"]
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
        settings and of the line's own method, ``is_competitor`` no reference that trains nothing.
        """
        places = ["place", "line_number", "column_number", "reads", "point_object", "line_object"]
        rows = self.cells.loc[self.cells["comparison_number"] == 0, list(COLUMNS)]
        rows = rows.merge(self.results.places[places], on="place")
        is_first = rows["point_object"].map(lambda point: point == self.experiment.points[0])
        rows = rows.assign(
            panel=rows["column_number"],
            x=rows["point_object"].map(lambda point: point.x),
            is_main=is_first & (rows["measure"] == self.measures[0].name),
            is_plain=rows["usual"] & (rows["reads"] == rows["method"]),
            is_baseline=rows["method"] == self.study.baseline,
            is_proposed=rows["method"] == self.study.proposed,
            is_competitor=~rows["method"].isin(self.study.references),
            is_ranked=[line.ranked for line in rows["line_object"]],
            is_own=[line.is_own for line in rows["line_object"]],
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

    def panels(
        self, kind: str, data: pd.DataFrame, columns: Sequence[str], means: pd.DataFrame, **options: Any
    ) -> list[Panel]:
        """A panel a column of ``data``, whose frame has the ``columns`` beside where a line is measured.
        ``means`` say which lines matter.
        """
        panels = []
        for number, rows in parts_of(data, "panel"):
            first = rows.iloc[0]
            title = self.study.column_title(Column(first["dataset"], first["scenario"], first["clients"]))
            keys = key_lines(means[means["panel"] == number])
            marks = [replace(self.marks[line], key=line in keys) for line in rows["line_number"].unique()]
            frame = rows[[*WHERE, "method", *columns]].reset_index(drop=True)
            panels.append(Panel(kind, title, frame, tuple(marks), **options))
        return panels

    def figures(self, name: str, quantity: str, caption: str, panels: Sequence[Panel]) -> list[Figure]:
        """The figure of that name, in parts that fit a page; none where there is no panel.

        Crowded panels have a part a federation, many panels a part a data set. The title of a part says of
        which experiment and quantity it is and what is in it; the caption gets the seeds.
        """
        is_split = len(panels) > 1 and any(panel.is_crowded for panel in panels)
        where = WHERE if is_split else ["dataset"] * (len(panels) > PAGE)
        parts: dict[str, list[Panel]] = {}
        for panel in panels:
            places = panel.data.iloc[0][where]
            ending = "".join(f"_{re.sub('[^A-Za-z0-9.-]+', '-', str(place))}" for place in places)
            parts.setdefault(ending, []).append(panel)
        members = self.results.members
        places = self.cells.loc[self.cells["usual"], "place"]
        seeds = ranges(members.loc[members["is_done"] & members["place"].isin(places), "seed"])
        figures = []
        for ending, part in parts.items():
            data = pd.concat([panel.data for panel in part])
            below = SMALL_DRAWINGS if part[0].is_crowded else ""
            title = f"{self.study.title}: {self.experiment.title}. {quantity}: mean over seeds"
            if "low" in data and data.loc[data["n"] > 0, "low"].notna().any():  # not of published values
                title += ", 95 % interval"
            stem = f"{self.study.name}_{self.experiment.name}_{name}{ending}"
            figures.append(Figure(stem, f"{caption}{below} Seeds: {seeds}.", part, title))
        return figures


def key_lines(lines: pd.DataFrame) -> set[int]:
    """The numbers of the lines that matter among some of a column: the best of all that compete, of those of
    the method that the study proposes, and of those of its baseline.
    """
    lines = lines.dropna(subset="mean").sort_values("mean", ascending=False, kind="stable")
    competes = lines["is_ranked"] & lines["is_competitor"]
    groups = [lines.loc[one, "line_number"] for one in (competes, lines["is_proposed"], lines["is_baseline"])]
    return {int(group.iloc[0]) for group in groups if len(group)}


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
    panels = shown.panels("pairs", data, ["kind", *INTERVAL], rows)
    return shown.figures("lines", _capital(measure.meaning), caption, panels)


def curves(shown: Shown, name: str, axis: str) -> list[Figure]:
    """Test accuracy by round or by local epochs: mean over clients, then mean and interval over seeds.

    Local epochs count those of a warm-up. A round has parts where every epoch was evaluated.
    """
    parts = [shown.lines[:0].assign(x=0.0)]
    for stage, lines in parts_of(shown.lines, "stage"):
        members = shown.members(lines, stage)
        by_member = members.curves()
        by_member["place"] = by_member["member"].map(members.rows["place"])
        by_row = by_member.groupby(["place", "row"])["value"].agg(n="count", mean="mean", std="std")
        for place, rows in parts_of(with_intervals(by_row.reset_index()), "place"):
            settings = shown.results.settings[place]
            x = rows["row"]
            if name == "epochs":
                x = epochs_at(settings, x)
            elif stage == "trained" and settings.get("protocol.evaluate") == "epoch":
                x = x / int(settings["protocol.local_epochs"])
            parts.append(lines[LINE].merge(rows.assign(x=x), on="place"))
    data = pd.concat(parts).sort_values(["panel", "line_number"], kind="stable")
    data = _with_guests(data.rename(columns={"x": axis}), axis)
    columns = [axis, *INTERVAL]
    panels = shown.panels("curves", data, columns, shown.lines, x=axis, x_label=_capital(axis))
    for panel in panels:
        if (panel.data[axis] % 1 == 0).all():
            panel.data[axis] = panel.data[axis].astype(int)
    primary = shown.study.primary.stage
    caption = (
        f"Test accuracy of {STAGES[primary]} by {axis} (stage {primary}, but for lines that are read at "
        f"another; no rule: all are shown), {AVERAGES[shown.study.average]}; {BAND} The axis need not show "
        "first rounds, nor curves far from the others."
    )
    return shown.figures(name, f"Test accuracy by {axis}", caption, panels)


def _with_guests(curves: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Curves over rounds or epochs by panel.

    Lines that compete with none and have but one client, such as a model of all data, are drawn beside the
    others on the same data, as far as those go; a column of such lines alone has no panel then.
    """
    parts = [curves[:0]]
    for number, rows in parts_of(curves, "panel"):
        first = rows.iloc[0]
        same_data = (curves["dataset"] == first["dataset"]) & (curves["scenario"] == first["scenario"])
        others = curves[same_data & (curves["clients"] > 1)]
        guests = curves[same_data & (curves["clients"] == 1) & ~curves["is_ranked"]]
        if first["clients"] == 1 and len(others) and not rows["is_ranked"].any():
            continue
        is_new = ~guests["method"].isin(rows["method"]) & (guests[axis] <= rows[axis].max())
        parts += [rows, guests[is_new].assign(panel=number)]
    return pd.concat(parts)


def differences(shown: Shown) -> list[Figure]:
    """Every client's accuracy minus the baseline's, sorted: who is hurt, and by how much; of the experiment's
    own lines.

    Clients are averaged over seeds, but apart where each seed has its partition: then client 3 of one seed
    has nothing to do with client 3 of another.
    """
    baseline = shown.study.title_of(shown.study.baseline)
    lines = shown.lines[shown.lines["is_competitor"] & shown.lines["is_own"] & ~shown.lines["is_baseline"]]
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
    data = lines[LINE].merge(means, on="place")
    columns = ["client", "share", "difference"]
    options = {"x": "share", "x_label": "Clients, most hurt first (%)", "y": "difference", "level": 0.0}
    options["y_label"] = f"Points above {baseline}"
    panels = shown.panels("curves", data, columns, shown.lines, **options)
    caption = (
        f"Every client's test accuracy minus its own under {baseline} with the same seed and partition, mean "
        f"over seeds that share a partition, sorted for each method by itself: {shown.reading()}; below 0: "
        f"clients that are better off with {baseline}."
    )
    quantity = f"Every client's test accuracy minus its own under {baseline}, sorted"
    return shown.figures("differences", quantity, caption, panels)


def points(shown: Shown) -> list[Figure]:
    """Every measure along the experiment's points, a figure each, of lines with two points or more."""
    axis = shown.experiment.axis
    figures: list[Figure] = []
    for measure in shown.measures:
        rows = shown.rows
        rows = rows[(rows["measure"] == measure.name) & (rows["n"] > 0) & rows["x"].notna()]
        rows = rows[rows.groupby(["panel", "line_number"])["x"].transform("size") > 1]
        data = with_intervals(rows).rename(columns={"x": axis})
        panels = shown.panels("curves", data, [axis, *INTERVAL], data, x=axis, x_label=_capital(axis))
        caption = f"{measure.meaning.capitalize()}: {shown.reading(measure)}; {BAND}"
        figures += shown.figures(measure.name, f"{_capital(measure.meaning)} by {axis}", caption, panels)
    return figures


def collaboration(shown: Shown) -> list[Figure]:
    """Who learns from whom, a panel a line and column: the last collaboration matrix of every method that
    keeps one, the mean over layers and over seeds that share a partition.
    """
    members = shown.members(shown.lines)
    kept = members.artefacts(ARTEFACT)
    panels = []
    for row in rows_of(shown.lines):
        runs = members.rows[members.rows["place"] == row.place]
        if runs["partition_hash"].nunique() > 1:
            runs = runs[:1]  # clients of other partitions are other clients: the first seed's alone
        square = (row.clients, row.clients)
        arrays = [array for array in kept.reindex(runs.index).dropna() if array.shape[-2:] == square]
        if not arrays:
            continue
        matrices = [array.astype(np.float64).reshape(-1, *square).mean(axis=0) for array in arrays]
        client, source = np.indices(square)
        values = {column: getattr(row, column) for column in (*WHERE, "method")}
        values |= {"n": len(arrays), "client": client.ravel(), "from": source.ravel()}
        frame = pd.DataFrame({**values, "weight": np.mean(matrices, axis=0).ravel()})
        where = f"{shown.study.title_of(row.dataset)}, {row.scenario}, {row.clients}"
        panels.append(Panel("heat", f"{shown.marks[row.line_number].label}\n{where}", frame))
    caption = (
        "Weights with which models were mixed after the last round: of the client below in the model of the "
        "client at the side; mean over layers, and over seeds that share the partition (else the first seed)."
    )
    return shown.figures("collaboration", "Who learns from whom after the last round", caption, panels)


DRAWINGS: dict[str, Callable[[Shown], list[Figure]]] = {
    "lines": lines,
    "convergence": partial(curves, name="convergence", axis="round"),
    "differences": differences,
    "collaboration": collaboration,
    "points": points,
    "epochs": partial(curves, name="epochs", axis="local epochs"),
}
"""How each of ``bench.studies.experiment.Figure`` is drawn."""

MAIN = ("convergence", "differences", "collaboration")
"""Figures of a main table."""


def figures(results: Results, study: Study, experiment: Experiment, cells: pd.DataFrame) -> Iterator[Figure]:
    """The figures that an experiment names, those of them in which there is something to draw.

    ``cells`` are the experiment's selected rows of the cells frame.
    """
    shown = Shown(study, experiment, results, cells)
    for name in experiment.figures or (MAIN if experiment.main else ()):
        yield from DRAWINGS[name](shown)
