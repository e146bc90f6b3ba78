"""A study's finding in the sentences of its report, and the constants that the explanations name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bench.leaderboard.boards import StudyBoards
from bench.pages.grades import GRADES
from bench.report.captions import LEGEND
from bench.report.parts import scores, sentences
from bench.report.wording import AVERAGES, RULES, STAGES
from bench.statistics.paired import ALPHA, REGION
from bench.statistics.ranks import DRAWS, LEAST
from bench.statistics.summary import LEVEL


def headline(boards: StudyBoards) -> tuple[str, ...]:
    """Who is first, or that nobody can be told apart; and what came of the published values."""
    return sentences(boards.study, boards.ranking, scores(boards.grades))


def verdicts(counts: Iterable[Mapping[str, int]]) -> list[str]:
    """All verdicts that are counted: grades first, best first, then states by name."""
    names = {name for count in counts for name in count}
    return [*filter(names.__contains__, GRADES), *sorted(names.difference(GRADES))]


def definitions() -> Mapping[str, Any]:
    """The constants that the numbers of the site are computed with, by name."""
    return {
        "level": f"{100 * LEVEL:g} %",
        "stages": STAGES,
        "rules": RULES,
        "averages": AVERAGES,
        "alpha": ALPHA,
        "region": REGION,
        "least": LEAST,
        "draws": DRAWS,
        "legend": LEGEND,
    }
