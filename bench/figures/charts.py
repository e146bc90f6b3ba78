"""The figures of an experiment and of what clients hold: which frame each of them shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from bench.data import Images
from bench.errors import RequestError
from bench.federation import scenarios
from bench.federation.images import ImageScenario
from bench.federation.prepared import Prepared
from bench.federation.statistics import class_counts
from bench.figures import style
from bench.figures.panels import ACCURACY, Figure, Mark, Panel
from bench.frames.graded_cells import COLUMNS, Results
from bench.frames.stored_runs import WHERE, rows_of
from bench.grids.grid import PARTITION_SEED
from bench.metric_names import ACCURACY as BY_ACCURACY
from bench.statistics.summary import with_intervals
from bench.studies.experiment import Experiment
from bench.studies.measures import MIXED, Measure
from bench.studies.members import Members, accuracy_by_run
from bench.studies.settings import PER_SEED, Column, epochs_at
from bench.studies.study import Study
from bench.studies.wording import AVERAGES, RULES, STAGES, ranges, reading_text

PAGE = 6
"""Panels of a figure. Of more panels there is a figure a data set."""

ROUNDED = 9
"""Decimals of a difference: equal ones stay in the order of clients."""

LOSS = "loss"
"""Name under which a run keeps its training loss by round."""

ARTEFACT = "collaboration"
"""Name under which a method keeps its last collaboration matrix: ``[clients, clients]``, or
``[layers, clients, clients]`` where it has one a layer."""

BORDER = 2
"""Layers at either end of a model that have heat maps of their own."""

SMALL_DRAWINGS = (
    " Below, every method has a drawing of its own, with its last value above it and the others in grey."
)
BAND = "line: mean over seeds, band or bar: 95 % interval of the mean (Student's t, of three seeds or more)."
OUTLIERS = "The axis need not show first rounds, nor curves far from the others."

SPREAD = ["n", "mean", "std"]
INTERVAL = [*SPREAD, "low", "high"]
LINE = ["panel", "line_number", "place", "stage", *WHERE, "method", "is_baseline", "is_ranked"]
"""Columns that say which line a row is of."""

PLACES = ["place", "line_number", "column_number", "reads", "point_object", "line_object"]


@dataclass(frozen=True, eq=False)
class Shown:
    """What an experiment's figures show: its selected ``cells``, as the cells frame has them."""

    study: Study
    experiment: Experiment
    results: Results
    cells: pd.DataFrame

    @cached_property
    def marks(self) -> dict[int, Mark]:
        """Line number -> how the line is drawn and named in a figure's frame: as its method or, where several
        lines have one method, by its title.
        """
        places = self.results.places
        own = places[(places["study"] == self.study.name) & (places["document"] == self.experiment.name)]
        own = own.drop_duplicates("line_number").sort_values("line_number")
        lines = dict(zip(own["line_number"].tolist(), own["line_object"], strict=True))
        counts = Counter(line.method for line in lines.values() if not line.setting)
        looks = style.looks_of(self.study, tuple(lines.values()))
        marks = {}
        for number, line in lines.items():
            title = self.study.line_title(line)
            is_alone = counts[line.method] == 1 and not line.setting
            marks[number] = Mark(line.method if is_alone else title, title, looks[line])
        return marks

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of the experiment's cells."""
        return self.experiment.measures or self.study.measures

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The cells beside the first comparison, by column and line. Columns beside those of the cells frame:

        panel, line_number     number of the column and of the line
        method                 name of the line in a figure's frame
        x                      place of the point on the experiment's axis
        is_main                of the first measure and point
        is_plain               in the usual settings, and the runs are those of the line's own method
        is_baseline, is_proposed   the line's method is that of the study
        is_ranked, is_own      as its ``Line`` says
        is_competitor          no reference that trains nothing
        """
        rows = self.cells.loc[self.cells["comparison_number"] == 0, list(COLUMNS)]
        rows = rows.merge(self.results.places[PLACES], on="place")
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

    def members(self, lines: pd.DataFrame, stage: str = "trained", rule: str = "last") -> Members:
        """The runs with numbers of these lines."""
        members = self.results.members
        rows = members[members["is_done"] & members["place"].isin(lines["place"])]
        nothing = pd.DataFrame()  # asked for no accuracies
        source, settings = self.results.source, self.results.settings
        return Members(rows, source, BY_ACCURACY, stage, rule, nothing, settings)

    def clients(self, lines: pd.DataFrame, runs: str = "run") -> pd.DataFrame:
        """Test results of these lines' runs, or of the runs beside them: place, seed, client, value."""
        parts = []
        for (stage, rule), part in lines.groupby(["stage", "rule"]):
            members = self.members(part).rows.dropna(subset=runs)
            clients = self.results.clients_at(str(stage), str(rule))
            parts.append(members[["place", "seed", runs]].merge(clients, left_on=runs, right_on="run"))
        return pd.concat(parts)[["place", "seed", "client", "value"]]

    def by_client(self, clients: pd.DataFrame) -> pd.DataFrame:
        """Mean over seeds by place and client, but apart where each seed has its partition: then client 3 of
        one seed has nothing to do with client 3 of another.
        """
        settings = self.results.settings
        is_apart = [settings[place].get(PARTITION_SEED) == PER_SEED for place in clients["place"]]
        seeds = clients["seed"].where(np.array(is_apart, dtype=bool), -1)
        means = clients.groupby(["place", seeds, "client"])["value"].mean().reset_index()
        names = means["client"].astype(str)
        of_seed = names + " of seed " + means["seed"].astype(str)
        return means.assign(client=names.where(means["seed"] < 0, of_seed))[["place", "client", "value"]]

    def title_of(self, row: Any) -> str:
        """The title of a row's column."""
        return self.study.column_title(Column(row.dataset, row.scenario, row.clients))

    def reading(self, measure: Measure | None = None, average: bool = True) -> str:
        """Stage and rule of a measure, or of the primary comparison, and how clients are averaged."""
        text = reading_text((measure and measure.reading) or self.study.primary)
        return f"{text}, {AVERAGES[self.study.average]}" if average else text

    def panels(
        self, kind: str, data: pd.DataFrame, columns: Sequence[str], lines: pd.DataFrame, **options: Any
    ) -> list[Panel]:
        """A panel a column of ``data``, or one a column and ``title`` where the data have titles.

        A panel's frame has the ``columns`` beside where a line is measured. The means of ``lines`` say which
        of them matter. A line is drawn twice where its published values have a name of their own.
        """
        panels = []
        by = ["panel", "title"] if "title" in data else ["panel"]
        for _, rows in data.groupby(by, sort=False):
            first = rows.iloc[0]
            keys = key_lines(lines[lines["panel"] == first["panel"]])
            marks = []
            for number, method in rows[["line_number", "method"]].drop_duplicates().itertuples(index=False):
                mark = replace(self.marks[number], key=number in keys)
                if method != mark.method:
                    look = replace(mark.look, dashes=style.DASHES[-1])
                    mark = Mark(method, f"{mark.label}, published", look)
                marks.append(mark)
            frame = rows[[*WHERE, "method", *columns]].reset_index(drop=True)
            frame = frame.rename(columns={"x": options.get("x", "x")})
            panels.append(Panel(kind, first.get("title", self.title_of(first)), frame, tuple(marks), options))
        return panels

    def figures(self, name: str, quantity: str, caption: str, panels: Sequence[Panel]) -> list[Figure]:
        """The figure of that name, in parts that fit a page; none where there is no panel.

        The title of a part says of which experiment and quantity it is and what is in it; the caption gets
        the seeds.
        """
        members = self.results.members
        places = self.cells.loc[self.cells["usual"], "place"]
        seeds = members.loc[members["is_done"] & members["place"].isin(places), "seed"]
        stem = f"{self.study.name}_{self.experiment.name}_{name}"
        return [
            Figure(
                f"{stem}{ending}",
                f"{caption}{SMALL_DRAWINGS if any(panel.is_crowded for panel in page) else ''} "
                f"Seeds: {ranges(seeds)}.",
                page,
                f"{self.study.title}: {self.experiment.title}. {heading_of(quantity, page)}",
            )
            for ending, page in _pages(panels).items()
        ]


