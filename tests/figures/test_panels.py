"""Drawings: what is drawn is what the frame has, and no text covers another or is cut."""

from __future__ import annotations

from itertools import combinations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
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
    """A figure of these panels, of which no text covers another or lies outside."""
    with mpl.rc_context(rc=style.RC):
        canvas = draw(Figure("name", "caption", panels, title))
        assert covered(canvas) == []
    return canvas


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
    looks = [look for look, _ in zip(style.every_look(style.HUES), range(count), strict=False)]
    return tuple(
        Mark(f"m{number}", f"Method {number}", look, number in keys) for number, look in enumerate(looks)
    )


def curve(number: int, level: float) -> pd.DataFrame:
    """A curve of five seeds that rises to a level."""
    mean = level * (1 - np.exp(-ROUNDS / 10))
    return pd.DataFrame({"method": f"m{number}", "round": ROUNDS, "n": 5, "mean": mean, "std": 0.5})


def curves(levels: list[float], *keys: int) -> Panel:
    """Curves that rise to these levels."""
    data = with_intervals(pd.concat([curve(number, level) for number, level in enumerate(levels)]))
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
    texts = {text.get_text() for text in canvas.findobj(Text)}
    assert texts >= {"A title", "Method 0", "Method 1", panel.title}


def test_many_curves_have_a_drawing_each_before_all_the_others() -> None:
    panel = curves([60.0 + number for number in range(13)], 0, 12)
    large, small = canvas_of(panel).axes
    assert by_label(large).keys() == {"Method 0", "Method 12"}
    ends = [f"{panel.parts[mark.method]['mean'].iloc[-1]:.1f}" for mark in panel.marks]
    texts = [text.get_text() for text in small.texts]
    assert texts == [text for mark, end in zip(panel.marks, ends, strict=True) for text in (mark.label, end)]
    _, drawn, _ = small.collections
    places = set()
    for mark, path in zip(panel.marks, drawn.get_paths(), strict=True):
        points = panel.parts[mark.method][["round", "mean"]].to_numpy()
        (left, right), (bottom, top) = large.get_xlim(), large.get_ylim()
        moves = path.vertices - (points - [left, bottom]) / [right - left, top - bottom]
        moves = moves[points[:, 1] > bottom]
        assert np.ptp(moves, axis=0) == pytest.approx(0)
        places.add(tuple(moves[0].round(6)))
    assert len(places) == 13  # all in the same shape, each in a place of its own


def test_an_unstable_curve_does_not_stretch_the_axis_but_the_most_hurt_client_does() -> None:
    (axes, *_) = canvas_of(curves([*np.linspace(80, 84, 12), 20.0])).axes
    low, high = axes.get_ylim()
    assert 20 < low < 70
    assert 84 < high <= 100
    shares = pd.DataFrame({"share": [25.0, 75.0] * 2, "difference": [-90.0, 2.0, 0.0, 1.0]})
    data = shares.assign(method=["m0", "m0", "m1", "m1"])
    panel = Panel("curves", "Cora", data, marks(2), x="share", y="difference", y_label="Points", level=0.0)
    (axes,) = canvas_of(panel).axes
    assert axes.get_ylim()[0] < -90


def test_pairs_have_their_intervals_and_long_names_are_whole() -> None:
    rows = {"method": ["m0", "m0"], "kind": ["measured", "published"], "n": [5, 0], "mean": [80.0, 70.0]}
    data = pd.DataFrame({**rows, "std": [1.0, 2.0], "low": [78.0, 68.0], "high": [82.0, 72.0]})
    name = "completed hyperedges, linear logits, two hundred rounds of training"
    (mark,) = marks(1)
    panel = Panel("pairs", "Cora", data, (Mark("m0", name, mark.look),))
    axes = canvas_of(panel, panel).axes[0]
    bars, measured, _, published, _ = axes.collections  # the others are the legend's
    assert [path.vertices[:, 0].tolist() for path in bars.get_paths()] == [[78.0, 82.0], [68.0, 72.0]]
    assert [each.get_offsets()[0, 0] for each in (measured, published)] == [80.0, 70.0]
    assert axes.texts[0].get_text().replace("\n", " ") == name


def test_ranks_have_their_intervals_groups_and_missing_tasks() -> None:
    rows = {"method": ["m0", "m1", "m2"], "mean_rank": [1.2, 2.0, 1.5], "low": [1.0, 1.5, np.nan]}
    data = pd.DataFrame({**rows, "high": [1.5, 2.5, np.nan], "group": [1, 1, np.nan], "tasks": [8, 8, 2]})
    axes = canvas_of(Panel("ranks", "", data, marks(3))).axes[0]
    assert axes.collections[1].get_offsets()[:, 0].tolist() == [1.2, 2.0, 1.5]
    notes = [text.get_text() for text in axes.texts[3:]]
    assert ["group 1" in note for note in notes] == [True, True, False]
    assert "2 of 8" in notes[2]


def test_a_heat_map_shows_its_numbers() -> None:
    rows, columns = np.indices((2, 3))
    data = pd.DataFrame({"client": rows.ravel(), "from": columns.ravel(), "weight": np.arange(6.0)})
    canvas = canvas_of(Panel("heat", "FedSheafHN\nCora, overlapping, 30", data))
    assert canvas.axes[0].images[0].get_array().tolist() == [[0, 1, 2], [3, 4, 5]]
