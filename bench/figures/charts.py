"""The figures of an experiment and of what clients hold: which frame each of them shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from bench.frames.stored_runs import WHERE
from bench.grids.experiment import Line
from bench.grids.grid import PARTITION_SEED
from bench.metric_names import ACCURACY as BY_ACCURACY
from bench.statistics.summary import with_intervals
from bench.studies.experiment import Experiment
from bench.studies.measures import MIXED, Measure
from bench.studies.members import Members, accuracy_by_run
from bench.studies.settings import PER_SEED, Column, Settings, epochs_at
from bench.studies.study import Study
from bench.studies.wording import AVERAGES, RULES, STAGES, ranges, reading_text

PAGE = 6
"""Panels of a figure; of more there is a figure a data set."""

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
LINE = ["panel", "line_number", "place", "stage", *WHERE, "method", "is_baseline", "is_ranked"]
"""Columns that say which line a row is of."""


@dataclass(frozen=True, eq=False)
class Shown:
    """What an experiment's figures show: its selected ``cells``, as the cells frame has them."""

    study: Study
    experiment: Experiment
    results: Results
    cells: pd.DataFrame

    @cached_property
    def lines_by_number(self) -> dict[int, Line]:
        """The experiment's lines."""
        places = self.results.places
        is_own = (places["study"] == self.study.name) & (places["document"] == self.experiment.name)
        numbered = places[is_own].drop_duplicates("line_number").sort_values("line_number")
        return dict(zip(numbered["line_number"].tolist(), numbered["line_object"], strict=True))

    @cached_property
    def marks(self) -> dict[int, Mark]:
        """How every line is drawn and named in a figure's frame: as its method or, where several lines have
        one method, by its title.
        """
        lines = self.lines_by_number
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
        is_ranked, is_own      as its ``Line`` says
        is_competitor          no reference that trains nothing
        """
        places = self.results.places
        places = places[["place", "line_number", "column_number", "reads", "point_object", "line_object"]]
        rows = self.cells.loc[self.cells["comparison_number"] == 0, list(COLUMNS)].merge(places, on="place")
        rows["is_first"] = [point == self.experiment.points[0] for point in rows["point_object"]]
        rows = rows.assign(
            panel=rows["column_number"],
            x=[point.x for point in rows["point_object"]],
            is_main=rows["is_first"] & (rows["measure"] == self.measures[0].name),
            is_plain=rows["usual"] & (rows["reads"] == rows["method"]),
            is_baseline=rows["method"] == self.study.baseline,
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

    def key_lines(self, means: pd.Series[float]) -> set[int]:
        """The lines that matter among some, by their means: the best of all that compete, of those of the
        method that the study proposes, and of those of its baseline.
        """
        numbers = [(number, self.lines_by_number[number]) for number in means.index]
        competitors = [n for n, line in numbers if line.ranked and line.method not in self.study.references]
        proposed = [n for n, line in numbers if line.method == self.study.proposed]
        baselines = [n for n, line in numbers if line.method == self.study.baseline]
        return {max(group, key=means.__getitem__) for group in (competitors, proposed, baselines) if group}

    @cached_property
    def column_titles(self) -> dict[int, str]:
        """The columns in full, by their numbers."""
        columns = self.rows[["panel", *WHERE]].drop_duplicates("panel").itertuples(index=False, name=None)
        return {number: self.study.column_title(Column(*where)) for number, *where in columns}

    def panels(
        self, kind: str, data: pd.DataFrame, lines: pd.DataFrame, columns: Sequence[str], **options: Any
    ) -> list[Panel]:
        """A panel a column of ``data``, which has the ``columns`` beside where a line is measured.

        The ``lines`` say which of them matter. Means get their intervals.
        """
        panels = []
        means_of_lines = lines[["panel", "line_number", "mean"]]
        for number, rows in data[["panel", "line_number", *WHERE, "method", *columns]].groupby("panel"):
            means = means_of_lines[means_of_lines["panel"] == number].set_index("line_number")["mean"]
            keys = self.key_lines(means)
            marks = [replace(self.marks[line], key=line in keys) for line in rows["line_number"].unique()]
            frame = rows[[*WHERE, "method", *columns]].reset_index(drop=True)
            frame = frame.rename(columns={"x": options.get("x", "x")})
            if "std" in columns:
                frame = with_intervals(frame.astype({"std": float}))
            panels.append(Panel(kind, self.column_titles[int(str(number))], frame, tuple(marks), options))
        return panels

    def reading(self, measure: Measure | None = None, average: bool = True) -> str:
        """Stage and rule of a measure, or of the primary comparison, and how clients are averaged."""
        text = reading_text((measure and measure.reading) or self.study.primary)
        return f"{text}, {AVERAGES[self.study.average]}" if average else text

    def figures(self, kind: str, quantity: str, caption: str, panels: Sequence[Panel]) -> list[Figure]:
        """The figure of that kind, in parts that fit a page; none where there is no panel.

        The title of a part says of which experiment and quantity it is and what is in it; the caption gets
        the seeds.
        """
        members = self.results.members
        places = self.cells.loc[self.cells["usual"], "place"]
        seeds = members.loc[members["is_done"] & members["place"].isin(places), "seed"]
        name = f"{self.study.name}_{self.experiment.name}_{kind}"
        return [
            Figure(
                f"{name}{ending}",
                f"{caption}{SMALL_DRAWINGS if any(panel.is_crowded for panel in page) else ''} "
                f"Seeds: {ranges(seeds)}.",
                page,
                f"{self.study.title}: {self.experiment.title}. {heading_of(quantity, page)}",
            )
            for ending, page in _pages(panels)
        ]


def _pages(panels: Sequence[Panel]) -> Iterator[tuple[str, list[Panel]]]:
    """Panels that fit a page, and how a part with them is called: one a federation where its panels are
    crowded, one a data set where they are many. A part's name ends with what it shows.
    """
    is_split = len(panels) > 1 and any(panel.is_crowded for panel in panels)
    names = WHERE if is_split else ["dataset"] * (len(panels) > PAGE)
    parts: dict[str, list[Panel]] = {}
    for panel in panels:
        place = panel.data.iloc[0]
        ending = "".join(f"_{re.sub('[^A-Za-z0-9.-]+', '-', str(place[name]))}" for name in names)
        parts.setdefault(ending, []).append(panel)
    yield from parts.items()


def heading_of(quantity: str, panels: Sequence[Panel]) -> str:
    """What panels show: the quantity, of how many seeds, with intervals where some are drawn, and published
    values where there are some.
    """
    numbers = [panel.data["n"] for panel in panels if "n" in panel.data]
    if not numbers:
        return f"{quantity}: mean over seeds"
    counts = {int(n) for column in numbers for n in column}
    measured = counts - {0}
    if not measured:
        return f"{quantity}: published values where nothing was run"
    low, high = min(measured), max(measured)
    seeds = f"{low} to {high} seeds" if high > low else f"{high} seeds"
    words = [f"mean of {seeds}" if high > 1 else "1 seed"]
    tables = [panel.data for panel in panels if "low" in panel.data]
    if any((data["low"].notna() & (data["n"] > 0)).any() for data in tables):
        words.append("95 % interval")
    if 0 in counts:
        words.append("beside published values")
    return f"{quantity}: {', '.join(words)}"


def clients(shown: Shown) -> list[Figure]:
    """Test accuracy of every client (mean over seeds) by method, against the baseline's median."""
    baseline = shown.study.title_of(shown.study.baseline)
    data = shown.lines[LINE].merge(shown.by_client(shown.clients(shown.lines)), on="place")
    data["value"] *= 100.0
    panels = shown.panels("boxes", data, shown.lines, ["client", "value"])
    of_baseline = data[data["is_baseline"]].groupby(["panel", "line_number"])["value"].median()
    medians = of_baseline.groupby("panel").last()
    levels = [medians.get(panel) for panel in sorted(data["panel"].unique())]
    caption = (
        f"Test accuracy of every client: {shown.reading(average=False)}, mean over seeds that share a "
        f"partition; box: quartiles and median, a point a client, dashed: median of {baseline}."
    )
    label = f"Median of {baseline}"
    panels = [
        replace(panel, options={"level": level, "level_label": label})
        for panel, level in zip(panels, levels, strict=True)
    ]
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
    panels = shown.panels("curves", data, lines, ["client", "share", "difference"], **how, **labels)
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
    data = lines[LINE].merge(both, on="place")
    panels = shown.panels("pairs", data, lines, ["kind", *SPREAD], kinds=kinds, is_joined=True)
    caption = (
        f"Test accuracy of the model received from the server and of the same after local training, "
        f"{RULES[rule]} (rule {rule}, for each stage by itself), {AVERAGES[average]}; point: mean over "
        "seeds, bar: 95 % interval of the mean, of three seeds or more."
    )
    return shown.figures("stages", "Test accuracy before and after local training", caption, panels)


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
    measured = rows[rows["n"] > 0].assign(kind="measured")
    published = _published(rows).assign(kind="published")
    data = pd.concat([measured, published]).sort_values(["panel", "line_number"], kind="stable")
    panels = shown.panels("pairs", data, rows[:0], ["kind", *SPREAD])
    for panel in panels:
        # Nobody knows a published value's interval: its deviation is drawn as it is printed.
        frame = panel.data
        is_published, mean, std = frame["kind"] == "published", frame["mean"], frame["std"]
        frame.loc[is_published, "low"], frame.loc[is_published, "high"] = mean - std, mean + std
    measure = shown.measures[0]
    caption = (
        f"{measure.meaning.capitalize()}: {shown.reading(measure)}; filled: measured mean over "
        "seeds, open: published, alone where nothing was run; bar: 95 % interval of the measured mean, of "
        "three seeds or more, and the standard deviation that is printed with a published one."
    )
    return shown.figures("lines", _capital(measure.meaning), caption, panels)


