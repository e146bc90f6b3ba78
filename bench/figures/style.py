"""One look for all figures: colours that colour-blind readers tell apart, and fonts that have all signs."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from matplotlib.font_manager import findfont, fontManager, get_font

if TYPE_CHECKING:
    from bench.grids.grid import Line
    from bench.studies.study import Study

Dashes = Literal["-"] | tuple[float, tuple[float, ...]]

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
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "0.4",
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.92",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "lines.markeredgecolor": "white",
    "lines.markeredgewidth": 0.6,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # fonts are embedded as outlines that journals accept
    "text.parse_math": False,  # names are text: a dollar sign in one is a dollar sign
}


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    colour: str
    dashes: Dashes
    marker: str


def every_look(hues: tuple[str, ...]) -> Iterator[Look]:
    """Every look in these hues: all hues first, then again in other dashes and with other markers."""
    for turn, (place, hue) in product(range(len(DASHES) * len(MARKERS)), enumerate(hues)):
        yield Look(hue, DASHES[turn % len(DASHES)], MARKERS[(place + turn) % len(MARKERS)])


@cache
def _looks() -> dict[str, Look]:
    """The looks of all studies' methods: baselines and references have colours of their own, others the next
    look in the order of the studies' lines.
    """
    # Here and not above: processes that draw finished panels need no studies.
    from bench.studies.study import STUDIES

    studies = STUDIES.all().values()
    looks: dict[str, Look] = {}
    for hues, names in (
        ((BASELINE,), [study.baseline for study in studies]),
        ((REFERENCE,), [name for study in studies for name in study.references]),
        (HUES, [line.method for study in studies for line in study.lines]),
    ):
        new_names = [name for name in dict.fromkeys(names) if name and name not in looks]
        looks.update(zip(new_names, every_look(hues), strict=False))
    return looks


def look_of(method: str, study: Study) -> Look:
    """The look of a method, the same in all figures; one that no study has gets one by its name.

    In figures of the study that proposes a method, it has the reserved colour.
    """
    if method == study.proposed:
        return Look(PROPOSED, DASHES[0], MARKERS[0])
    free_looks = [look for look in every_look(HUES) if look not in _looks().values()]
    digest = hashlib.blake2b(method.encode(), digest_size=4).digest()
    return _looks().get(method) or free_looks[int.from_bytes(digest, "little") % len(free_looks)]


def looks_of(study: Study, lines: tuple[Line, ...]) -> dict[Line, Look]:
    """The looks of lines that are compared, no two alike.

    Of the lines of one method, that with the fewest settings of its own has the method's look. Every further
    one has a look in the colour that the fewest lines have.
    """
    of_methods = {line.method: look_of(line.method, study) for line in lines}
    free_looks = [look for look in every_look(HUES) if look not in of_methods.values()]
    looks: dict[Line, Look] = {}
    for line in sorted(lines, key=lambda line: (bool(line.setting), len(line.settings))):
        look = of_methods.pop(line.method, None)
        if look is None:
            counts = Counter(each.colour for each in looks.values())
            look = min(free_looks, key=lambda each: counts[each.colour])
            free_looks.remove(look)
        looks[line] = look
    return looks


@cache
def _signs(path: str) -> frozenset[str]:
    return frozenset(map(chr, get_font(path).get_charmap()))


def families(text: str) -> list[str]:
    """Fonts that together have all signs of a text: ``FONT``, then others that are installed."""
    return _families(frozenset(text) - _signs(findfont(FONT)) - {"\n"})


@cache
def _families(signs: frozenset[str]) -> list[str]:
    names, missing = [FONT], set(signs)
    for font in sorted(fontManager.ttflist, key=lambda font: ("Sans" not in font.name, font.name)):
        if font.name.startswith("Last Resort"):  # matplotlib's own, with a box for every sign
            continue
        if missing and (found := missing & _signs(font.fname)):
            names.append(font.name)
            missing -= found
    if missing:
        print(f"figures: no installed font has {' '.join(sorted(missing))}", file=sys.stderr)
    return names
