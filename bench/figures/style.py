"""One look for all figures: colours that colour-blind readers tell apart, and that differ in grey; and texts:
their font, how wide they are, and how they are made to fit.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib import colors
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

if TYPE_CHECKING:
    from bench.grids.experiment import Line
    from bench.studies.study import Study

Dashes = Literal["-", "none"] | tuple[float, tuple[float, ...]]

PROPOSED = "#D55E00"
"""Colour of the method that a study proposes, in its figures of that method alone."""

BASELINE = "#1A1A1A"
REFERENCE = "#7A7A7A"
OTHERS = "#D0D0D0"
"""Colour of the lines before which another one is shown."""

HUES = ("#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#332288", "#882255", "#999933")
"""The other methods' colours: Okabe and Ito's without yellow, which is too faint for lines, then Tol's."""

DASHES: tuple[Dashes, ...] = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")

FONT = "DejaVu Sans"

RC: Any = {
    "font.family": FONT,
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # where it would be: looking for ticks above that it may not cover takes long
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "0.4",
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.92",
    "grid.linewidth": 0.6,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.color": "0.25",
    "ytick.color": "0.25",
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": 7.5,
    "errorbar.capsize": 1.8,
    "pdf.fonttype": 42,
    "svg.hashsalt": "bench",
    "text.parse_math": False,  # names are text: a dollar sign in one is a dollar sign
}
"""Matplotlib settings; fonts are embedded as outlines that journals accept."""


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    colour: str
    dashes: Dashes
    marker: str


def luminance(colour: str) -> float:
    """Relative luminance of a colour, 0 (black) to 1 (white)."""
    intensities = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colors.to_rgb(colour)
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), intensities, strict=True))


def ink(colour: str) -> str:
    """A colour as text on white has it: darker where it would be too faint."""
    while luminance(colour) > 0.2:
        red, green, blue = colors.to_rgb(colour)
        colour = colors.to_hex((0.92 * red, 0.92 * green, 0.92 * blue))
    return colour


def _looks(hues: tuple[str, ...]) -> Iterator[Look]:
    """Every look in these hues: first all hues and markers in solid lines, then in other dashes."""
    for dashes, turn, (place, hue) in product(DASHES, range(len(MARKERS)), enumerate(hues)):
        yield Look(hue, dashes, MARKERS[(place + turn) % len(MARKERS)])


@cache
def assign(studies: tuple[type[Study], ...], other_methods: tuple[str, ...] = ()) -> dict[str, Look]:
    """A look for every method of some studies and for ``other_methods``, each has its own. Baselines and
    references have colours of their own; another method is as unlike those of its studies as can be.
    """
    looks: dict[str, Look] = {}
    tables = [dict.fromkeys(line.method for line in study.lines) for study in studies]
    baselines = [study.baseline for study in studies]
    references = [name for study in studies for name in study.references]
    others = [*(name for methods in tables for name in methods), *other_methods]
    for hues, names in (((BASELINE,), baselines), ((REFERENCE,), references), (HUES, others)):
        for name in names:
            if name and name not in looks:
                rivals = {rival for methods in tables if name in methods for rival in methods} & looks.keys()
                looks[name] = _rarest(looks.values(), [looks[rival] for rival in rivals], hues)
    return looks


def _rarest(taken: Collection[Look], rivals: Collection[Look], hues: tuple[str, ...]) -> Look:
    """A look that is not taken, as unlike those of the rivals as can be: by hue, then dashes, then marker."""
    colours = Counter(look.colour for look in rivals)
    lines = Counter((look.colour, look.dashes) for look in rivals)
    points = Counter((look.colour, look.marker) for look in rivals)
    return min(
        (look for look in _looks(hues) if look not in taken),
        key=lambda look: (
            colours[look.colour],
            lines[look.colour, look.dashes],
            points[look.colour, look.marker],
        ),
    )


def look_of(method: str, study: Study) -> Look:
    """The look of a method: always the same for the same name, also for one that no study or file has. In
    figures of the study that proposes a method it has the reserved colour.
    """
    # Here and not above: who draws finished panels needs neither studies nor methods.
    from bench.engine.methods import METHODS
    from bench.studies.study import STUDIES

    if method == study.proposed:
        return Look(PROPOSED, DASHES[0], MARKERS[0])
    looks = assign(tuple(STUDIES.all().values()), tuple(sorted(METHODS.all())))
    if method in looks:
        return looks[method]
    free_looks = [look for look in _looks(HUES) if look not in looks.values()]
    digest = hashlib.blake2b(method.encode(), digest_size=4).digest()
    return free_looks[int.from_bytes(digest, "little") % len(free_looks)]