def _published(rows: pd.DataFrame) -> pd.DataFrame:
    """The published values of rows in the place of what is measured: of no run."""
    printed = rows[rows["published_mean"].notna()]
    return printed.assign(n=0, mean=printed["published_mean"], std=printed["published_std"])


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def costs(shown: Shown, cost: str, label: str, meaning: str) -> list[Figure]:
    """Accuracy against the column ``cost`` of the cells, with the Pareto front."""
    lines = shown.lines[shown.lines["is_competitor"]]
    data = lines.dropna(subset=cost)
    panels = [
        replace(panel, data=panel.data.assign(front=pareto_front(panel.data[cost], panel.data["mean"])))
        for panel in shown.panels("costs", data, lines, [*SPREAD, cost], x=cost, x_label=label)
        if len(panel.data) > 1 and panel.data[cost].any()
    ]
    caption = (
        f"Test accuracy against {meaning}: {shown.reading()}; point: mean accuracy over seeds, bar: "
        "95 % interval of it, of three seeds or more; grey line: Pareto front, the best accuracy at no more "
        "cost; grey dots: of many methods those without a name."
    )
    return shown.figures(cost, f"Test accuracy against {label[0].lower()}{label[1:]}", caption, panels)


def pareto_front(costs: pd.Series[float], means: pd.Series[float]) -> list[int]:
    """1 for points that no other one beats: none is as accurate at less cost, or better at no more."""
    is_beaten = [
        ((costs <= cost) & (means >= mean) & ((costs < cost) | (means > mean))).any()
        for cost, mean in zip(costs, means, strict=True)
    ]
    return [int(not is_lost) for is_lost in is_beaten]


