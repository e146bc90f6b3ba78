"""The charts of a board: clients, costs and curves of every method in its usual settings, as a script with
plain values, and the library that draws them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colors
from matplotlib.markers import MarkerStyle
from numpy.typing import NDArray

from bench.errors import RequestError
from bench.figures import style
from bench.figures.chart_lines import by_client, curves_by_round
from bench.leaderboard.boards import StudyBoards
from bench.metric_names import ACCURACY
from bench.statistics.summary import drawn_interval
from bench.studies import frame
from bench.studies.cells import Cell
from bench.studies.groups import Aggregate, Group

POINTS = 150
"""Points of a curve that a page draws; of a longer one every k-th and the last. The CSV has all."""

SYMBOLS = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "v": "triangle-down",
    "<": "triangle-left",
    ">": "triangle-right",
    "D": "diamond",
    "P": "cross",
}
"""Matplotlib's markers that Vega has, too; others are drawn as paths."""


PACKAGE = "vl-convert-python"

SHA256 = {"1.9.0.post1": "784d01be3224b8d91d5edd655a041019c90b956b8dd8fbda7f81c690f6fce416"}
"""Of the library's file, by version of ``PACKAGE``. Another version is added by hand, after a look at what it
brings: the site's pages run it.
"""

ESCAPES = tuple((sign, f"\\u{ord(sign):04x}") for sign in "<>&'")


@dataclass(frozen=True)
class Library:
    """A script: the name of its file, its text, its title, and the package and version that brought it."""

    file: str
    text: str
    title: str
    package: str
    version: str
    sha256: str


def library() -> Library:
    """Vega, Vega-Lite and Vega-Embed, which set ``window.vegaEmbed`` and no other global name.

    Raises:
        RequestError: it is not what ``SHA256`` says of the installed version.
    """
    import vl_convert

    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    text = f"(function () {{\n{bundle}\n}})();\n"
    package_version, digest = version(PACKAGE), hashlib.sha256(text.encode()).hexdigest()
    if digest != SHA256.get(package_version):
        raise RequestError(
            f"{PACKAGE} {package_version}: its JavaScript (SHA-256 {digest}) is not the one that is known: "
            f"install {PACKAGE} {' or '.join(SHA256)}"
        )
    release = vl_convert.get_vega_version()
    title = f"Vega {release} with Vega-Embed {vl_convert.get_vega_embed_version()}"
    return Library(f"vega-{release}-{digest[:12]}.js", text, title, PACKAGE, package_version, digest)


def script_json(value: Any) -> str:
    """Compact JSON in ASCII without a sign that means something to HTML: ``<`` is written ``\\u003c``.

    U+2028 and everything else beyond ASCII is escaped, too. Raises ``ValueError`` on NaN or infinity.
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign, escape in ESCAPES:  # several times faster than str.translate
        text = text.replace(sign, escape)
    return text


def symbol(marker: str) -> str:
    """A marker of Matplotlib as a symbol of Vega: a name, or an SVG path between -1 and 1."""
    if marker in SYMBOLS:
        return SYMBOLS[marker]
    shape = MarkerStyle(marker)
    corners = np.asarray(shape.get_path().transformed(shape.get_transform()).vertices, np.float64)
    corners = (corners[:-1] if (corners[0] == corners[-1]).all() else corners) / np.abs(corners).max()
    return "M" + "L".join(f"{x:.3f},{-y:.3f}" for x, y in corners.tolist()) + "Z"


def look(method: str) -> dict[str, Any]:
    """Colour, dashes and symbol of a method, the same as in every figure of a report."""
    look = style.look_of(method)
    dashes = [1, 0] if look.dashes == "-" else [2 * length for length in look.dashes[1]]
    return {"colour": colors.to_hex(look.colour), "dashes": dashes, "symbol": symbol(look.marker)}


def write(boards: StudyBoards, dataset: str, folder: Path, name: str) -> bool:
    """Write ``NAME.js`` with what the board draws, ``NAME-clients.csv`` and ``NAME-curves.csv``; nothing, and
    False, where nothing was run.
    """
    tasks: dict[str, list[dict[str, Any]]] = {}
    tables: dict[str, list[pd.DataFrame]] = {"clients": [], "curves": []}
    for cell, measured, group in _drawn_cells(boards, dataset):
        column = cell.column
        accuracies = 100.0 * by_client(cell.reading.rows, group)
        x, curves = np.zeros(0), np.zeros((0, 0))
        if boards.results.metric == ACCURACY:  # stored curves are accuracies
            x, curves = curves_by_round(cell.reading)
        low, high = drawn_interval(measured.values) or (None, None)
        method = {
            "label": cell.line.title or cell.title,
            **look(cell.method),
            "reference": cell.method in boards.study.references,
            "clients": [[client, round(value, 2)] for client, value in accuracies.items()],
            "mean": round(measured.mean, 2),
            "low": None if low is None else round(low, 2),
            "high": None if high is None else round(high, 2),
            "n": measured.n,
            "seconds": round(group.seconds, 3),
            "megabytes": round(group.megabytes, 3),
            "x": _thin(x),
            "curve": _thin(curves.mean(axis=0)) if curves.size else [],
        }
        tasks.setdefault(f"{column.scenario}, {column.clients} clients", []).append(method)
        task = {"scenario": column.scenario, "clients": column.clients, "method": cell.method}
        values = {"client": accuracies.index, boards.results.metric: accuracies.to_numpy()}
        tables["clients"].append(pd.DataFrame({**task, **values}))
        if curves.size:
            spread = curves.std(axis=0, ddof=1) if len(curves) > 1 else np.nan
            means = {"round": x, "accuracy": curves.mean(axis=0), "std": spread, "n": len(curves)}
            tables["curves"].append(pd.DataFrame({**task, **means}))
    if not tasks:
        return False
    script = f"benchCharts({script_json(tasks)});\n"  # a function of assets/board.js
    (folder / f"{name}.js").write_text(script, encoding="ascii", newline="\n")
    for kind, parts in tables.items():
        frame.write(
            folder / f"{name}-{kind}.csv", pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        )
    return True


def _drawn_cells(boards: StudyBoards, dataset: str) -> Iterator[tuple[Cell, Aggregate, Group]]:
    """The cells of main tables with numbers in usual settings, each method once a task."""
    keys = set()
    for row in boards.boards[dataset]:
        cell = row["cell"]
        is_new = (cell.column, cell.method) not in keys
        if is_new and row["usual"] and cell.measured and cell.group and not cell.line.reads:
            keys.add((cell.column, cell.method))
            yield cell, cell.measured, cell.group


def _thin(values: NDArray[Any]) -> list[float]:
    """At most about ``POINTS`` of the values, the last among them."""
    step = -(-len(values) // POINTS) or 1
    points = [*values[: max(len(values) - 1, 0) : step], *values[-1:]]
    return [round(float(value), 2) for value in points]