def key_lines(lines: pd.DataFrame) -> set[int]:
    """The numbers of the lines that matter among some of a column: the best of all that compete, of those of
    the method that the study proposes, and of those of its baseline.
    """
    lines = lines.dropna(subset="mean")
    competes = lines["is_ranked"] & lines["is_competitor"]
    groups = [lines[one] for one in (competes, lines["is_proposed"], lines["is_baseline"])]
    best = [group.nlargest(1, "mean")["line_number"] for group in groups]
    return {int(number) for number in pd.concat(best)}


def _pages(panels: Sequence[Panel]) -> dict[str, list[Panel]]:
    """Panels that fit a page, by how a part with them is called: one a federation where its panels are
    crowded, one a data set where they are many. A part's name ends with what it shows.
    """
    is_split = len(panels) > 1 and any(panel.is_crowded for panel in panels)
    names = WHERE if is_split else ["dataset"] * (len(panels) > PAGE)
    parts: dict[str, list[Panel]] = {}
    for panel in panels:
        place = panel.data.iloc[0]
        ending = "".join(f"_{re.sub('[^A-Za-z0-9.-]+', '-', str(place[name]))}" for name in names)
        parts.setdefault(ending, []).append(panel)
    return parts


def heading_of(quantity: str, panels: Sequence[Panel]) -> str:
    """What panels show: the quantity, of how many seeds, with intervals where some are drawn, and published
    values where there are some.
    """
    data = pd.concat([panel.data for panel in panels])
    if "n" not in data:
        return f"{quantity}: mean over seeds"
    measured = data[data["n"] > 0]
    if measured.empty:
        return f"{quantity}: published values where nothing was run"
    low, high = int(measured["n"].min()), int(measured["n"].max())
    seeds = f"{low} to {high} seeds" if high > low else f"{high} seeds"
    words = [f"mean of {seeds}" if high > 1 else "1 seed"]
    if "low" in data and measured["low"].notna().any():
        words.append("95 % interval")
    if len(measured) < len(data):
        words.append("beside published values")
    return f"{quantity}: {', '.join(words)}"


