"""Drawings: what is drawn is what the frame has, and no text covers another or is cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

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
from bench.figures.panels import Figure, curves_of, y_limits
from bench.statistics.summary import with_intervals

LOOKS_AT_FIGURES = True

ROUNDS = np.arange(1, 101)


def figure_of(
    kind: str, data: pd.DataFrame, looks: Mapping[str, style.Look], panel: str = "Cora", **options: Any
) -> Figure:
    """A figure with one panel."""
    return Figure("name", kind, "A title", "caption", data.assign(panel=panel), looks, **options)


def canvas_of(figure: Figure) -> Canvas:
    """A figure, of which no text covers another or lies outside."""
    with mpl.rc_context(fname=style.RC):
        canvas = draw(figure)
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


def looks_of(count: int) -> dict[str, style.Look]:
    """Of methods ``m0``, ``m1``, ..."""
    looks = enumerate(style.every_look(style.HUES)[:count])
    return {f"m{number}": replace(look, label=f"Method {number}") for number, look in looks}


def curve(number: int, level: float) -> pd.DataFrame:
    """A curve of five seeds that rises to a level."""
    mean = level * (1 - np.exp(-ROUNDS / 10))
    return pd.DataFrame({"method": f"m{number}", "round": ROUNDS, "n": 5, "mean": mean, "std": 0.5})


def curves(levels: list[float], kind: str = "curves") -> Figure:
    """Curves that rise to these levels."""
    data = with_intervals(pd.concat([curve(number, level) for number, level in enumerate(levels)]))
    return figure_of(kind, data, looks_of(len(levels)), "Cora, overlapping, 30 clients")


def points_of(figure: Figure, method: str) -> np.ndarray:
    """The points ``[points, 2]`` of a method's curve."""
    rows = figure.data[figure.data["method"] == method]
    return rows[["round", "mean"]].to_numpy()


def test_curves_are_drawn_as_given_with_students_intervals() -> None:
    figure = curves([60.0, 80.0])
    canvas = canvas_of(figure)
    (axes,) = canvas.axes
    for (method, look), line in zip(figure.looks.items(), axes.lines, strict=True):
        assert line.get_label() == look.label
        assert line.get_xydata() == pytest.approx(points_of(figure, method))
    band = axes.collections[0].get_paths()[0].vertices
    half = stats.t.ppf(0.975, 4) * 0.5 / np.sqrt(5)
    assert band[:, 1].max() == pytest.approx(curve(0, 60.0)["mean"].max() + half)
    texts = {text.get_text() for text in canvas.findobj(Text)}
    assert texts >= {"A title", "Method 0", "Method 1", "Cora, overlapping, 30 clients"}


def test_many_curves_have_a_drawing_each_before_all_the_others() -> None:
    figure = curves([60.0 + number for number in range(13)], "multiples")
    (axes,) = canvas_of(figure).axes
    texts = {text.get_text() for text in axes.texts}
    assert texts >= {look.label for look in figure.looks.values()}
    assert texts >= {f"{points_of(figure, method)[-1, 1]:.1f}" for method in figure.looks}
    _, _, drawn, _ = axes.collections
    (behind,) = axes.lines
    bottom, top = limits_of(figure)
    places = set()
    for method, path in zip(figure.looks, drawn.get_paths(), strict=True):
        points = points_of(figure, method)
        moves = path.vertices - (points - [0, bottom]) / [100, top - bottom]
        moves = moves[points[:, 1] > bottom]
        assert np.ptp(moves, axis=0) == pytest.approx(0)
        places.add(tuple(moves[0].round(6)))
    assert len(places) == 13  # all in the same shape, each in a place of its own
    assert len(behind.get_xdata()) == 13 * 13 * (len(ROUNDS) + 1)


def limits_of(figure: Figure) -> tuple[float, float]:
    return y_limits(figure, curves_of(figure, figure.data))


def test_an_unstable_curve_does_not_stretch_the_axis_but_the_most_hurt_client_does() -> None:
    low, high = limits_of(curves([*np.linspace(80, 84, 12), 20.0]))
    assert 20 < low < 70
    assert 84 < high <= 100
    shares = pd.DataFrame({"share": [25.0, 75.0] * 2, "difference": [-90.0, 2.0, 0.0, 1.0]})
    data = shares.assign(method=["m0", "m0", "m1", "m1"])
    figure = figure_of("curves", data, looks_of(2), x="share", y="difference", y_label="Points", level=0.0)
    assert limits_of(figure)[0] < -90


def test_pairs_have_their_intervals_and_long_names_are_whole() -> None:
    rows = {"method": ["m0", "m0"], "kind": ["measured", "published"], "n": [5, 0], "mean": [80.0, 70.0]}
    data = pd.DataFrame({**rows, "std": [1.0, 2.0], "low": [78.0, 68.0], "high": [82.0, 72.0]})
    name = "completed hyperedges, linear logits, two hundred rounds of training"
    looks = {"m0": replace(looks_of(1)["m0"], label=name)}
    both = pd.concat([data.assign(panel=panel) for panel in ("Cora", "CiteSeer")])
    axes = canvas_of(Figure("name", "pairs", "A title", "caption", both, looks)).axes[0]
    bars, measured, published = axes.collections
    assert [path.vertices[:, 0].tolist() for path in bars.get_paths()] == [[78.0, 82.0], [68.0, 72.0]]
    assert [each.get_offsets()[0, 0] for each in (measured, published)] == [80.0, 70.0]
    assert axes.texts[0].get_text().replace("\n", " ") == name


def test_ranks_have_their_intervals_and_groups() -> None:
    rows = {"method": ["m0", "m1", "m2"], "mean_rank": [1.2, 2.0, 1.5], "low": [1.0, 1.5, np.nan]}
    data = pd.DataFrame({**rows, "high": [1.5, 2.5, np.nan], "group": pd.array([1, 1, None], "Int64")})
    axes = canvas_of(figure_of("ranks", data, looks_of(3), "")).axes[0]
    assert axes.collections[1].get_offsets()[:, 0].tolist() == [1.2, 2.0, 1.5]
    notes = [text.get_text() for text in axes.texts[3:]]
    assert ["group 1" in note for note in notes] == [True, True, False]
