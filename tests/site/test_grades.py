"""The look of verdicts: legible, and told apart."""

import re

from bench.report.grades import GRADES, NO_GRADE
from bench.site.templating import ASSETS, environment


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.1 of ``#rrggbb``."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Contrast ratio by WCAG 2.1."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def schemes() -> list[dict[str, str]]:
    """The colours of the light and of the dark scheme by name."""
    css = (ASSETS / "site.css").read_text(encoding="utf-8")
    colours = re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", css)
    return [{name: pair[place] for name, *pair in colours} for place in (0, 1)]


def test_grades_differ_without_colour():
    looks = [*GRADES.values(), NO_GRADE]
    assert len({look.symbol for look in looks}) == len(looks)
    assert len({look.mark for look in looks}) == len(looks)
    assert all(look.mark.isascii() for look in looks)


def test_text_and_grades_are_legible_in_both_schemes():
    grades = {look.css.removeprefix("grade-") for look in (*GRADES.values(), NO_GRADE)}
    for colours in schemes():
        for text in ("ink", "soft", "link"):
            for ground in ("ground", "card", "shade"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        for grade in grades:
            for ground in (f"{grade}-ground", "ground", "card"):
                assert contrast(colours[grade], colours[ground]) >= 4.5, (grade, ground)


def test_a_grade_is_said_in_words_and_text_is_escaped():
    template = environment().from_string(
        '{% import "elements.html.j2" as elements %}{{ elements.grade(name, text) }}'
    )
    html = template.render(name="below", text="<b> below")
    assert "&lt;b&gt; below" in html
    assert GRADES["below"].css in html