@lru_cache(maxsize=64)  # every figure of an experiment asks for those of the same lines
def looks_of(study: Study, lines: tuple[Line, ...]) -> Mapping[Line, Look]:
    """The looks of lines that are compared, no two alike. Of the lines of one method that with the fewest
    settings of its own has the method's look; every further one has another colour, in a look of its own.
    """
    plainest: dict[str, Line] = {}
    for line in sorted(lines, key=lambda line: (bool(line.setting), len(line.settings))):
        plainest.setdefault(line.method, line)
    looks = {line: look_of(method, study) for method, line in plainest.items()}
    for line in lines:
        if line not in looks:
            hues = tuple(hue for hue in HUES if hue != looks[plainest[line.method]].colour)
            looks[line] = _rarest(looks.values(), looks.values(), hues)
    return looks


WORD = re.compile(r"(?:\d+(?:[.,]\d+)*\s+)*\S+")
"""A word, with the numbers before it."""

NUMBER = re.compile(r"\n\d")

POINT = 1 / 72
"""Inches of a point, the unit of font sizes."""

LABEL = 7.0
"""Points of the names of curves and rows."""

NAME_ROOM = 1.6
"""Inches that a name beside the axes may take."""


HINTED = 1.02
"""Letters that are put on whole pixels take so much more room than their outlines, at the most."""


@cache
def text_width(text: str, size: float) -> float:
    """Inches that the widest line of a text takes at a font size in points."""
    font = FontProperties(family=FONT, size=size)
    lines = text.splitlines() or [""]
    return max(text_to_path.get_text_width_height_descent(line, font, False)[0] for line in lines) * POINT


def wrapped_lines(text: str, width: float, size: float) -> list[str]:
    """A text in lines of at most so many inches; a number stays with the word after it, its unit."""
    lines: list[str] = []
    for word in WORD.findall(text):
        candidate = f"{lines[-1]} {word}" if lines else word
        if lines and HINTED * text_width(candidate, size) <= width:
            lines[-1] = candidate
        else:
            lines.append(word)
    return lines


def fitted_text(text: str, width: float, size: float, min_size: float = 5.5) -> tuple[str, float]:
    """A text and a font size at which it takes at most ``width`` inches: smaller first, then cut short."""
    while size > min_size and text_width(text, size) > width:
        size -= 0.25
    while len(text) > 1 and text_width(text, size) > width:
        text = f"{text[:-2].rstrip()}…"
    return text, size


def in_two_lines(text: str, width: float, size: float) -> tuple[str, float]:
    """A text in one line or, where that takes more than ``width`` inches, in two of smaller print."""
    if text_width(text, size - 1) <= width:
        return fitted_text(text, width, size)
    lines = [fitted_text(line, width, size - 1.5)[0] for line in _halves(text, size).splitlines()]
    return "\n".join(lines), size - 1.5


def _halves(text: str, size: float) -> str:
    """A text in the two lines that take the least room beside each other, the second of which begins with no
    number if that can be; a single word in one.
    """
    words = text.split()
    pairs = [f"{' '.join(words[:count])}\n{' '.join(words[count:])}" for count in range(1, len(words))]
    return min(pairs, key=lambda pair: (bool(NUMBER.search(pair)), text_width(pair, size)), default=text)


def names_in(texts: Sequence[str], width: float, size: float) -> tuple[list[str], float]:
    """Texts below each other, all in one size: in a line each, where that takes much smaller print in two,
    and cut short where they fit in neither.
    """
    trials = [(1, size - less) for less in (0.0, 0.25, 0.5, 0.75, 1.0)]
    trials += [(2, step) for step in np.arange(size, 5.4, -0.25).tolist()]
    for lines, step in trials:
        names = [
            text if lines == 1 or text_width(text, step) <= width else _halves(text, step) for text in texts
        ]
        if all(text_width(name, step) <= width for name in names):
            return names, step
    cut = [[fitted_text(line, width, step, step)[0] for line in name.splitlines()] for name in names]
    return ["\n".join(lines) for lines in cut], step


def spread(places: ArrayLike, heights: ArrayLike) -> NDArray[np.float64]:
    """The centres of things of some heights, one or one each, moved as little as it takes for them to lie
    beside each other, in the same order.
    """
    wanted_places = np.asarray(places, np.float64)
    order = np.argsort(wanted_places, kind="stable")
    ordered = np.broadcast_to(np.asarray(heights, np.float64), wanted_places.shape)[order]
    steps = np.cumsum(ordered) - ordered / 2
    spread_places = np.empty(len(wanted_places))
    spread_places[order] = isotonic_regression(wanted_places[order] - steps).x + steps
    return spread_places
