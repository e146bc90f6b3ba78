"""Figures as data, and how they are drawn: vector PDF, PNG and the CSV behind them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from scikit_posthocs import critical_difference_diagram

from bench.report import style

WIDTH, HEIGHT = 4.6, 3.3
"""Inches of a panel."""

MARKERS = 10
"""Markers along a curve."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A method's mean over seeds with its std, along ``x``. A single point is drawn as a level.

    ``look`` replaces the method's own, where several curves show the same method.
    """

    method: str
    label: str
    x: NDArray[np.float64]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    n: int
    look: style.Look | None = None

    @property
    def drawn(self) -> style.Look:
        """How the curve is drawn."""
        return self.look or style.of(self.method)


@dataclass(frozen=True, eq=False)
class Box:
    """A method's accuracy by client, in percent."""

    method: str
    label: str
    clients: tuple[str, ...]
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CurvePanel:
    """Curves of one column; ``where`` is data set, scenario and clients, ``axis`` what x counts."""

    title: str
    where: tuple[str, str, int]
    curves: tuple[Curve, ...]
    axis: str = "round"


@dataclass(frozen=True, eq=False)
class BoxPanel:
    """Boxes of one column. ``mark`` is the baseline's median, drawn through all boxes."""

    title: str
    where: tuple[str, str, int]
    boxes: tuple[Box, ...]
    mark: float | None
    mark_label: str


