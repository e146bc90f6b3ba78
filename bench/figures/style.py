"""One look for all figures: colours that colour-blind readers tell apart, and that differ in grey."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from matplotlib import colors

if TYPE_CHECKING:
    from bench.studies.study import Study

Dashes = Literal["-"] | tuple[float, tuple[float, ...]]

PROPOSED = "#D55E00"
"""Colour of the methods that studies propose, and of no other."""

BASELINE = "#1A1A1A"
REFERENCE = "#7A7A7A"
OTHERS = "#D0D0D0"
"""Colour of the lines before which another one is shown."""

HUES = ("#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#332288", "#882255", "#999933")
"""The other methods' colours: Okabe and Ito's without yellow, which is too faint for lines, then Tol's."""

DASHES: tuple[Dashes, ...] = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")

RC: Any = {
    "font.family": "DejaVu Sans",
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


def nth(place: int) -> Look:
    """The look of a place in a list: no two of the first 32 have hue and dashes in common."""
    turn, hue = divmod(place, len(HUES))
    return Look(HUES[hue], DASHES[turn % len(DASHES)], MARKERS[(place + turn) % len(MARKERS)])


def assign(studies: Collection[type[Study]], other_methods: Iterable[str] = ()) -> dict[str, Look]:
    """A look for every method of some studies, and for ``other_methods`` that no study has; each has its own.

    Proposed methods, baselines and references have colours of their own. Another method has the hue that is
    rarest among those it is compared with; who shares a hue in a study differs in dashes and marker.
    """
    looks: dict[str, Look] = {}
    named_looks = (
        (PROPOSED, [study.proposed for study in studies]),
        (BASELINE, [study.baseline for study in studies]),
        (REFERENCE, [name for study in studies for name in study.references]),
    )
    for colour, names in named_looks:
        for name in dict.fromkeys(names):
            if name and name not in looks:
                looks[name] = _rarest(looks, looks, (colour,))
    lines = [[line.method for line in study.lines] for study in studies]
    for method in dict.fromkeys(name for methods in lines for name in methods):
        if method not in looks:
            rivals = {name for methods in lines if method in methods for name in methods}
            looks[method] = _rarest(looks, rivals & looks.keys(), HUES)
    for method in other_methods:
        if method not in looks:
            looks[method] = _rarest(looks, looks, HUES)
    return looks


def _rarest(looks: Mapping[str, Look], rivals: Iterable[str], hues: tuple[str, ...]) -> Look:
    """A look that no method has, as unlike those of the rivals as can be: by hue, then by dashes."""
    rival_looks = [looks[name] for name in rivals]
    colour_count = Counter(look.colour for look in rival_looks)
    line_count = Counter((look.colour, look.dashes) for look in rival_looks)
    taken_looks = set(looks.values())
    return min(
        (look for look in _looks(hues) if look not in taken_looks),
        key=lambda look: (colour_count[look.colour], line_count[look.colour, look.dashes]),
    )


@cache
def _known_looks() -> dict[str, Look]:
    # Here and not above: who draws finished panels needs neither studies nor methods.
    from bench.engine.methods import METHODS
    from bench.studies.study import STUDIES

    return assign(STUDIES.all().values(), sorted(METHODS.all()))


def look_of(method: str) -> Look:
    """The look of a method: always the same for the same name, also for one that no study or file has."""
    looks = _known_looks()
    if method in looks:
        return looks[method]
    taken_looks = set(looks.values())
    free_looks = [look for look in dict.fromkeys(_looks(HUES)) if look not in taken_looks]
    digest = hashlib.blake2b(method.encode(), digest_size=4).digest()
    return free_looks[int.from_bytes(digest, "little") % len(free_looks)]
