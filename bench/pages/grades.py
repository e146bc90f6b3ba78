"""How a verdict looks: its colour, its symbol and its class in the style sheet, one table for everything."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class GradeLook:
    """``colour`` on white (hex), ``fill`` behind it, ``symbol`` beside the word, ``mark`` in plain ASCII."""

    css: str
    colour: str
    fill: str
    symbol: str
    mark: str


GRADES = {
    "reproduced": GradeLook("grade-reproduced", "#00694f", "#dcf1e8", "●", "="),
    "compatible": GradeLook("grade-compatible", "#225f9c", "#e0ecf8", "◐", "~"),
    "uninformative": GradeLook("grade-uninformative", "#735700", "#f8eecd", "○", "o"),
    "above": GradeLook("grade-above", "#74409a", "#f0e5f8", "▲", "^"),
    "below": GradeLook("grade-below", "#a33a0c", "#fbe5da", "▼", "v"),
    "not comparable": GradeLook("grade-none", "#55606c", "#eceae5", "≠", "x"),
}
"""The grades of a measured cell beside a published value, best first; colours as in ``assets/site.css``."""

ANSWERS = {
    "holds": GRADES["reproduced"],
    "does not hold": replace(GRADES["below"], symbol="×"),
    "can't be told": GRADES["uninformative"],
}
"""The answers that runs give to a claim, in the looks of the grades that they are like."""

NO_GRADE = GradeLook("grade-none", "#55606c", "#eceae5", "–", "-")
"""The look of a state, such as not run or failed, and of a cell without a published value."""


def grade_look(name: str) -> GradeLook:
    """The look of a verdict, or of the answer to a claim."""
    return {**GRADES, **ANSWERS}.get(name, NO_GRADE)