def clients(shown: Shown) -> list[Figure]:
    """Test accuracy of every client (mean over seeds) by method, against the baseline's median."""
    baseline = shown.study.title_of(shown.study.baseline)
    data = shown.lines[LINE].merge(shown.by_client(shown.clients(shown.lines)), on="place")
    data["value"] *= 100.0
    options = {"baseline": shown.study.baseline, "baseline_label": f"Median of {baseline}"}
    panels = shown.panels("boxes", data, ["client", "value"], shown.lines, **options)
    caption = (
        f"Test accuracy of every client: {shown.reading(average=False)}, mean over seeds that share a "
        f"partition; box: quartiles and median, a point a client, dashed: median of {baseline}."
    )
    return shown.figures("clients", "Test accuracy of every client by method", caption, panels)


def differences(shown: Shown) -> list[Figure]:
    """Every client's accuracy minus the baseline's, sorted: who is hurt, and by how much; of the experiment's
    own lines.
    """
    baseline = shown.study.title_of(shown.study.baseline)
    lines = shown.lines[shown.lines["is_competitor"] & shown.lines["is_own"]]
    members = shown.members(lines[~lines["is_baseline"]]).rows
    others = lines[lines["place"].isin(members.loc[members["baseline"].notna(), "place"])]
    if others.empty:
        return []
    keys = ["place", "seed", "client"]
    pairs = shown.clients(others).merge(shown.clients(others, "baseline"), on=keys, suffixes=("", "_alone"))
    pairs["value"] = (100.0 * (pairs["value"] - pairs["value_alone"])).round(ROUNDED)
    by_client = shown.by_client(pairs).sort_values(["place", "value"], kind="stable")
    by_place = by_client.groupby("place")["value"]
    by_client["share"] = 100.0 * (by_place.cumcount() + 0.5) / by_place.transform("size")
    data = others[LINE].merge(by_client.rename(columns={"value": "difference"}), on="place")
    how = {"x": "share", "y": "difference", "is_robust": False, "level": 0.0}
    labels = {"x_label": "Clients, most hurt first (%)", "y_label": f"Points above {baseline}"}
    panels = shown.panels("curves", data, ["client", "share", "difference"], lines, **how, **labels)
    caption = (
        f"Every client's test accuracy minus its own under {baseline} with the same seed and partition, mean "
        "over seeds that share a partition, sorted for each method by itself: "
        f"{shown.reading(average=False)}; below 0: clients that are better off with {baseline}."
    )
    quantity = f"Every client's test accuracy minus its own under {baseline}, sorted"
    return shown.figures("differences", quantity, caption, panels)