def _by_round(settings: Settings, stage: str, rows: pd.Series[int]) -> pd.Series[float]:
    """Rows of a curve as rounds, parts of them where every epoch is evaluated."""
    is_by_epoch = stage == "trained" and settings.get("protocol.evaluate") == "epoch"
    return rows / (int(settings["protocol.local_epochs"]) if is_by_epoch else 1)


def _by_epoch(settings: Settings, stage: str, rows: pd.Series[int]) -> pd.Series[float]:
    return pd.Series(epochs_at(settings, rows.to_numpy().astype(np.int64)), rows.index)


def _stored_curves(
    shown: Shown,
    lines: pd.DataFrame,
    x_of: Callable[[Settings, str, pd.Series[int]], pd.Series[float]] = _by_round,
) -> pd.DataFrame:
    """Test accuracy of lines over seeds by ``x``, into which ``x_of`` turns the row of a curve."""
    parts = []
    for stage, part in lines.groupby("stage"):
        members = shown.members(part, str(stage))
        curves = members.curves()
        curves["place"] = curves["member"].map(members.rows["place"])
        for place, rows in _over_seeds(curves).groupby("place"):
            settings = shown.results.settings[int(str(place))]
            parts.append(rows.assign(x=x_of(settings, str(stage), rows["row"])))
    return lines[LINE].merge(pd.concat(parts), on="place") if parts else lines[:0].assign(x=0.0)


def _over_seeds(values: pd.DataFrame) -> pd.DataFrame:
    """Mean and deviation of the rows that all members of a place have: place, row, n, mean, std."""
    by_row = values.groupby(["place", "row"])["value"].agg(n="count", mean="mean", std="std").reset_index()
    members = values.groupby("place")["member"].nunique()
    return by_row[by_row["n"] == by_row["place"].map(members)]


