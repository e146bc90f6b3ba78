"""The style of all figures: colours that colour-blind readers can tell apart, and fonts for all signs."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from matplotlib.font_manager import findfont, fontManager, get_font

if TYPE_CHECKING:
    from bench.grids.grid import Line
    from bench.studies.study import Study

RC = Path(__file__).parent / "bench.mplstyle"
"""The style file: sizes, lines and colours of axes."""

Dashes = Literal["-"] | tuple[float, tuple[float, ...]]

PROPOSED = "#D55E00"
"""Colour of the method that a study proposes. In the study's figures no other method has it."""

BASELINE = "#1A1A1A"
REFERENCE = "#7A7A7A"
OTHERS = "#D0D0D0"
"""Colour of the other curves behind a small drawing's own curve."""

HUES = ("#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#332288", "#882255", "#999933")
"""Colours of other methods: Okabe and Ito's without yellow (too faint for lines), then Tol's."""

DASHES: tuple[Dashes, ...] = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")

FONT = "DejaVu Sans"


@dataclass(frozen=True)
class Look:
    """The drawing style of a method and its label in a legend. Labels are ignored in comparisons."""

    colour: str
    dashes: Dashes
    marker: str
    label: str = field(default="", compare=False)


def every_look(hues: tuple[str, ...]) -> list[Look]:
    """Every look in these hues. All hues come first, then again with other dashes and markers."""
    return [
        Look(hue, DASHES[turn % len(DASHES)], MARKERS[(place + turn) % len(MARKERS)])
        for turn, (place, hue) in product(range(len(DASHES) * len(MARKERS)), enumerate(hues))
    ]


@cache
def _looks() -> tuple[dict[str, Look], list[Look]]:
    """The look of each method in a study, and the looks left over. Baselines and references have reserved
    colours. Other methods get the next look, in the order of the studies' lines.
    """
    # Imported here because processes that only draw do not need the studies.
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
    return looks, [look for look in every_look(HUES) if look not in looks.values()]


def look_of(method: str, study: Study) -> Look:
    """The look of a method. It is the same in all figures, except that a method has the colour ``PROPOSED``
    in figures of the study that proposes it. A method of no study gets a free look by a hash of its name.
    """
    if method == study.proposed:
        return Look(PROPOSED, DASHES[0], MARKERS[0])
    looks, free_looks = _looks()
    digest = hashlib.blake2b(method.encode(), digest_size=4).digest()
    return looks.get(method) or free_looks[int.from_bytes(digest, "little") % len(free_looks)]


def looks_of(study: Study, lines: tuple[Line, ...]) -> dict[Line, Look]:
    """The looks of compared lines, labelled with their titles. No two are alike.

    Among lines of the same method, the one with the fewest settings gets the method's look. Each further line
    gets the next look that no method here has.
    """
    of_methods = {line.method: look_of(line.method, study) for line in lines}
    free_looks = iter([look for look in every_look(HUES) if look not in of_methods.values()])
    plainest_first = sorted(lines, key=lambda line: (bool(line.setting), len(line.settings)))
    looks = {}
    for line in plainest_first:
        look = of_methods.pop(line.method) if line.method in of_methods else next(free_looks)
        looks[line] = replace(look, label=study.line_title(line))
    return looks


@cache
def _signs(path: str) -> frozenset[str]:
    return frozenset(map(chr, get_font(path).get_charmap()))


def families(text: str) -> list[str]:
    """Fonts for all signs of a text: ``FONT``, then the installed fonts that have the other signs."""
    return _families(frozenset(text) - _signs(findfont(FONT)) - {"\n"})


@cache
def _families(signs: frozenset[str]) -> list[str]:
    names, missing = [FONT], set(signs)
    for font in sorted(fontManager.ttflist, key=lambda font: ("Sans" not in font.name, font.name)):
        if font.name.startswith("Last Resort"):  # it shows every sign as a box
            continue
        if missing and (found := missing & _signs(font.fname)):
            names.append(font.name)
            missing -= found
    if missing:
        print(f"figures: no installed font has {' '.join(sorted(missing))}", file=sys.stderr)
    return names
