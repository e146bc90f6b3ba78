"""One look for all figures: colours that colour-blind readers tell apart, and that differ in grey."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from bench.report.study import STUDIES

Dashes = Literal["-"] | tuple[float, tuple[float, ...]]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's palette without its yellow, which is too faint for lines on white."""

DASHES: tuple[Dashes, ...] = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")

RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.handlelength": 3.2,
    "pdf.fonttype": 42,
    "svg.hashsalt": "bench",
    "text.parse_math": False,  # names are text: a dollar sign in one is a dollar sign
}
"""Matplotlib settings; fonts are embedded as outlines that journals accept."""


@dataclass(frozen=True)
class Look:
    """How a method is drawn; ``offset`` staggers the markers of neighbouring curves."""

    colour: str
    dashes: Dashes
    marker: str
    offset: float


def nth(place: int) -> Look:
    """The look of a place in a list."""
    colours = len(COLOURS)
    return Look(
        COLOURS[place % colours],
        DASHES[place // colours % len(DASHES)],
        MARKERS[place % len(MARKERS)],
        place % 5 / 5,
    )


@cache
def orders() -> tuple[tuple[str, ...], ...]:
    """The studies' methods: the place of one in its study's list decides its look."""
    return tuple(study.looks for study in STUDIES.all().values())


def of(method: str) -> Look:
    """The look of a method: always the same for the same name, listed or not."""
    if method == "majority":
        return Look("0.45", DASHES[3], "d", 0.0)
    places = [order.index(method) for order in orders() if method in order]
    if places:
        place = places[0]
    else:
        digest = hashlib.blake2b(method.encode(), digest_size=4).digest()
        place = int.from_bytes(digest, "little") % (len(COLOURS) * len(DASHES) * len(MARKERS))
    return nth(place)