def _curves(shown: Shown, axis: str, curves: pd.DataFrame, y_label: str = ACCURACY) -> list[Panel]:
    """A panel a column of curves over rounds or epochs ``x``.

    Lines that compete with none and have but one client, such as a model of all data, are drawn beside the
    others on the same data, as far as those go; a column of such lines alone has no panel then.
    """
    same_data = ["dataset", "scenario"]
    is_whole = curves["clients"] == 1
    others = curves.loc[~is_whole, [*same_data, "panel"]].drop_duplicates()
    guests = curves[is_whole & ~curves["is_ranked"]].drop(columns="panel").merge(others, on=same_data)
    shown_names = set(zip(curves["panel"], curves["method"], strict=True))
    is_new = [place not in shown_names for place in zip(guests["panel"], guests["method"], strict=True)]
    has_peers = curves.merge(others[same_data].drop_duplicates(), on=same_data, how="left", indicator=True)
    is_alone = is_whole & ~curves.groupby("panel")["is_ranked"].transform("any")
    hosts = curves[~(is_alone & (has_peers["_merge"] == "both").to_numpy())]
    data = pd.concat([hosts, guests[is_new]]).sort_values("panel", kind="stable")
    data = data[data["x"] <= data["panel"].map(hosts.groupby("panel")["x"].max())]
    options = {"x": axis, "x_label": axis.capitalize(), "y_label": y_label}
    panels = shown.panels("curves", data, shown.lines, ["x", *SPREAD], **options)
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


def rounds(shown: Shown) -> list[Figure]:
    """Test accuracy by round of every measure's stage, and what is published of single rounds as markers."""
    panels = []
    for measure in shown.measures:
        if not measure.is_extra:
            stage = (measure.reading or shown.study.primary).stage
            curves = _stored_curves(shown, shown.lines.assign(stage=stage))
            panels += [_with_published(shown, measure, panel) for panel in _curves(shown, "round", curves)]
    columns = "; ".join(dict.fromkeys(shown.column_titles[panel] for panel in shown.rows["panel"].unique()))
    caption = (
        f"Test accuracy by round (no rule: every round is shown), {AVERAGES[shown.study.average]}, "
        f"{columns}; {BAND} Markers: published."
    )
    return shown.figures("rounds", "Test accuracy by round", caption, panels)


def _with_published(shown: Shown, measure: Measure, panel: Panel) -> Panel:
    """A panel of curves as one of that measure, with its published values as markers."""
    column = panel.data[WHERE].iloc[0]
    rows = shown.rows[(shown.rows[WHERE] == column).all(axis=1) & (shown.rows["measure"] == measure.name)]
    printed = _published(rows.dropna(subset="x")).rename(columns={"x": "round"})
    printed, marks = _beside(shown, printed, "none")
    curves = [replace(mark, look=replace(mark.look, marker="")) for mark in panel.marks]
    rows = with_intervals(printed[[*WHERE, "method", "round", *SPREAD]].astype({"std": float}))
    data = pd.concat([panel.data, rows], ignore_index=True).assign(measure=measure.name)
    return replace(panel, title=measure.title, data=data, marks=(*curves, *marks))


def _beside(shown: Shown, printed: pd.DataFrame, dashes: style.Dashes) -> tuple[pd.DataFrame, list[Mark]]:
    """Published values as rows and marks of their own, beside those of the lines measured."""
    marks = [
        Mark(f"{mark.method} (published)", f"{mark.label}, published", replace(mark.look, dashes=dashes))
        for mark in map(shown.marks.__getitem__, printed["line_number"].unique())
    ]
    return printed.assign(method=printed["method"] + " (published)"), marks


def epochs(shown: Shown) -> list[Figure]:
    """Test accuracy by local epochs, those of a warm-up counted."""
    stage = shown.study.primary.stage
    curves = _stored_curves(shown, shown.lines.assign(stage=stage), _by_epoch)
    caption = (
        f"Test accuracy of {STAGES[stage]} by local epochs, those before the first round counted (stage "
        f"{stage}, no rule: every step is shown), {AVERAGES[shown.study.average]}; {BAND} {OUTLIERS}"
    )
    panels = _curves(shown, "local epochs", curves)
    return shown.figures("epochs", "Test accuracy by local epochs", caption, panels)