@dataclass(frozen=True, eq=False)
class RankPanel:
    """Mean ranks of methods over ``tasks``, with the p values ``[methods, methods]`` of their differences.

    ``difference`` is the critical difference of mean ranks.
    """

    title: str
    methods: tuple[str, ...]
    labels: tuple[str, ...]
    ranks: NDArray[np.float64]
    p: NDArray[np.float64]
    difference: float
    tasks: int


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure of one or more panels of the same kind, shown in the document of that name."""

    document: str
    name: str
    caption: str
    panels: tuple[CurvePanel, ...] | tuple[BoxPanel, ...] | tuple[RankPanel, ...]


def rows(figure: Figure) -> Iterator[tuple[str, ...]]:
    """The numbers behind a figure, header first; accuracies in percent."""
    where = ("dataset", "scenario", "clients", "method")
    first = figure.panels[0]
    if isinstance(first, RankPanel):
        yield from _rank_rows(first)
        return
    ends = (first.axis, "n", "mean", "std") if isinstance(first, CurvePanel) else ("client", "value")
    yield (*where, *ends)
    for panel in figure.panels:
        if isinstance(panel, CurvePanel):
            for curve in panel.curves:
                for x, mean, std in zip(curve.x, curve.mean, curve.std, strict=True):
                    spread = "" if math.isnan(std) else f"{std:.4f}"
                    yield (
                        *map(str, panel.where),
                        curve.method,
                        f"{x:.6g}",
                        str(curve.n),
                        f"{mean:.4f}",
                        spread,
                    )
        elif isinstance(panel, BoxPanel):
            for box in panel.boxes:
                for client, value in zip(box.clients, box.values, strict=True):
                    yield (*map(str, panel.where), box.method, client, f"{value:.4f}")


def _rank_rows(panel: RankPanel) -> Iterator[tuple[str, ...]]:
    yield ("method", "mean_rank", "tasks", "critical_difference", *(f"p_{name}" for name in panel.methods))
    for method, rank, line in zip(panel.methods, panel.ranks, panel.p, strict=True):
        shared = (f"{rank:.4f}", str(panel.tasks), f"{panel.difference:.4f}")
        yield (method, *shared, *(f"{value:.6g}" for value in line))


def _draw_curves(axes: Axes, panel: CurvePanel) -> None:
    last = max(float(curve.x[-1]) for curve in panel.curves)
    for curve in panel.curves:
        look = curve.drawn
        if len(curve.mean) == 1:
            axes.axhline(float(curve.mean[0]), color=look.colour, linestyle=look.dashes, linewidth=1.1)
            continue
        step = max(1, len(curve.mean) // MARKERS)
        axes.plot(
            curve.x,
            curve.mean,
            color=look.colour,
            linestyle=look.dashes,
            linewidth=1.4,
            marker=look.marker,
            markersize=4.5,
            markeredgecolor="white",
            markeredgewidth=0.5,
            markevery=(int(look.offset * step), step),
        )
        if curve.n > 1:
            low, high = curve.mean - curve.std, curve.mean + curve.std
            axes.fill_between(curve.x, low, high, color=look.colour, alpha=0.16, linewidth=0)
    axes.set_xlim(0, 1.02 * last)
    # The first rounds start near zero for every method: what is compared lies above.
    tail = [float(curve.mean[len(curve.mean) // 10 :].min()) for curve in panel.curves]
    axes.set_ylim(bottom=max(0.0, math.floor(min(tail) / 5 - 1) * 5))
    axes.set_xlabel(panel.axis.capitalize())
    axes.set_ylabel("Test accuracy (%)")


def _draw_boxes(axes: Axes, panel: BoxPanel) -> None:
    places = np.arange(len(panel.boxes))[::-1]
    if panel.mark is not None:
        axes.axvline(panel.mark, color="0.35", linestyle=(0, (4, 2)), linewidth=1.0, zorder=1)
        axes.annotate(
            panel.mark_label,
            (panel.mark, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, 2),
            textcoords="offset points",
            fontsize=7,
            color="0.35",
        )
    for place, box in zip(places, panel.boxes, strict=True):
        look = style.of(box.method)
        axes.boxplot(
            box.values,
            positions=[place],
            orientation="horizontal",
            widths=0.62,
            whis=(0, 100),
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": (*mpl.colors.to_rgb(look.colour), 0.22), "edgecolor": look.colour},
            medianprops={"color": "black", "linewidth": 1.6},
            whiskerprops={"color": look.colour},
            capprops={"color": look.colour},
            manage_ticks=False,
        )
        order = np.argsort(box.values, kind="stable")
        nudge = np.linspace(-0.18, 0.18, len(order)) if len(order) > 1 else np.zeros(1)
        axes.plot(
            box.values[order],
            place + nudge,
            linestyle="none",
            marker=look.marker,
            markersize=3.4,
            color=look.colour,
            markeredgecolor="white",
            markeredgewidth=0.3,
        )
    axes.set_yticks(places, [box.label for box in panel.boxes])
    axes.set_ylim(-0.6, len(panel.boxes) - 0.4)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("Test accuracy of a client (%)")


def _draw_ranks(axes: Axes, panel: RankPanel) -> None:
    # Numbers stand for the methods: the library keeps them in sets, whose order differs between
    # processes for text, and with it the bytes of the file.
    numbers = range(len(panel.methods))
    made = critical_difference_diagram(
        pd.Series(panel.ranks, numbers),
        pd.DataFrame(panel.p, numbers, numbers),
        ax=axes,
        label_fmt_left="{label}",
        label_fmt_right="{label}",
        label_props={"fontsize": 8},
        color_palette={number: style.of(panel.methods[number]).colour for number in numbers},
        crossbar_props={"color": "0.2"},
        elbow_props={"linewidth": 1.0},
        text_h_margin=0.1,
    )
    for text in made["labels"]:
        number = int(text.get_text())
        text.set_text(f"{panel.labels[number]} ({panel.ranks[number]:.2f})")
        text.set_color("black")
    # Above the axis' numbers: the library's own bar runs through them.
    best = float(panel.ranks.min())
    axes.plot([best, best + panel.difference], [1.6, 1.6], color="0.2", linewidth=2)
    axes.text(best + panel.difference / 2, 1.8, f"CD {panel.difference:.2f}", ha="center", fontsize=8)
    axes.spines["top"].set_visible(True)
    axes.grid(visible=False)


def _legend(figure: Figure) -> list[Line2D]:
    handles: dict[str, Line2D] = {}
    for panel in figure.panels:
        for curve in panel.curves if isinstance(panel, CurvePanel) else ():
            look = curve.drawn
            level = len(curve.mean) == 1
            handles.setdefault(
                curve.label,
                Line2D(
                    [],
                    [],
                    color=look.colour,
                    linestyle=look.dashes,
                    linewidth=1.1 if level else 1.4,
                    marker="" if level else look.marker,
                    markersize=4.5,
                    label=curve.label,
                ),
            )
    return list(handles.values())


def _inches(figure: Figure, across: int, down: int) -> tuple[float, float]:
    if isinstance(figure.panels[0], CurvePanel):
        return WIDTH * across + 1.5, HEIGHT * down
    if isinstance(figure.panels[0], RankPanel):
        return 1.6 * WIDTH, 1.2 + 0.22 * max(
            len(panel.p) for panel in figure.panels if isinstance(panel, RankPanel)
        )
    most = max(len(panel.boxes) for panel in figure.panels if isinstance(panel, BoxPanel))
    return (WIDTH + 0.8) * across, max(2.0, 0.9 + 0.3 * most) * down


def draw(figure: Figure) -> Canvas:
    """The figure, ready to be saved."""
    across = 1 if len(figure.panels) == 1 else 2
    down = math.ceil(len(figure.panels) / across)
    with mpl.rc_context(rc=style.RC):
        canvas = Canvas(figsize=_inches(figure, across, down), layout="constrained")
        grid = np.asarray(canvas.subplots(down, across, squeeze=False)).ravel()
        panels: tuple[CurvePanel | BoxPanel | RankPanel, ...] = figure.panels
        for axes, panel in zip(grid, panels, strict=False):
            if isinstance(panel, CurvePanel):
                axes.set_title(panel.title)
                _draw_curves(axes, panel)
            elif isinstance(panel, RankPanel):
                axes.set_title(panel.title)
                _draw_ranks(axes, panel)
            else:
                axes.set_title(panel.title, pad=14 if panel.mark is not None else None)
                _draw_boxes(axes, panel)
        for axes in grid[len(figure.panels) :]:
            axes.set_visible(False)
        handles = _legend(figure)
        if handles:
            canvas.legend(handles=handles, loc="outside right upper", frameon=False)
    return canvas


def save(figure: Figure, folder: Path) -> list[Path]:
    """Write ``NAME.pdf``, ``NAME.png`` and ``NAME.csv``; equal figures give equal bytes."""
    paths = [folder / f"{figure.name}.{kind}" for kind in ("pdf", "png", "csv")]
    with mpl.rc_context(rc=style.RC):
        canvas = draw(figure)
        canvas.savefig(paths[0], format="pdf", metadata={"CreationDate": None})
        canvas.savefig(paths[1], format="png", dpi=150, metadata={"Software": None})
    write_csv(paths[2], rows(figure))
    return paths


def write_csv(path: Path, lines: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> None:
    """Write lines as CSV with Unix line ends."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