def stages(shown: Shown) -> list[Figure]:
    """What local epochs add or lose: both models, each at the step that the primary rule chooses for it."""
    rule, average = shown.study.primary.rule, shown.study.average
    kinds = ("trained", "received")
    lines = shown.lines[shown.lines["is_competitor"]]
    members = shown.members(lines).rows
    parts = []
    for kind in kinds:
        values = members["run"].map(accuracy_by_run(shown.results.clients_at(kind, rule))[average])
        numbers = values.groupby(members["place"]).agg(n="count", mean="mean", std="std")
        parts.append(numbers[numbers["n"] > 0].assign(kind=kind).reset_index())
    both = pd.concat(parts)
    both = both[both.groupby("place")["kind"].transform("size") == len(kinds)]
    data = with_intervals(lines[LINE].merge(both, on="place"))
    panels = shown.panels("pairs", data, ["kind", *INTERVAL], lines, kinds=kinds, is_joined=True)
    caption = (
        f"Test accuracy of the model received from the server and of the same after local training, "
        f"{RULES[rule]} (rule {rule}, for each stage by itself), {AVERAGES[average]}; point: mean over "
        "seeds, bar: 95 % interval of the mean, of three seeds or more."
    )
    return shown.figures("stages", "Test accuracy before and after local training", caption, panels)


def _published(rows: pd.DataFrame) -> pd.DataFrame:
    """The published values of rows in the place of what is measured: of no run, with the deviation that is
    printed, as nobody knows their interval.
    """
    printed = rows[rows["published_mean"].notna()]
    mean, std = printed["published_mean"], printed["published_std"]
    return printed.assign(n=0, mean=mean, std=std, low=mean - std, high=mean + std)


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def lines(shown: Shown) -> list[Figure]:
    """The first measure of every line beside its published value.

    An experiment's are drawn in columns of which nothing was run, too, but not where nothing at all was; a
    main table has too many of these.
    """
    is_main = shown.experiment.main
    rows = shown.rows[shown.rows["is_main"] & (shown.rows["usual"] | (not is_main))]
    has_runs = shown.rows["place"].isin(shown.results.members["place"])
    run_panels = shown.rows.loc[has_runs, "panel"].unique()
    if is_main or not len(run_panels):
        rows = rows[rows["panel"].isin(run_panels)]
    measured = with_intervals(rows[rows["n"] > 0]).assign(kind="measured")
    data = pd.concat([measured, _published(rows).assign(kind="published")])
    data = data.sort_values(["panel", "line_number"], kind="stable")
    panels = shown.panels("pairs", data, ["kind", *INTERVAL], rows)
    measure = shown.measures[0]
    caption = (
        f"{measure.meaning.capitalize()}: {shown.reading(measure)}; filled: measured mean over "
        "seeds, open: published, alone where nothing was run; bar: 95 % interval of the measured mean, of "
        "three seeds or more, and the standard deviation that is printed with a published one."
    )
    return shown.figures("lines", _capital(measure.meaning), caption, panels)


