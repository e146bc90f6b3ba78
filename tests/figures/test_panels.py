"""Drawings: what is drawn is what the frame has, and no text covers another or is cut."""

from __future__ import annotations

from itertools import combinations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Text
from scipy import stats

from bench.figures import style
from bench.figures.drawing import draw
from bench.figures.panels import Figure, Mark, Panel
from bench.statistics.summary import with_intervals

LOOKS_AT_FIGURES = True

ROUNDS = np.arange(1, 101)


def canvas_of(*panels: Panel, title: str = "A title") -> Canvas:
    """A figure of these panels."""
    with mpl.rc_context(rc=style.RC):
        return draw(Figure("name", "caption", panels, title))


def covered(canvas: Canvas) -> list[tuple[str, str]]:
    """Pairs of texts of a canvas that overlap by more than a pixel, or lie outside it (with an empty one)."""
    renderer = FigureCanvasAgg(canvas).get_renderer()
    canvas.draw(renderer)
    beyond = {
        id(label)  # ticks beyond the limits have texts that are not drawn
        for axes in canvas.findobj(Axes)
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_major_ticks()
        for label in (tick.label1, tick.label2)
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    texts = [text for text in canvas.findobj(Text) if text.get_text().strip() and id(text) not in beyond]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_visible()]
    page = canvas.bbox.padded(1)
    outside = [(name, "") for name, box in boxes if not (page.contains(*box.min) and page.contains(*box.max))]
    pairs = [
        (one, other)
        for (one, first), (other, second) in combinations(boxes, 2)
        if min(first.x1, second.x1) - max(first.x0, second.x0) > 1
        and min(first.y1, second.y1) - max(first.y0, second.y0) > 1
    ]
    return outside + pairs


def marks(count: int, *keys: int) -> tuple[Mark, ...]:
    """Methods ``m0``, ``m1``, ..., of which some are ``keys``."""
    looks = [look for look, _ in zip(style._every_look(style.HUES), range(count), strict=False)]
    return tuple(
        Mark(f"m{number}", f"Method {number}", look, number in keys) for number, look in enumerate(looks)
    )


def curve(number: int, level: float, n: int = 5) -> pd.DataFrame:
    """A curve that rises to a level."""
    mean = level * (1 - np.exp(-ROUNDS / 10))
    std = 0.5 if n > 1 else np.nan
    return pd.DataFrame({"method": f"m{number}", "round": ROUNDS, "n": n, "mean": mean, "std": std})


def curves(levels: list[float], *keys: int, n: int = 5) -> Panel:
    """Curves that rise to these levels."""
    data = with_intervals(pd.concat([curve(number, level, n) for number, level in enumerate(levels)]))
    return Panel("curves", "Cora, overlapping, 30 clients", data, marks(len(levels), *keys))


def by_label(axes: Axes) -> dict[str, np.ndarray]:
    """The points ``[points, 2]`` of every line with a name."""
    return {
        str(line.get_label()): np.column_stack([np.ravel(line.get_xdata()), np.ravel(line.get_ydata())])
        for line in axes.lines
        if not str(line.get_label()).startswith("_")
    }


def test_curves_are_drawn_as_given_with_students_intervals() -> None:
    panel = curves([60.0, 80.0])
    canvas = canvas_of(panel)
    (axes,) = canvas.axes
    for mark in panel.marks:
        rows = panel.parts[mark.method]
        assert by_label(axes)[mark.label] == pytest.approx(rows[["round", "mean"]].to_numpy())
    band = axes.collections[1].get_paths()[0].vertices
    half = stats.t.ppf(0.975, 4) * 0.5 / np.sqrt(5)
    assert band[:, 1].max() == pytest.approx(curve(0, 60.0)["mean"].max() + half)
    assert {text.get_text() for text in canvas.findobj(Text)} >= {"Method 0", "Method 1", panel.title}
    assert covered(canvas) == []


def test_points_have_bars() -> None:
    few = pd.concat([curve(0, 60.0)[:4], curve(1, 70.0, n=2)[:4]])
    (axes,) = canvas_of(Panel("curves", "Cora", with_intervals(few), marks(2))).axes
    bars = [
        each for each in axes.collections if isinstance(each, LineCollection) and len(each.get_paths()) == 4
    ]
    assert len(bars) == 1
    assert len(axes.lines) == 2


def test_many_curves_have_a_drawing_each_before_all_the_others() -> None:
    panel = curves([60.0 + number for number in range(13)], 0, 12)
    canvas = canvas_of(panel)
    large, small = canvas.axes
    assert by_label(large).keys() == {"Method 0", "Method 12"}
    ends = [f"{panel.parts[mark.method]['mean'].iloc[-1]:.1f}" for mark in panel.marks]
    texts = [text.get_text() for text in small.texts]
    assert texts == [text for mark, end in zip(panel.marks, ends, strict=True) for text in (mark.label, end)]
    places = set()
    for mark in panel.marks:
        moves = by_label(small)[mark.label] - panel.parts[mark.method][["round", "mean"]].to_numpy()
        assert np.nanmax(moves, axis=0) == pytest.approx(np.nanmin(moves, axis=0))
        places.add(tuple(np.nanmax(moves, axis=0).round(6)))
    assert len(places) == 13  # all in the same shape, each in a place of its own
    assert covered(canvas) == []