def losses(shown: Shown) -> list[Figure]:
    """Training loss by round; there is none of a method that trains nothing."""
    members = shown.members(shown.lines)
    kept, places = members.artefacts(LOSS), members.rows["place"].to_dict()
    parts = [
        pd.DataFrame(
            {
                "member": member,
                "place": places[member],
                "row": range(1, len(loss) + 1),
                "value": loss,
            }
        )
        for member, loss in kept.items()
        if np.isfinite(loss).all()
    ]
    caption = (
        "Training loss by round: cross-entropy on the clients' training nodes before each local step, mean "
        f"over clients and the round's local epochs (no stage or rule plays a part); {BAND} {OUTLIERS}"
    )
    panels = []
    if parts:
        curves = shown.lines[LINE].merge(_over_seeds(pd.concat(parts)), on="place")
        panels = _curves(shown, "round", curves.assign(x=curves["row"]), "Training loss")
    return shown.figures("loss", "Training loss by round", caption, panels)


def _along(shown: Shown, measure: Measure) -> pd.DataFrame:
    """The rows of a measure at the experiment's points, of lines with two of them or more."""
    rows = shown.rows[(shown.rows["measure"] == measure.name) & shown.rows["x"].notna()]
    measured = rows[rows["n"] > 0]
    return measured[measured.groupby(["panel", "line_number"])["x"].transform("size") > 1]


def points(shown: Shown) -> list[Figure]:
    """Every measure along the experiment's points, a figure each."""
    axis = shown.experiment.axis
    figures: list[Figure] = []
    for measure in shown.measures:
        data = _along(shown, measure)
        means = data.groupby(["panel", "line_number"], sort=False)["mean"].mean().reset_index()
        options = {"x": axis, "x_label": axis.capitalize()}
        panels = shown.panels("curves", data, means, ["x", *SPREAD], **options)
        caption = f"{measure.meaning.capitalize()}: {shown.reading(measure)}; {BAND}"
        figures += shown.figures(measure.name, f"{_capital(measure.meaning)} by {axis}", caption, panels)
    return figures


def measures(shown: Shown) -> list[Figure]:
    """All measures of the first one's metric along the experiment's points, beside published values."""
    axis = shown.experiment.axis
    ticks = tuple((point.x, point.label) for point in shown.experiment.points if point.x is not None)
    options = {"x": axis, "x_label": axis.capitalize(), "y_label": "", "ticks": ticks}
    by_column: dict[int, list[Panel]] = {}
    for measure in shown.measures:
        if measure.metric != shown.measures[0].metric:
            continue
        for number, measured in _along(shown, measure).groupby("panel"):
            rows = shown.rows[(shown.rows["panel"] == number) & (shown.rows["measure"] == measure.name)]
            printed = _published(rows.dropna(subset="x"))
            printed = printed[printed.groupby("line_number")["x"].transform("size") > 1]
            printed, published_marks = _beside(shown, printed, style.DASHES[-1])
            marks = [shown.marks[line] for line in measured["line_number"].unique()] + published_marks
            data = pd.concat([measured, printed]).sort_values("line_number", kind="stable")
            data = data[[*WHERE, "method", "x", *SPREAD]].rename(columns={"x": axis})
            frame = with_intervals(data.astype({"std": float})).assign(measure=measure.name)
            panel = Panel("curves", measure.title, frame.reset_index(drop=True), tuple(marks), options)
            by_column.setdefault(int(str(number)), []).append(panel)
    panels = [panel for number in sorted(by_column) for panel in by_column[number]]
    columns = "; ".join(shown.column_titles[panel] for panel in shown.rows["panel"].unique())
    caption = f"Every measure by {axis}, {columns}; {BAND} Dotted: published."
    return shown.figures("measures", f"Every measure by {axis}", caption, panels)


def _weights(
    shown: Shown, weights: pd.Series[Any], name: str = "", **place: int
) -> dict[tuple[int, int], Panel]:
    """Who learns from whom: the mean over seeds and layers, of runs that share a partition, a panel a line
    and column by their numbers.

    ``weights`` are those of members. ``name`` says to readers, ``place`` in the frame, of which part of a
    model.
    """
    members = shown.members(shown.lines).rows
    panels = {}
    for line in shown.lines.to_dict("records"):
        runs = members[members["place"] == line["place"]]
        if runs["partition_hash"].nunique() > 1:
            runs = runs[:1]  # clients of other partitions are other clients: the first seed's alone
        square = (line["clients"], line["clients"])
        matrices = [
            np.asarray(weights[member], np.float64).reshape(-1, *square).mean(axis=0)
            for member in runs.index
            if member in weights.index
            and weights[member].ndim in (2, 3)
            and weights[member].shape[-2:] == square
        ]
        if matrices:
            mark = shown.marks[line["line_number"]]
            label = f"{mark.label}, {name}" if name else mark.label
            title = shown.study.title_of(line["dataset"])
            client, source = np.indices(square)
            values = {"n": len(matrices), "client": client.ravel(), "from": source.ravel()}
            where = {column: line[column] for column in (*WHERE, "method")}
            frame = pd.DataFrame({**where, **place, **values, "weight": np.mean(matrices, axis=0).ravel()})
            heading = f"{label}\n{title}, {line['scenario']}, {line['clients']}"
            panels[line["panel"], line["line_number"]] = Panel("heat", heading, frame)
    return panels