def costs(shown: Shown, cost: str, label: str, meaning: str) -> list[Figure]:
    """Accuracy against the column ``cost`` of the cells, with the Pareto front."""
    lines = shown.lines[shown.lines["is_competitor"]]
    data = with_intervals(lines.dropna(subset=cost))
    by_panel = data.groupby("panel")[cost]
    data = data[(by_panel.transform("size") > 1) & (by_panel.transform("max") > 0)]
    fronts = [pareto_front(part[cost], part["mean"]) for _, part in data.groupby("panel")]
    data = data.assign(front=pd.concat(fronts) if fronts else 0)
    panels = shown.panels(
        "costs", data, [*SPREAD, cost, "low", "high", "front"], lines, x=cost, x_label=label
    )
    caption = (
        f"Test accuracy against {meaning}: {shown.reading()}; point: mean accuracy over seeds, bar: "
        "95 % interval of it, of three seeds or more; grey line: Pareto front, the best accuracy at no more "
        "cost; grey dots: of many methods those without a name."
    )
    return shown.figures(cost, f"Test accuracy against {label[0].lower()}{label[1:]}", caption, panels)


def pareto_front(costs: pd.Series[float], means: pd.Series[float]) -> pd.Series[int]:
    """1 for points that no other one beats: none is as accurate at less cost, or better at no more."""
    best = means.groupby(costs).max()  # by rising cost
    is_better = best > best.cummax().shift(fill_value=-np.inf)
    return (costs.map(is_better) & (means == costs.map(best))).astype(int)


def _stored_curves(shown: Shown, lines: pd.DataFrame, by_epoch: bool = False) -> pd.DataFrame:
    """Test accuracy of lines over seeds by ``x``: the round, with parts of it where every epoch was
    evaluated, or the local epoch.
    """
    parts = []
    for stage, part in lines.groupby("stage"):
        members = shown.members(part, str(stage))
        curves = members.curves()
        curves["place"] = curves["member"].map(members.rows["place"])
        for place, rows in _over_seeds(curves).groupby("place"):
            settings = shown.results.settings[int(str(place))]
            x = rows["row"]
            if by_epoch:
                x = pd.Series(epochs_at(settings, x.to_numpy().astype(np.int64)), x.index)
            elif stage == "trained" and settings.get("protocol.evaluate") == "epoch":
                x = x / int(settings["protocol.local_epochs"])
            parts.append(rows.assign(x=x))
    return lines[LINE].merge(pd.concat(parts), on="place") if parts else lines[:0].assign(x=0.0)


def _over_seeds(values: pd.DataFrame) -> pd.DataFrame:
    """Mean, deviation and interval of the rows that all members of a place have, by place and row."""
    by_row = values.groupby(["place", "row"])["value"].agg(n="count", mean="mean", std="std").reset_index()
    members = values.groupby("place")["member"].nunique()
    return with_intervals(by_row[by_row["n"] == by_row["place"].map(members)])


def _curves(shown: Shown, axis: str, curves: pd.DataFrame, y_label: str = ACCURACY) -> list[Panel]:
    """A panel a column of curves over rounds or epochs ``x``.

    Lines that compete with none and have but one client, such as a model of all data, are drawn beside the
    others on the same data, as far as those go; a column of such lines alone has no panel then.
    """
    same_data = ["dataset", "scenario"]
    is_whole = curves["clients"] == 1
    others = curves.loc[~is_whole, [*same_data, "panel"]].drop_duplicates()
    guests = curves[is_whole & ~curves["is_ranked"]].drop(columns="panel").merge(others, on=same_data)
    own = curves[["panel", "method"]].drop_duplicates()
    is_new = guests.merge(own, on=["panel", "method"], how="left", indicator=True)["_merge"] == "left_only"
    has_peers = curves.merge(others[same_data].drop_duplicates(), on=same_data, how="left", indicator=True)
    is_alone = is_whole & ~curves.groupby("panel")["is_ranked"].transform("any")
    hosts = curves[~(is_alone & (has_peers["_merge"] == "both").to_numpy())]
    data = pd.concat([hosts, guests[is_new.to_numpy()]]).sort_values("panel", kind="stable")
    data = data[data["x"] <= data["panel"].map(hosts.groupby("panel")["x"].max())]
    options = {"x": axis, "x_label": axis.capitalize(), "y_label": y_label}
    panels = shown.panels("curves", data, ["x", *INTERVAL], shown.lines, **options)
    for panel in panels:
        if (panel.data[axis] % 1 == 0).all():
            panel.data[axis] = panel.data[axis].astype(int)
    return panels


