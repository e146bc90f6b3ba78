"""Drawings: the numbers drawn are those of the frame, and no text covers another."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.markers import CARETDOWN, CARETUP
from matplotlib.path import Path
from matplotlib.text import Text
from scipy import stats

from bench.figures import style
from bench.figures.curves import Curves
from bench.figures.layout import TITLE, Figure, Mark, Panel, draw
from bench.figures.plots import Boxes, Costs, Dots, Heat, Pairs, Ranks, log_ticks
from bench.figures.style import spread, wrapped_lines
from bench.statistics.summary import with_intervals

LOOKS_AT_FIGURES = True

ROUNDS = np.arange(1, 101)

LONG = "completed hyperedges, linear logits, two hundred rounds of training"


def canvas_of(*panels: Panel, title: str = "A title") -> Canvas:
    """A figure of these panels."""
    return draw(Figure("name", "caption", panels, title))


def covered(canvas: Canvas) -> list[tuple[str, str]]:
    """Pairs of texts of a canvas that overlap by more than a pixel, or lie outside it (with an empty one)."""
    # Ticks beyond the limits have texts that are not drawn.
    renderer = FigureCanvasAgg(canvas).get_renderer()
    canvas.draw(renderer)
    beyond = {
        id(tick.label1)
        for axes in canvas.findobj(Axes)
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_major_ticks()
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    texts = [
        text
        for text in canvas.findobj(Text)
        if text.get_visible() and text.get_text().strip() and id(text) not in beyond
    ]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    page = canvas.bbox
    boxes = [(name, box) for name, box in boxes if box.width and box.height]
    outside = [
        (name, "")
        for name, box in boxes
        if box.x0 < page.x0 - 1 or box.x1 > page.x1 + 1 or box.y0 < page.y0 - 1 or box.y1 > page.y1 + 1
    ]
    pairs = [
        (one, other)
        for (one, first), (other, second) in combinations(boxes, 2)
        if min(first.x1, second.x1) - max(first.x0, second.x0) > 1
        and min(first.y1, second.y1) - max(first.y0, second.y0) > 1
    ]
    return outside + pairs


def look(number: int) -> style.Look:
    """One of 32 looks, no two of which have colour and dashes in common."""
    turn, hue = divmod(number, len(style.HUES))
    return style.Look(style.HUES[hue], style.DASHES[turn], style.MARKERS[number % len(style.MARKERS)])


def marks(count: int, *keys: int) -> tuple[Mark, ...]:
    """Methods ``m0``, ``m1``, ..., of which some are ``keys``."""
    return tuple(
        Mark(f"m{number}", f"Method {number}", look(number), number in keys) for number in range(count)
    )


def curve(number: int, level: float, n: int = 5) -> pd.DataFrame:
    """A curve that rises to a level."""
    mean = level * (1 - np.exp(-ROUNDS / 10))
    std = 0.5 if n > 1 else np.nan
    return pd.DataFrame({"method": f"m{number}", "round": ROUNDS, "n": n, "mean": mean, "std": std})


def curves(*parts: pd.DataFrame, keys: tuple[int, ...] = ()) -> Curves:
    """A panel of curves."""
    return Curves("Cora", with_intervals(pd.concat(parts, ignore_index=True)), marks(len(parts), *keys))


def line_of(axes: Axes, colour: str) -> np.ndarray:
    """The points of the longest line of a colour."""
    lines = [line for line in axes.get_lines() if line.get_color() == colour]
    return max((np.asarray(line.get_xydata()) for line in lines), key=len)


def test_few_curves_are_drawn_as_given_with_student_intervals_and_named_at_their_ends() -> None:
    parts = [curve(number, 60 + 5 * number) for number in range(4)]
    panel = curves(*parts)
    canvas = canvas_of(panel)
    (axes,) = canvas.axes
    for mark, part in zip(panel.marks, parts, strict=True):
        np.testing.assert_array_equal(line_of(axes, mark.look.colour), part[["round", "mean"]].to_numpy())
    half = stats.t.ppf(0.975, 4) * 0.5 / np.sqrt(5)
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(parts[0]["mean"].max() + half)
    assert {mark.label for mark in panel.marks} <= {text.get_text() for text in axes.texts}
    assert covered(canvas) == []


def test_two_runs_have_no_band_but_both_lines_and_a_single_one_is_thin() -> None:
    runs = np.array([[60.0, 70.0, 80.0], [64.0, 68.0, 86.0]]).repeat(20, axis=1)
    rows = pd.DataFrame({"round": np.arange(60), "mean": runs.mean(axis=0), "std": runs.std(axis=0, ddof=1)})
    alone = rows.assign(method="m1", n=1, std=np.nan, mean=runs[0] - 20)
    several = rows.assign(method="m2", n=3, mean=runs[0] - 40)
    panel = curves(rows.assign(method="m0", n=2), alone, several)
    assert panel.parts["m0"]["low"].isna().all()
    (axes,) = canvas_of(panel).axes
    assert len(axes.collections) == 1  # the band of the three
    both = [line for line in axes.get_lines() if line.get_color() == panel.marks[0].look.colour]
    drawn = np.sort([line.get_ydata() for line in both if line.get_linewidth() < 0.6], axis=0)
    np.testing.assert_allclose(drawn, np.sort(runs, axis=0))
    widths = [
        max(line.get_linewidth() for line in axes.get_lines() if line.get_color() == mark.look.colour)
        for mark in panel.marks
    ]
    assert widths[1] < widths[0] == widths[2]


def test_names_of_curves_that_end_at_the_same_number_are_set_apart() -> None:
    assert covered(canvas_of(curves(*(curve(number, 80 + 0.01 * number) for number in range(6))))) == []


def test_places_are_moved_as_little_as_it_takes() -> None:
    np.testing.assert_allclose(spread([0.0, 1.0, 5.0], 0.5), [0.0, 1.0, 5.0])
    np.testing.assert_allclose(spread([2.0, 1.0, 1.0], 1.0), [7 / 3, 1 / 3, 4 / 3])
    np.testing.assert_allclose(spread([2.0, 2.0], [1.0, 3.0]), [1.0, 3.0])  # half of each between them


def test_a_line_ends_with_no_number_whose_unit_is_on_the_next() -> None:
    text = "mean of 20 seeds, 95 % interval, 1 seed, to 25.4; 0.5 to 1,000.5 MB"
    for width in np.arange(0.2, 4.0, 0.05):
        lines = wrapped_lines(text, width, 8.0)
        assert " ".join(lines) == text
        assert not any(line.split()[-1].replace(",", "").replace(".", "").isdigit() for line in lines)


def test_wrapped_lines_keep_within_their_width_where_they_are_drawn() -> None:
    """Drawn letters stand on whole pixels, and a line is wider than the sum of their outlines."""
    text = (
        "FedSheafHN: Tables 1 and 2 with released client settings. Test accuracy in percent: mean of 3 seeds"
    )
    figure = Canvas(dpi=150)
    FigureCanvasAgg(figure)
    for width in np.arange(2.0, 7.0, 0.01):
        for line in wrapped_lines(text, width, TITLE):
            drawn = figure.text(0, 0, line, fontsize=TITLE)
            assert drawn.get_window_extent().width <= 150 * width, (line, width)
            drawn.remove()


def test_names_at_the_ends_of_curves_have_one_size_and_are_whole() -> None:
    names = ("FedSheafHN, common initial model (50 + 3 epochs)", "Local", "FedAvg", "FedPer")
    panel = curves(*(curve(number, 80) for number in range(4)))
    named = tuple(replace(mark, label=name) for mark, name in zip(panel.marks, names, strict=True))
    canvas = canvas_of(replace(panel, marks=named))
    texts = [text for text in canvas.axes[0].texts if text.get_text()]
    assert {" ".join(text.get_text().split()) for text in texts} == set(names)
    assert len({text.get_fontsize() for text in texts}) == 1
    assert covered(canvas) == []


def test_names_above_small_drawings_are_whole_and_clear_of_the_last_values() -> None:
    panel = curves(*(curve(number, 60 + number) for number in range(13)), keys=(0,))
    name = "FED-PUB (tau 10, as released)"
    canvas = canvas_of(replace(panel, marks=tuple(replace(mark, label=name) for mark in panel.marks)))
    assert {" ".join(axes.get_title("left").split()) for axes in canvas.axes[1:]} == {name}
    assert len({axes.get_title("right") for axes in canvas.axes[1:]}) == 13
    assert covered(canvas) == []


def test_many_curves_have_a_drawing_each_before_all_the_others() -> None:
    parts = [curve(number, 60 + number) for number in range(13)]
    panel = curves(*parts, keys=(0, 5, 12))
    canvas = canvas_of(panel)
    first, *small = canvas.axes
    assert len(small) == 13
    named = {text.get_text() for text in first.texts}
    assert {"Method 0", "Method 5", "Method 12"} <= named
    assert "Method 1" not in named
    for axes, mark, part in zip(small, panel.marks, parts, strict=True):
        assert axes.get_title("left") == mark.label
        np.testing.assert_array_equal(line_of(axes, mark.look.colour)[:, 1], part["mean"])
        assert len(axes.collections[0].get_paths()) == 12  # the others, in grey
        assert axes.get_ylim() == first.get_ylim()
    assert covered(canvas) == []


def test_an_unstable_curve_does_not_stretch_the_axis_and_is_named_with_its_lowest() -> None:
    parts = [curve(number, 80 + number) for number in range(5)]
    low = min(float(part["mean"][50:].min()) for part in parts)
    wild = parts[0].assign(method="m5")
    wild.loc[60, "mean"] = 3.0
    shown = curves(*parts, wild).y_range
    assert 3.0 < shown.low < low
    assert shown.cut == ("Method 5, to 3.0",)
    assert curves(*parts).y_range.cut == ()


def test_intervals_of_first_rounds_do_not_stretch_the_axis_beside_a_curve_of_one_row() -> None:
    parts = [curve(number, 60 + number) for number in range(3)]
    parts.append(pd.DataFrame({"method": "m3", "round": [1], "n": 5, "mean": 50.0, "std": 0.5}))
    shown = curves(*parts).y_range
    for part in parts[:3]:
        part.loc[:2, "std"] = 40.0  # intervals of 50 points to either side
    assert curves(*parts).y_range == shown


def test_bands_of_later_rounds_end_inside_the_axis() -> None:
    part = curve(0, 60).assign(std=3.0)
    panel = curves(part, curve(1, 50))
    half = stats.t.ppf(0.975, 4) * 3.0 / np.sqrt(5)
    assert panel.y_range.high > part["mean"].max() + half


def test_a_bar_that_goes_on_beyond_the_axis_ends_with_an_arrow_there() -> None:
    rows = pd.DataFrame({"method": "m0", "round": [1, 2, 3], "n": 3, "mean": [50.0, 60, 55], "std": 1.0})
    panel = curves(rows.assign(std=[1.0, 90.0, 1.0]))
    (axes,) = canvas_of(panel).axes
    arrows = {
        (line.get_marker(), *np.ravel(line.get_xydata()))
        for line in axes.get_lines()
        if line.get_marker() in (CARETUP, CARETDOWN)
    }
    low, high, _ = panel.y_range
    assert arrows == {(CARETUP, 2.0, high), (CARETDOWN, 2.0, low)}
    (axes,) = canvas_of(curves(rows)).axes
    assert not any(line.get_marker() in (CARETUP, CARETDOWN) for line in axes.get_lines())


def test_what_is_outside_the_axis_is_named_with_two_digits_that_say_something() -> None:
    parts = [curve(number, 0.05 + 0.001 * number) for number in range(5)]
    for value, text in ((0.25, "0.25"), (0.254, "0.25"), (0.6312, "0.63"), (3.14159, "3.1"), (0.0, "0.0")):
        panel = curves(*parts, parts[0].assign(method="m5", mean=value, std=0.0))
        assert panel.y_range.cut == (f"Method 5, to {text}",)


def test_no_accuracy_above_100_percent_is_on_the_axis_but_other_quantities_may_be() -> None:
    rows = pd.DataFrame({"method": "m0", "round": [1, 2, 3], "n": 3, "mean": [80.0, 97, 98], "std": 3.0})
    assert curves(rows).y_range.high == 100.0
    assert replace(curves(rows), up_label="Megabytes").y_range.high > 100


def test_of_a_curve_outside_the_axis_its_small_drawing_says_where_it_ends() -> None:
    parts = [curve(number, 80 + number) for number in range(8)]
    flat = parts[0].assign(method="m8", mean=12.25)
    canvas = canvas_of(curves(*parts, flat))
    _, *small = canvas.axes
    values = [[text.get_text() for text in axes.texts if text.get_text()] for axes in small]
    assert values[:8] == [[]] * 8
    (value,) = values[8]
    assert "12.2" in value
    assert covered(canvas) == []


def test_points_have_bars_and_the_axis_shows_them_all() -> None:
    means = np.array([90.0, 40.0, 20.0])
    rows = pd.DataFrame({"method": "m0", "round": [0.0, 0.5, 1.0], "n": 3, "mean": means, "std": 1.0})
    canvas = canvas_of(curves(rows))
    (axes,) = canvas.axes
    half = stats.t.ppf(0.975, 2) / np.sqrt(3)
    (bars,) = axes.containers
    ends = [segment[:, 1] for segment in bars.lines[2][0].get_segments()]
    np.testing.assert_allclose(ends, [[mean - half, mean + half] for mean in means])
    assert axes.get_ylim()[0] < 20 - half
    assert axes.get_ylim()[1] > 90 + half


def test_a_curve_ends_at_its_largest_x_in_whatever_order_its_rows_are() -> None:
    parts = [
        pd.DataFrame(
            {"method": f"m{number}", "round": [1.0, 0.5, 0.2], "mean": [70 + number, 60, 50], "n": 1}
        )
        for number in range(8)
    ]
    panel = curves(*(part.assign(std=np.nan) for part in parts), keys=(0,))
    first, *small = canvas_of(panel).axes
    assert [axes.get_title("right") for axes in small] == [f"{70 + number:.1f}" for number in range(8)]
    assert line_of(first, panel.marks[0].look.colour)[-1].tolist() == [1.0, 70.0]


def test_named_places_are_the_ticks() -> None:
    rows = pd.DataFrame({"method": "m0", "stage": [5, 10, 20], "n": 1, "mean": [80, 75, 70], "std": np.nan})
    ticks = ((5.0, "early"), (20.0, "late"))
    panel = Curves("Cora", with_intervals(rows), marks(1), x="stage", ticks=ticks)
    (axes,) = canvas_of(panel).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["early", "late"]


def test_differences_show_the_most_hurt_client_however_far() -> None:
    parts = [
        pd.DataFrame(
            {
                "method": f"m{number}",
                "share": np.arange(5.0, 100.0, 10.0),
                "difference": np.sort(np.r_[-60.0, np.linspace(-1, 2 + number, 9)]),
            }
        )
        for number in range(3)
    ]
    canvas = canvas_of(
        Curves("Cora", pd.concat(parts), marks(3), "share", "difference", is_robust=False, level=0)
    )
    assert canvas.axes[0].get_ylim()[0] < -60
    assert covered(canvas) == []


def test_titles_of_panels_side_by_side_do_not_meet() -> None:
    rows = pd.DataFrame({"method": "Local", "value": [50.0, 90.0, 70.0]})
    looks = (Mark("Local", "Local", look(0)),)
    titles = [f"CIFAR-10 sample, {name}-released, 20 clients" for name in ("dirichlet0.1", "pathological")]
    canvas = canvas_of(*(Boxes(title, rows, looks, 70.0, "Median of Local") for title in titles))
    assert covered(canvas) == []
    assert [" ".join(axes.get_title(loc="left").split()) for axes in canvas.axes] == titles  # nothing is cut


def test_boxes_show_every_client_and_the_quartiles() -> None:
    values = np.array([50.0, 90.0, 70.0, 60.0, 80.0])
    names = ("Local", "FedAvg", LONG)
    parts = [pd.DataFrame({"method": name, "value": values + number}) for number, name in enumerate(names)]
    looks = tuple(Mark(name, name, look(number)) for number, name in enumerate(names))
    canvas = canvas_of(Boxes("Cora", pd.concat(parts), looks, 70.0, "Median of Local"))
    (axes,) = canvas.axes
    for number, (mark, patch) in enumerate(zip(looks, axes.patches, strict=True)):
        ordered = np.sort(values + number)
        assert (patch.get_x(), patch.get_x() + patch.get_width()) == (ordered[1], ordered[3])
        points = [line for line in axes.get_lines() if line.get_color() == mark.look.colour]
        np.testing.assert_array_equal(points[0].get_xdata(), ordered)
        medians = [line for line in axes.get_lines() if line.get_color() == "black"]
        assert list(medians[number].get_xdata()) == [ordered[2], ordered[2]]
    assert covered(canvas) == []


def test_names_of_rows_have_one_size_and_are_whole() -> None:
    names = ("Local", "Federated, own nodes, true sizes and degrees", "Federated, completed (released)")
    rows = pd.concat([pd.DataFrame({"method": name, "value": [50.0, 60.0]}) for name in names])
    canvas = canvas_of(Boxes("Cora", rows, tuple(Mark(name, name, look(0)) for name in names)))
    labels = canvas.axes[0].get_yticklabels()
    assert len({label.get_fontsize() for label in labels}) == 1
    assert [" ".join(label.get_text().split()) for label in labels] == list(names)
    assert covered(canvas) == []


def pairs(*rows: tuple[str, str, int, float, float], kinds: tuple[str, str] = ("a", "b")) -> Pairs:
    data = pd.DataFrame(rows, columns=["method", "kind", "n", "mean", "std"])
    return Pairs("t", with_intervals(data), marks(data["method"].nunique()), kinds)


def test_pairs_have_their_intervals() -> None:
    (axes,) = canvas_of(pairs(("m0", "a", 4, 72.0, 3.5), ("m0", "b", 2, 60.0, 2.0))).axes
    half = stats.t.ppf(0.975, 3) * 3.5 / 2
    bars = [
        segment[:, 0] for bar in axes.containers for part in bar.lines[2] for segment in part.get_segments()
    ]
    assert [tuple(bar) for bar in bars] == [pytest.approx((72 - half, 72 + half))]  # none of two runs
    assert {bar.lines[0].get_xdata()[0] for bar in axes.containers} == {72.0, 60.0}


def test_the_accuracy_axis_of_pairs_says_where_it_starts() -> None:
    canvas = canvas_of(pairs(("m0", "trained", 1, 72.0, np.nan), kinds=("trained", "received")))
    assert canvas.axes[0].get_xlim()[0] == 70  # 72 - 1, down to a multiple of 5
    assert "70" in canvas.axes[0].get_xlabel()
    assert [text.get_text() for text in canvas.legends[0].get_texts()] == ["Trained"]


def test_wide_intervals_do_not_hide_what_is_compared() -> None:
    wide = pairs(("m0", "a", 3, 80.0, 10.0), ("m1", "a", 3, 84.0, 0.1))
    low, high = canvas_of(wide).axes[0].get_xlim()
    assert high - low < 20  # the first interval alone is 50 points long


def test_ranks_have_their_intervals_and_brackets_by_group() -> None:
    rows = [("m0", 1.5, 1.0, 2.25, 1), ("m1", 2.0, 1.5, 3.0, 1), ("m2", 3.5, np.nan, np.nan, 2)]
    data = pd.DataFrame(rows, columns=["method", "mean_rank", "low", "high", "group"])
    panel = Ranks("Ranks", data.astype({"group": "Int64"}), marks(3))
    canvas = canvas_of(panel)
    (axes,) = canvas.axes
    for row, (mark, (_, mean, low, high, _)) in enumerate(zip(panel.marks, rows, strict=True)):
        lines = [line for line in axes.get_lines() if line.get_color() == mark.look.colour]
        spans = [tuple(line.get_xdata()) for line in lines if len(line.get_xdata()) == 2]
        assert spans == ([] if np.isnan(low) else [(low, high)])
        points = [line for line in lines if len(line.get_xdata()) == 1]
        assert (points[0].get_xdata()[0], points[0].get_ydata()[0]) == (mean, 2 - row)
    groups = [text for text in axes.texts if text.get_text().startswith("group")]
    assert [(text.get_text(), text.xy[1]) for text in groups] == [("group 1", 1.5), ("group 2", 0.0)]
    assert covered(canvas) == []


def test_methods_with_ranks_in_fewer_tasks_stand_apart_with_their_number() -> None:
    rows = [("m0", 2.5, 2.0, 3.0, 1, 3), ("m1", 9.0, 8.0, 10.0, 1, 3), ("m2", 1.5, 1.0, 2.0, None, 2)]
    data = pd.DataFrame(rows, columns=["method", "mean_rank", "low", "high", "group", "tasks"])
    panel = Ranks("", data.astype({"group": "Int64"}), marks(3), task_count=3)
    canvas = canvas_of(panel)
    (axes,) = canvas.axes
    heights = [
        float(line.get_ydata()[0])
        for mark in panel.marks
        for line in axes.get_lines()
        if line.get_color() == mark.look.colour and len(line.get_xdata()) == 1
    ]
    # Somewhere between the second method and the third a line goes through the whole drawing.
    rules = [float(line.get_ydata()[0]) for line in axes.get_lines() if list(line.get_xdata()) == [0, 1]]
    assert heights[0] > heights[1] > rules[0] > heights[2]
    assert len(rules) == 1
    counts = [text for text in axes.texts if text.get_text() == "2 of 3"]
    assert [text.get_position()[1] for text in counts] == [heights[2]]
    assert "3 of 3" not in {text.get_text() for text in axes.texts}
    assert covered(canvas) == []


@pytest.mark.parametrize(("low", "high"), [(1500, 3400), (2.1, 2.3), (80, 1200), (0.003, 90_000), (7, 7.5)])
def test_ticks_of_a_cost_axis_are_few_and_inside(low: float, high: float) -> None:
    ticks = log_ticks(low, high)
    assert 1 <= len(ticks) <= 6
    assert all(low <= tick <= high for tick in ticks)
    assert ticks == sorted(set(ticks))


def costs(*prices: float) -> Costs:
    methods = [f"m{number}" for number in range(len(prices))]
    means = [80.0 + number % 3 for number in range(len(prices))]
    rows = pd.DataFrame({"method": methods, "n": 5, "mean": means, "std": 0.5, "megabytes": prices})
    return Costs("Cora", with_intervals(rows).assign(front=1), marks(len(prices)), "megabytes", "Megabytes")


def test_ticks_of_a_cost_axis_do_not_run_into_each_other() -> None:
    canvas = canvas_of(costs(0.0, 2000.0, 7000.0, 12_400.0))
    assert len(canvas.axes[0].get_xticks()) >= 3
    assert covered(canvas) == []


@pytest.mark.filterwarnings("error")
def test_equal_accuracies_of_one_run_each_lie_inside_their_axis() -> None:
    rows = pd.DataFrame(
        {"method": ["m0", "m1"], "n": 1, "mean": 80.0, "std": np.nan, "megabytes": [10.0, 20.0]}
    )
    panel = Costs("Cora", with_intervals(rows).assign(front=1), marks(2), "megabytes", "Megabytes")
    bottom, top = canvas_of(panel).axes[0].get_ylim()
    assert bottom < 80.0 < top


def test_names_stand_beside_their_points_and_cover_neither_each_other_nor_the_axis() -> None:
    panel = costs(0.0, 100.0, 104.0, 110.0, 115.0, 300.0, 310.0, 900.0)
    canvas = canvas_of(panel)
    (axes,) = canvas.axes
    assert {text.get_text() for text in axes.texts} == {mark.label for mark in panel.marks}
    drawn = {
        float(line.get_ydata()[0])
        for line in axes.get_lines()
        if len(line.get_xdata()) == 1 and line.get_marker() in style.MARKERS
    }
    assert drawn == {80.0, 81.0, 82.0}
    assert covered(canvas) == []


def test_names_stand_clear_of_the_front() -> None:
    panel = costs(100.0, 300.0, 900.0)
    canvas = canvas_of(panel)
    (axes,) = canvas.axes
    (front,) = [line for line in axes.get_lines() if line.get_drawstyle() == "steps-post"]
    renderer = FigureCanvasAgg(canvas).get_renderer()
    points = front.get_xydata()
    corners = [(x, y) for x, y in zip(points[1:, 0], points[:-1, 1], strict=True)]
    path = np.array([point for pair in zip(points, [*corners, points[-1]], strict=True) for point in pair])
    steps = Path(axes.transData.transform(path))
    assert axes.texts
    for text in axes.texts:
        text.update_positions(renderer)
        box = Text.get_window_extent(text, renderer)
        assert not steps.intersects_bbox(box, filled=False), text.get_text()


def test_of_many_methods_only_the_front_and_the_keys_have_names_and_intervals() -> None:
    panel = costs(0.0, *(100.0 + 7 * number for number in range(19)))
    front = panel.data["method"].isin(["m0", "m5"]).astype(int)
    chosen = replace(panel, data=panel.data.assign(front=front), marks=marks(20, 12))
    canvas = canvas_of(chosen)
    (axes,) = canvas.axes
    assert {text.get_text() for text in axes.texts} == {"Method 0", "Method 5", "Method 12"}
    assert len(axes.containers) == 3  # points with bars
    (dots,) = [
        line
        for line in axes.get_lines()
        if line.get_color() == Costs.DOTS["color"] and len(line.get_xdata()) > 2
    ]
    others = panel.data[~panel.data["method"].isin(["m0", "m5", "m12"])]
    np.testing.assert_array_equal(dots.get_xydata(), others[["megabytes", "mean"]].to_numpy())
    assert covered(canvas) == []


def test_the_legend_of_costs_explains_every_grey_thing_that_is_drawn() -> None:
    def entries(panel: Costs) -> int:
        (legend,) = canvas_of(panel).legends
        return len(legend.get_texts())

    assert entries(costs(50.0, 60.0)) == 1  # the front
    assert entries(costs(0.0, 60.0)) == 2  # and the line left of which is 0
    many = costs(*range(20))
    data = many.data.assign(front=(many.data["method"] == "m0").astype(int))
    assert entries(replace(many, data=data)) == 3  # and dots


def test_a_heat_map_shows_its_weights() -> None:
    weights = np.random.default_rng(0).random((10, 10))
    client, other = np.indices(weights.shape)
    data = pd.DataFrame({"client": client.ravel(), "from": other.ravel(), "weight": weights.ravel()})
    panel = Heat("FED-PUB\nCora, non-overlapping, 10", data)
    canvas = canvas_of(panel, panel, panel)
    np.testing.assert_array_equal(canvas.axes[0].get_images()[0].get_array(), weights)
    assert covered(canvas) == []


def test_dots_have_areas_by_count() -> None:
    data = pd.DataFrame({"client": [0, 0, 1, 1], "class": [0, 1, 0, 1], "items": [0, 4, 8, 2]})
    (axes,) = canvas_of(Dots("t", data, most_items=8)).axes
    (dots,) = axes.collections
    assert np.asarray(dots.get_offsets()).tolist() == [[0, 1], [1, 0], [1, 1]]
    sizes = dots.get_sizes()
    assert sizes[0] / sizes[1] == 0.5
