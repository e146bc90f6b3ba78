"""The font of figures: DejaVu Sans without what only typesetting needs.

Every PDF embeds the letters it uses. Taking them out of the whole font takes as long as drawing a small
figure, most of it for tables of ligatures, scripts and formulas that no figure needs.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from fontTools import subset  # type: ignore[import-untyped]
from matplotlib.font_manager import findfont, fontManager

ORIGIN = "DejaVu Sans"

NAME = "Bench Sans"

LETTERS = ((0x20, 0x24F), (0x370, 0x3FF), (0x2000, 0x206F), (0x2100, 0x22FF), (0x2500, 0x27BF))
"""Latin, Greek, punctuation, arrows, operators and symbols; others are taken from the whole font."""

UNUSED = ("GSUB", "GPOS", "GDEF", "MATH", "kern", "FFTM")

_folder = TemporaryDirectory(prefix="bench-font-")


@cache
def families() -> list[str]:
    """The fonts in which figures are drawn, in their order; the first is made once a process."""
    options = subset.Options(glyph_names=True, layout_features=[])
    options.drop_tables += list(UNUSED)
    font = subset.load_font(findfont(ORIGIN), options)
    font.recalcTimestamp = False  # equal figures give equal bytes
    letters = subset.Subsetter(options)
    letters.populate(unicodes=[code for first, last in LETTERS for code in range(first, last + 1)])
    letters.subset(font)
    for record in font["name"].names:
        if record.nameID in (1, 4, 6, 16):
            record.string = NAME.replace(" ", "") if record.nameID == 6 else NAME
    path = Path(_folder.name) / "sans.ttf"
    font.save(path)
    fontManager.addfont(path)
    return [NAME, ORIGIN]