def _best_rounds(shown: Shown) -> pd.Series[Any]:
    """What the round of best validation began with, of members that keep the weights by round."""
    members = shown.members(shown.lines)
    by_round, best = members.artefacts(MIXED), members.best_rounds()
    known = [
        member for member in by_round.index if best.get(member, len(by_round[member])) < len(by_round[member])
    ]
    return pd.Series([by_round[member][best[member]] for member in known], known, dtype=object)


def _collaboration(shown: Shown, kind: str, when: str, panels: Iterable[Panel]) -> list[Figure]:
    caption = (
        f"Weights with which models were mixed {when}: how much of the model of the client below goes into "
        "that of the client at the side; mean over seeds where they share the partition, else the first "
        "seed's. Clients stand in the federation's order, each panel has its own scale. No stage, rule or "
        "average plays a part."
    )
    return shown.figures(kind, f"Who learns from whom {when.partition(',')[0]}", caption, list(panels))


def collaboration(shown: Shown) -> list[Figure]:
    """The last collaboration matrix of every method that keeps one, in every column."""
    panels = _weights(shown, shown.members(shown.lines).artefacts(ARTEFACT))
    when = "after the last round, mean over layers where every layer has its own"
    return _collaboration(shown, "collaboration", when, panels.values())


def collaboration_best(shown: Shown) -> list[Figure]:
    """What the models of the best round were mixed with, of every method that keeps it by round."""
    panels = _weights(shown, _best_rounds(shown))
    when = "before the round of best mean validation accuracy, mean over layers where every layer has its own"
    return _collaboration(shown, "collaboration_best", when, panels.values())


def collaboration_layers(shown: Shown) -> list[Figure]:
    """The same by layer, of methods that have a matrix for each: the first two layers and the last two."""
    weights = _best_rounds(shown)
    layered = weights[[array.ndim == 3 for array in weights]]
    count = max(map(len, layered), default=0)
    layers = [layer for layer in range(count) if min(layer, count - 1 - layer) < BORDER]
    by_place: dict[tuple[int, int], list[Panel]] = {}
    for layer in layers:
        name = f"layer {layer + 1} of {count}"
        of_layer = pd.Series([array[layer] for array in layered], layered.index, dtype=object)
        for place, panel in _weights(shown, of_layer, name, layer=layer + 1).items():
            by_place.setdefault(place, []).append(panel)
    when = (
        f"before the round of best mean validation accuracy, by layer, the first {BORDER} and last {BORDER} "
        "(a layer is a module with its weight and bias, normalisation too)"
    )
    panels = [panel for place in sorted(by_place) for panel in by_place[place]]
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
    "rounds": rounds,
    "loss": losses,
    "collaboration_best": collaboration_best,
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
    frames = {}
    for name in names:
        scenario = scenarios.parse(name)
        if not isinstance(scenario, ImageScenario):
            raise RequestError(f"scenario '{name}': expected one of images")
        shares = scenario.shares(labels, clients, kind.protocol.partition_seed)
        counts = np.asarray(class_counts([labels[share] for share in shares], data.classes))
        client, number = np.indices(counts.shape)
        frames[name] = pd.DataFrame(
            {
                "dataset": kind.name,
                "scenario": name,
                "clients": clients,
                "client": client.ravel(),
                "class": number.ravel(),
                "items": counts.ravel(),
            }
        )
    most_items = max(int(frame["items"].max()) for frame in frames.values())
    panels = [
        Panel("dots", f"{kind.title}, {name}", frame, options={"most_items": most_items})
        for name, frame in frames.items()
    ]
    caption = (
        f"Items of each class that every client has of the complete data set; the largest dot stands for "
        f"{most_items}, areas are proportional."
    )
    return Figure(f"{kind.name}_classes", caption, panels, "Items of each class by client")
