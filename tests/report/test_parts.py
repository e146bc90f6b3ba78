"""Who is first of a study, in a sentence."""

from types import SimpleNamespace
from typing import cast

import pandas as pd
import pytest
from toy_study import ToyStudy

from bench.report.parts import sentences
from bench.studies.ranking import Ranking

TITLES = ["FedSheafHN", "FED-PUB", "FedAvg", "Local", "FedPer", "Flow"]


def first_sentence(leaders: int, tested: bool = True) -> str:
    """The sentence on six methods over nine tasks of which the first so many are in group 1."""
    places = range(len(TITLES))
    table = pd.DataFrame(
        {
            "method": [title.lower() for title in TITLES],
            "title": TITLES,
            "rank": [1.5 + place for place in places],
            "low": [1.0 + place for place in places],
            "high": [2.25 + place for place in places],
            "group": pd.array([1 + (place >= leaders) if tested else pd.NA for place in places], "Int64"),
        }
    )
    ranking = SimpleNamespace(table=table, tasks=[None] * 9, baseline="local")
    (sentence,) = sentences(ToyStudy(), cast(Ranking, ranking), [])
    return sentence


@pytest.mark.parametrize(
    ("leaders", "named"),
    [
        (1, {"FedSheafHN"}),
        (2, {"FedSheafHN", "FED-PUB"}),
        (3, {"FedSheafHN", "FED-PUB", "FedAvg"}),
        (5, {"FedSheafHN", "Local"}),  # five are counted; the baseline is worth a word
    ],
)
def test_few_methods_that_are_first_together_are_named_and_more_are_counted(
    leaders: int, named: set[str]
) -> None:
    sentence = first_sentence(leaders)
    assert {title for title in TITLES if title in sentence} == named
    assert "1.0 to 2.2" in sentence  # the interval of the best
    assert "95\N{NO-BREAK SPACE}%" in sentence
    assert "6 methods over 9 federations" in sentence


def test_without_tests_nobody_is_said_to_be_apart_from_the_others() -> None:
    assert {title for title in TITLES if title in first_sentence(2, tested=False)} == {"FedSheafHN"}