def convergence(shown: Shown) -> list[Figure]:
    """Test accuracy by round: mean over clients, then mean and interval over seeds."""
    stage = shown.study.primary.stage
    caption = (
        f"Test accuracy of {STAGES[stage]} by round (stage {stage}, but for "
        f"lines that are read at another; no rule: every round is shown), {AVERAGES[shown.study.average]}; "
        f"{BAND} {OUTLIERS}"
    )
    panels = _curves(shown, "round", _stored_curves(shown, shown.lines))
    return shown.figures("convergence", "Test accuracy by round", caption, panels)


def epochs(shown: Shown) -> list[Figure]:
    """Test accuracy by local epochs, those of a warm-up counted."""
    stage = shown.study.primary.stage
    curves = _stored_curves(shown, shown.lines.assign(stage=stage), by_epoch=True)
    caption = (
        f"Test accuracy of {STAGES[stage]} by local epochs, those before the first round counted (stage "
        f"{stage}, no rule: every step is shown), {AVERAGES[shown.study.average]}; {BAND} {OUTLIERS}"
    )
    panels = _curves(shown, "local epochs", curves)
    return shown.figures("epochs", "Test accuracy by local epochs", caption, panels)


def losses(shown: Shown) -> list[Figure]:
    """Training loss by round; there is none of a method that trains nothing."""
    members = shown.members(shown.lines)
    kept = members.artefacts(LOSS)
    kept = kept[[bool(np.isfinite(loss).all()) for loss in kept]]
    if kept.empty:
        return []
    values = kept.rename("value").rename_axis("member").reset_index().explode("value", ignore_index=True)
    values["row"] = values.groupby("member").cumcount() + 1
    values["place"] = values["member"].map(members.rows["place"])
    curves = shown.lines[LINE].merge(_over_seeds(values.astype({"value": float})), on="place")
    panels = _curves(shown, "round", curves.assign(x=curves["row"]), "Training loss")
    caption = (
        "Training loss by round: cross-entropy on the clients' training nodes before each local step, mean "
        f"over clients and the round's local epochs (no stage or rule plays a part); {BAND} {OUTLIERS}"
    )
    return shown.figures("loss", "Training loss by round", caption, panels)


