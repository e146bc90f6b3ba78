"""Names in what a study says of itself: those of things that there are not are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from toy_study import LINES, ToyStudy

from bench.errors import RequestError
from bench.grids.grid import ColumnMatch
from bench.studies.claims import Claim, Claims
from bench.studies.experiment import Comparison, Line, Target
from bench.studies.study import STUDIES, Study, plans_of


def toy(**attributes: Any) -> type[Study]:
    """The toy study with other attributes."""
    return type("Other", (ToyStudy,), {"name": "other", **attributes})


def refusal(study: type[Study]) -> str:
    """The line with which plans of a study are refused."""
    with pytest.raises(RequestError) as error:
        plans_of({study.name: study})
    assert "\n" not in str(error.value)
    return str(error.value)


def test_the_suites_own_studies_name_what_there_is() -> None:
    assert all(plans_of(STUDIES.all()).values())


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("control", "majoritty"),
        ("baseline", "majoritty"),
        ("proposed", "majoritty"),
        ("references", ("local", "majoritty")),
        ("lines", (*LINES, Line("majoritty", "Majority"))),
        ("lines", (*LINES, Line("constant", "Majority", reads="majoritty"))),
    ],
)
def test_what_is_no_method_is_refused_with_the_nearest(place: str, value: object) -> None:
    said = refusal(toy(**{place: value}))
    assert f"'{place}' of study other" in said
    assert "'majoritty': did you mean 'majority'?" in said


def test_a_study_may_propose_nothing_and_refer_to_a_line_that_shows_another_methods_runs() -> None:
    line = Line("tuned_on", "Local and on", reads="local")
    assert plans_of({"other": toy(proposed="", lines=(*LINES, line), references=("tuned_on",))})


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            Target("toy", "Table I"),
            "table of toy.csv in experiment table1 of study other: 'Table I': did you",
        ),
        (Target("toyy", "Table 1"), "paper 'toyy': did you mean 'toy'"),
    ],
)
def test_a_target_that_is_not_printed_is_refused_with_the_nearest(target: Target, said: str) -> None:
    first, *others = ToyStudy.experiments
    comparison = Comparison("Table 1", (Target("toy", "Table 1"), target))
    assert said in refusal(toy(experiments=(*others, replace(first, comparisons=(comparison,)))))


SIDES = ("FedProx",), ("Local", "FedAvg")


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (
            Claim("it wins", *SIDES, ("tabel1",)),
            "table in the claim 'it wins': 'tabel1': did you mean 'table1'",
        ),
        (Claim("", *SIDES, ("table1",), ("tabel2",)), "'tabel2': did you mean 'table2'"),
        (
            Claim("", ("FedProxx",), ("Local",), ("table1",)),
            "line of table1 in the claim '': 'FedProxx': did you",
        ),
        (Claim("", ("FedProx",), ("Lokal",), ("table1",)), "'Lokal': did you mean 'Local'"),
        (Claim("", ("FedProxx [method.mu=0.1]",), (), ("table1",)), "'FedProxx': did you mean 'FedProx'"),
    ],
)
def test_a_claim_about_what_there_is_not_is_refused_with_the_nearest(claim: Claim, said: str) -> None:
    assert said in refusal(toy(claims=(Claims("few", "Few", (claim,)),)))


def test_a_claim_may_be_about_other_lines_that_a_main_table_finds() -> None:
    sides = ("FedBABU",), ("FedProx [method.mu=0.1]",)
    claim = Claim("", *sides, ("table1",), only=ColumnMatch(dataset="cora", clients=20))
    assert plans_of({"other": toy(claims=(Claims("few", "Few", (claim,)),))})
