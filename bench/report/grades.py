"""How a verdict looks: class in the style sheet, symbol, colour in a terminal; one table for everything."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class GradeLook:
    """``css`` is the class whose colours ``assets/site.css`` has, ``symbol`` stands beside the word, ``mark``
    is that in plain ASCII, ``terminal`` one of a terminal's own colours, legible on its own ground.
    """

    css: str
    symbol: str
    mark: str
    terminal: str = ""


GRADES = {
    "reproduced": GradeLook("grade-reproduced", "●", "=", "green"),
    "compatible": GradeLook("grade-compatible", "◐", "~", "blue"),
    "uninformative": GradeLook("grade-uninformative", "○", "o", "yellow"),
    "above": GradeLook("grade-above", "▲", "^", "magenta"),
    "below": GradeLook("grade-below", "▼", "v", "red"),
    "not comparable": GradeLook("grade-none", "≠", "x", "bright_black"),
}
"""The grades of a measured cell beside a published value, best first."""

MARKS = ", ".join(f"{look.mark} {name}" for name, look in GRADES.items())
"""What the marks mean."""

ANSWERS = {
    "holds": GRADES["reproduced"],
    "does not hold": replace(GRADES["below"], symbol="×"),
    "can't be told": GRADES["uninformative"],
}
"""The answers that runs give to a claim, in the looks of the grades that they are like."""

NO_GRADE = GradeLook("grade-none", "–", "-")
"""The look of a state, such as not run or failed, and of a cell without a published value."""


def grade_look(name: str) -> GradeLook:
    """The look of a verdict, or of the answer to a claim."""
    return {**GRADES, **ANSWERS}.get(name, NO_GRADE)