def _along(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows at the experiment's points, of lines with two of them or more."""
    rows = rows[rows["x"].notna()]
    return rows[rows.groupby(["panel", "line_number"])["x"].transform("size") > 1]


def points(shown: Shown) -> list[Figure]:
    """Every measure along the experiment's points, a figure each."""
    axis = shown.experiment.axis
    figures: list[Figure] = []
    for measure in shown.measures:
        rows = shown.rows[(shown.rows["measure"] == measure.name) & (shown.rows["n"] > 0)]
        data = with_intervals(_along(rows))
        panels = shown.panels("curves", data, ["x", *INTERVAL], data, x=axis, x_label=axis.capitalize())
        caption = f"{measure.meaning.capitalize()}: {shown.reading(measure)}; {BAND}"
        figures += shown.figures(measure.name, f"{_capital(measure.meaning)} by {axis}", caption, panels)
    return figures


def measures(shown: Shown) -> list[Figure]:
    """All measures of the first one's metric along the experiment's points, beside published values."""
    axis = shown.experiment.axis
    parts = []
    for measure in shown.measures:
        if measure.metric == shown.measures[0].metric:
            rows = shown.rows[shown.rows["measure"] == measure.name]
            measured, printed = _along(rows[rows["n"] > 0]), _along(_published(rows))
            printed = printed[printed["panel"].isin(measured["panel"])]
            printed = printed.assign(method=printed["method"] + " (published)")
            both = with_intervals(pd.concat([measured, printed])).sort_values("line_number", kind="stable")
            parts.append(both.assign(title=measure.title))
    data = pd.concat(parts).sort_values("panel", kind="stable")
    ticks = tuple((point.x, point.label) for point in shown.experiment.points if point.x is not None)
    options = {"x": axis, "x_label": axis.capitalize(), "y_label": "", "ticks": ticks}
    panels = shown.panels("curves", data, ["x", *INTERVAL, "measure"], shown.lines, **options)
    columns = "; ".join(map(shown.title_of, rows_of(shown.rows.drop_duplicates("panel"))))
    caption = f"Every measure by {axis}, {columns}; {BAND} Dotted: published."
    return shown.figures("measures", f"Every measure by {axis}", caption, panels)


def _heat_maps(shown: Shown, weights: pd.Series[Any], by_layer: bool = False) -> list[Panel]:
    """Who learns from whom, a panel a line and column, or one for each of its first and last layers: the mean
    over seeds, of runs that share a partition, and layers. ``weights`` are those of members.
    """
    members = shown.members(shown.lines).rows
    panels = []
    for row in rows_of(shown.lines):
        runs = members[members["place"] == row.place]
        if runs["partition_hash"].nunique() > 1:
            runs = runs[:1]  # clients of other partitions are other clients: the first seed's alone
        square = (row.clients, row.clients)
        arrays = [array.astype(np.float64) for array in weights.reindex(runs.index).dropna()]
        dimensions = (3,) if by_layer else (2, 3)
        arrays = [array for array in arrays if array.ndim in dimensions and array.shape[-2:] == square]
        if not arrays:
            continue
        label = shown.marks[row.line_number].label
        where = f"{shown.study.title_of(row.dataset)}, {row.scenario}, {row.clients}"
        client, source = np.indices(square)
        values = {column: getattr(row, column) for column in (*WHERE, "method")}
        ends = {"n": len(arrays), "client": client.ravel(), "from": source.ravel()}
        if not by_layer:
            mean = np.mean([array.reshape(-1, *square).mean(axis=0) for array in arrays], axis=0)
            frame = pd.DataFrame({**values, **ends, "weight": mean.ravel()})
            panels.append(Panel("heat", f"{label}\n{where}", frame))
            continue
        layers = np.mean(arrays, axis=0)
        for number, layer in enumerate(layers, start=1):
            if number <= BORDER or number > len(layers) - BORDER:
                frame = pd.DataFrame({**values, "layer": number, **ends, "weight": layer.ravel()})
                panels.append(Panel("heat", f"{label}, layer {number} of {len(layers)}\n{where}", frame))
    return panels


def _collaboration(shown: Shown, kind: str, when: str, panels: Sequence[Panel]) -> list[Figure]:
    caption = (
        f"Weights with which models were mixed {when}: how much of the model of the client below goes into "
        "that of the client at the side; mean over seeds where they share the partition, else the first "
        "seed's. Clients stand in the federation's order, each panel has its own scale. No stage, rule or "
        "average plays a part."
    )
    return shown.figures(kind, f"Who learns from whom {when.partition(',')[0]}", caption, panels)


def collaboration(shown: Shown) -> list[Figure]:
    """The last collaboration matrix of every method that keeps one, in every column."""
    panels = _heat_maps(shown, shown.members(shown.lines).artefacts(ARTEFACT))
    when = "after the last round, mean over layers where every layer has its own"
    return _collaboration(shown, "collaboration", when, panels)


def collaboration_layers(shown: Shown) -> list[Figure]:
    """What the models of the best round were mixed with, of methods that keep a matrix for each layer by
    round: the first two layers and the last two.
    """
    members = shown.members(shown.lines)
    best = members.best_rounds().to_dict()
    weights = {
        member: by_round[best[member]]
        for member, by_round in members.artefacts(MIXED).items()
        if best.get(member, len(by_round)) < len(by_round)
    }
    when = (
        f"before the round of best mean validation accuracy, by layer, the first {BORDER} and last {BORDER} "
        "(a layer is a module with its weight and bias, normalisation too)"
    )
    panels = _heat_maps(shown, pd.Series(weights, dtype=object), by_layer=True)
    return _collaboration(shown, "collaboration_layers", when, panels)


DRAWINGS: dict[str, Callable[[Shown], list[Figure]]] = {
    "lines": lines,
    "convergence": convergence,
    "clients": clients,
    "differences": differences,
    "stages": stages,
    "megabytes": partial(
        costs,
        cost="megabytes",
        label="Megabytes exchanged",
        meaning="the megabytes that a run exchanges in both directions, mean over seeds",
    ),
    "seconds": partial(
        costs,
        cost="seconds",
        label="Seconds",
        meaning="the seconds that a run takes, median over seeds, evaluation included (machines may be "
        "shared, and differ between runs)",
    ),
    "collaboration": collaboration,
    "points": points,
    "measures": measures,
    "epochs": epochs,
    "loss": losses,
    "collaboration_layers": collaboration_layers,
}
"""How each of ``bench.studies.experiment.FIGURES`` is drawn."""

MAIN = tuple(DRAWINGS)[:8]
"""Figures of a main table."""

OF_CELLS = ("lines", "points", "measures")
"""Figures that need no runs under the usual settings."""


def figures(results: Results, study: Study, experiment: Experiment, cells: pd.DataFrame) -> Iterator[Figure]:
    """The figures that an experiment names, those of them in which there is something to draw.

    ``cells`` are the experiment's selected rows of the cells frame.
    """
    shown = Shown(study, experiment, results, cells)
    for name in experiment.figures or (MAIN if experiment.main else ()):
        if len(shown.lines) or name in OF_CELLS:
            yield from DRAWINGS[name](shown)


def class_figure(prepared_data: Prepared, names: Sequence[str], clients: int) -> Figure:
    """Dots for every scenario of these names, drawn with the data set's own partition seed.

    Raises:
        RequestError: the data are no images, or a scenario is unknown, not one of images, or cannot give that
            many clients.
    """
    kind, data = prepared_data.dataset, prepared_data.data
    if not isinstance(data, Images):
        raise RequestError(f"data set {kind.name}: expected images, whose clients are drawn by labels alone")
    labels = data.labels if data.population is None else data.population
    frames = []
    for name in names:
        scenario = scenarios.parse(name)
        if not isinstance(scenario, ImageScenario):
            raise RequestError(f"scenario '{name}': expected one of images")
        shares = scenario.shares(labels, clients, kind.protocol.partition_seed)
        counts = np.asarray(class_counts([labels[share] for share in shares], data.classes))
        client, number = np.indices(counts.shape)
        frame = pd.DataFrame({"client": client.ravel(), "class": number.ravel(), "items": counts.ravel()})
        frame[WHERE] = kind.name, name, clients
        frames.append(frame[[*WHERE, "client", "class", "items"]])
    most_items = int(pd.concat(frames)["items"].max())
    options = {"most_items": most_items}
    panels = [
        Panel("dots", f"{kind.title}, {name}", frame, options=options)
        for name, frame in zip(names, frames, strict=True)
    ]
    caption = (
        f"Items of each class that every client has of the complete data set; the largest dot stands for "
        f"{most_items}, areas are proportional."
    )
    return Figure(f"{kind.name}_classes", caption, panels, "Items of each class by client")