def test_an_unstable_curve_does_not_stretch_the_axis_but_the_most_hurt_client_does() -> None:
    (axes, *_) = canvas_of(curves([*np.linspace(80, 84, 12), 20.0])).axes
    low, high = axes.get_ylim()
    assert 20 < low < 70
    assert 84 < high <= 100
    shares = pd.DataFrame({"share": [25.0, 75.0] * 2, "difference": [-90.0, 2.0, 0.0, 1.0]})
    data = shares.assign(method=["m0", "m0", "m1", "m1"])
    options = {"x": "share", "y": "difference", "is_robust": False, "level": 0.0, "y_label": "Points"}
    (axes,) = canvas_of(Panel("curves", "Cora", data, marks(2), options)).axes
    assert axes.get_ylim()[0] < -90


def test_pairs_have_their_intervals_and_long_names_are_whole() -> None:
    rows = {"method": ["m0", "m0"], "kind": ["measured", "published"], "n": [5, 0], "mean": [80.0, 70.0]}
    data = pd.DataFrame({**rows, "std": [1.0, 2.0], "low": [78.0, 68.0], "high": [82.0, 72.0]})
    name = "completed hyperedges, linear logits, two hundred rounds of training"
    (mark,) = marks(1)
    panel = Panel("pairs", "Cora", data, (Mark("m0", name, mark.look),))
    canvas = canvas_of(panel, panel)
    axes = canvas.axes[0]
    bars = sorted(path.vertices[:, 0].tolist() for each in axes.collections for path in each.get_paths())
    assert bars == [[68.0, 72.0], [78.0, 82.0]]
    assert {float(line.get_xdata()[0]) for line in axes.lines if len(line.get_xdata())} == {70.0, 80.0}
    assert axes.texts[0].get_text().replace("\n", " ") == name
    assert covered(canvas) == []


def test_ranks_have_their_intervals_groups_and_missing_tasks() -> None:
    rows = {"method": ["m0", "m1", "m2"], "mean_rank": [1.2, 2.0, 1.5], "low": [1.0, 1.5, np.nan]}
    data = pd.DataFrame({**rows, "high": [1.5, 2.5, np.nan], "group": [1, 1, np.nan], "tasks": [8, 8, 2]})
    canvas = canvas_of(Panel("ranks", "", data, marks(3), {"task_count": 8}))
    axes = canvas.axes[0]
    assert [float(line.get_xdata()[0]) for line in axes.lines] == [1.2, 2.0, 1.5]
    notes = [text.get_text() for text in axes.texts[3:]]
    assert ["group 1" in note for note in notes] == [True, True, False]
    assert "2 of 8" in notes[2]
    assert covered(canvas) == []


@pytest.mark.parametrize("costs", [[0.0, 800.0, 6400.0], [0.003, 5.0, 90_000.0], [7.0, 7.2, 7.5]])
def test_costs_are_drawn_at_their_place_with_the_front(costs: list[float]) -> None:
    rows = {"method": ["m0", "m1", "m2"], "n": 3, "mean": [70.0, 80.0, 75.0], "std": 1.0}
    data = with_intervals(pd.DataFrame({**rows, "seconds": costs})).assign(front=[1, 1, 0])
    canvas = canvas_of(Panel("costs", "Cora", data, marks(3), {"x": "seconds", "x_label": "Seconds"}))
    (axes,) = canvas.axes
    points = by_label(axes)
    assert points.pop("Pareto front")[:2].tolist() == [[costs[0], 70.0], [costs[1], 80.0]]
    assert [points[f"Method {number}"][0].tolist() for number in range(3)] == data[
        ["seconds", "mean"]
    ].to_numpy().tolist()
    low, high = axes.get_xlim()
    assert low < min(costs) < max(costs) < high
    assert covered(canvas) == []


def test_of_many_methods_only_the_front_and_the_keys_have_names() -> None:
    count = 12
    rows = {"method": [f"m{number}" for number in range(count)], "n": 3, "mean": np.linspace(70, 80, count)}
    data = with_intervals(pd.DataFrame({**rows, "std": 1.0, "seconds": np.linspace(9, 1, count)}))
    data["front"] = [0] * (count - 1) + [1]
    panel = Panel("costs", "Cora", data, marks(count, 3), {"x": "seconds", "x_label": "Seconds"})
    (axes,) = canvas_of(panel).axes
    assert by_label(axes).keys() == {"Pareto front", "Other methods", "Method 3", "Method 11"}


@pytest.mark.parametrize(
    ("kind", "down", "across", "value"),
    [("heat", "client", "from", "weight"), ("classes", "class", "client", "items")],
)
def test_a_heat_map_shows_its_numbers(kind: str, down: str, across: str, value: str) -> None:
    rows, columns = np.indices((2, 3))
    data = pd.DataFrame({down: rows.ravel(), across: columns.ravel(), value: np.arange(6.0)})
    canvas = canvas_of(Panel(kind, "FedSheafHN\nCora, overlapping, 30", data))
    assert canvas.axes[0].images[0].get_array().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert covered(canvas) == []
