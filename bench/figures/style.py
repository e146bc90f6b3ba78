"""One look for all figures: colours that colour-blind readers tell apart, and that differ in grey."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from matplotlib import colors

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


def assign(studies: Collection[type[Study]], other_methods: Iterable[str] = ()) -> dict[str, Look]:
    """A look for every method of some studies, and for ``other_methods`` that no study has; each has its own.

    Proposed methods, baselines and references have colours of their own. Another method has the hue that is
    rarest among those it is compared with in the studies' tables, of several such that of the fewest that it
    meets in experiments of no more lines than there are hues; who shares a hue in a study differs in dashes
    and marker.
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
                looks[name] = _rarest(looks.values(), looks.values(), (colour,))
    tables = [{line.method: line for line in study.lines} for study in studies]
    experiments = [
        {line.method: line for line in experiment.lines}
        for study in studies
        for experiment in study.experiments
        if len(experiment.lines) <= len(HUES)
    ]

    def looks_beside(method: str, documents: list[dict[str, Line]]) -> list[Look]:
        names = {name for methods in documents if method in methods for name in methods}
        return [looks[name] for name in names & looks.keys()]

    for method in dict.fromkeys([*(name for methods in tables for name in methods), *other_methods]):
        if method not in looks:
            rivals = looks_beside(method, tables) or looks.values()
            looks[method] = _rarest(looks.values(), rivals, HUES, looks_beside(method, experiments))
    return looks


def _rarest(
    taken: Iterable[Look], rivals: Collection[Look], hues: tuple[str, ...], neighbours: Iterable[Look] = ()
) -> Look:
    """A look that is not taken, as unlike those of the rivals as can be: by hue, then by that of neighbours,
    then by dashes, then by marker.
    """
    neighbour_count = Counter(look.colour for look in neighbours)
    colour_count = Counter(look.colour for look in rivals)
    line_count = Counter((look.colour, look.dashes) for look in rivals)
    point_count = Counter((look.colour, look.marker) for look in rivals)
    taken_looks = set(taken)
    return min(
        (look for look in _looks(hues) if look not in taken_looks),
        key=lambda look: (
            colour_count[look.colour],
            neighbour_count[look.colour],
            line_count[look.colour, look.dashes],
            point_count[look.colour, look.marker],
        ),
    )


def _known_looks() -> tuple[dict[str, Look], dict[str, Look]]:
    # Here and not above: who draws finished panels needs neither studies nor methods.
    from bench.engine.methods import METHODS
    from bench.studies.study import STUDIES

    return _looks_among(tuple(STUDIES.all().values()), tuple(sorted(METHODS.all())))


@cache
def _looks_among(
    studies: tuple[type[Study], ...], methods: tuple[str, ...]
) -> tuple[dict[str, Look], dict[str, Look]]:
    """The looks of all methods, and those of proposed ones in figures of studies that do not propose them."""
    looks = assign(studies, methods)
    all_looks, guest_looks = dict(looks), {}
    for method in [method for method, look in looks.items() if look.colour == PROPOSED]:
        all_looks[method] = guest_looks[method] = _rarest(all_looks.values(), all_looks.values(), HUES)
    return looks, guest_looks


def look_of(method: str, study: Study | None = None) -> Look:
    """The look of a method: always the same for the same name, also for one that no study or file has.

    In figures of a ``study`` a method that another one proposes has a second look; without a study every
    proposed method has the reserved colour.
    """
    looks, guest_looks = _known_looks()
    if study and method != study.proposed and method in guest_looks:
        return guest_looks[method]
    if method in looks:
        return looks[method]
    taken_looks = {*looks.values(), *guest_looks.values()}
    free_looks = [look for look in dict.fromkeys(_looks(HUES)) if look not in taken_looks]
    digest = hashlib.blake2b(method.encode(), digest_size=4).digest()
    return free_looks[int.from_bytes(digest, "little") % len(free_looks)]


def looks_of(study: Study, lines: Sequence[Line]) -> dict[Line, Look]:
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
