"""Names in what a study says of itself: those of things that there are not are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from toy_study import LINES, ToyStudy

from bench.errors import RequestError
from bench.grids.grid import ColumnMatch
from bench.studies.claims import Claim, Claims
from bench.studies.experiment import Comparison, Experiment, Line, Target
from bench.studies.study import STUDIES, Study, plans_of

Names = tuple[str, ...]


def toy(**attributes: Any) -> dict[str, type[Study]]:
    """The toy study with other attributes."""
    return {"other": type("Other", (ToyStudy,), {"name": "other", **attributes})}


def beside(target: Target) -> tuple[Experiment, ...]:
    """The toy study's tables, the first beside one more published table."""
    first, *others = ToyStudy.experiments
    return *others, replace(first, comparisons=(Comparison("Table 1", (Target("toy", "Table 1"), target)),))


def about(
    first: Names, second: Names, tables: Names, reduced: Names = (), text: str = ""
) -> tuple[Claims, ...]:
    return (Claims("few", "Few", (Claim(text, first, second, tables, reduced),)),)


def test_the_suites_own_studies_name_what_there_is() -> None:
    assert all(plans_of(STUDIES.all()).values())


SIDES = ("FedProx",), ("Local", "FedAvg")


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("control", "majoritty", "control or proposed method of study other: 'majoritty': did you mean"),
        ("proposed", "majoritty", "'majoritty': did you mean 'majority'?"),
        ("references", ("local", "majoritty"), "'majoritty': did you mean 'majority'?"),
        ("lines", (*LINES, Line("majoritty", "Majority")), "'lines' of study other"),
        ("lines", (*LINES, Line("constant", "Majority", reads="majoritty")), "'lines' of study other"),
        (
            "experiments",
            beside(Target("toy", "Table I")),
            "table of toy in experiment table1 of study other: 'Table I': did you",
        ),
        ("experiments", beside(Target("toyy", "Table 1")), "paper 'toyy': did you mean 'toy'"),
        (
            "claims",
            about(*SIDES, ("tabel1",), text="it wins"),
            "table in the claim 'it wins' of study other: 'tabel1': did",
        ),
        ("claims", about(*SIDES, ("table1",), ("tabel2",)), "'tabel2': did you mean 'table2'"),
        (
            "claims",
            about(("FedProxx",), ("Local",), ("table1",)),
            "line in the claim '' of study other: 'FedProxx'",
        ),
        ("claims", about(("FedProx",), ("Lokal",), ("table1",)), "'Lokal': did you mean 'Local'"),
        (
            "claims",
            about(("FedProxx [method.mu=0.1]",), (), ("table1",)),
            "'FedProxx': did you mean 'FedProx'",
        ),
    ],
)
def test_a_name_of_what_there_is_not_is_refused_with_the_nearest(place: str, value: Any, said: str) -> None:
    with pytest.raises(RequestError) as error:
        plans_of(toy(**{place: value}))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_study_may_propose_nothing_and_name_lines_that_a_main_table_finds() -> None:
    line = Line("tuned_on", "Local and on", reads="local")
    sides = ("FedBABU",), ("FedProx [method.mu=0.1]",)
    claim = Claim("", *sides, ("table1",), only=ColumnMatch(dataset="cora", clients=20))
    claims = (Claims("few", "Few", (claim,)),)
    assert plans_of(toy(proposed="", lines=(*LINES, line), references=("tuned_on",), claims=claims))
