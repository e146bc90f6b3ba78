"""How a verdict looks on pages, in a terminal and in plain text."""

from __future__ import annotations

MARKS = {
    "reproduced": "=",
    "compatible": "~",
    "uninformative": "o",
    "above": "^",
    "below": "v",
    "not comparable": "x",
}
"""The grades of a measured cell beside a published value, best first, and their marks in plain text."""

SYMBOLS = {
    "reproduced": "●",
    "compatible": "◐",
    "uninformative": "○",
    "above": "▲",
    "below": "▼",
    "not comparable": "≠",
    "holds": "●",
    "does not hold": "×",
    "can't be told": "○",
}
"""What stands beside the word of a grade, or of the answer that runs give to a claim."""

COLOURS = {
    "reproduced": "green",
    "compatible": "blue",
    "uninformative": "yellow",
    "above": "magenta",
    "below": "red",
    "not comparable": "bright_black",
}
"""A terminal's own colours, each legible on its own ground."""

LIKE = {"holds": "reproduced", "does not hold": "below", "can't be told": "uninformative"}
"""Answer to a claim -> the grade whose colour it has."""


def symbol(name: str) -> str:
    """That of a grade or an answer; a dash for a state, such as not run or failed."""
    return SYMBOLS.get(name, "–")


def colour(name: str) -> str:
    """The colour of a grade or an answer in a terminal; "" of others."""
    return COLOURS.get(LIKE.get(name, name), "")


def css_class(name: str) -> str:
    """The class of a grade or an answer, whose colours ``assets/site.css`` has."""
    name = LIKE.get(name, name)
    return f"grade-{name}" if name in COLOURS and name != "not comparable" else "grade-none"
