"""Scenarios by name. A number at the end of a Dirichlet scenario's name is its concentration."""

from __future__ import annotations

import re
from typing import Any

from bench.data import Family
from bench.errors import RequestError, unknown
from bench.federation.hypergraph import LabelDirichlet
from bench.federation.images import Dirichlet
from bench.federation.scenario import SCENARIOS, Scenario

WITH_NUMBER: dict[str, type[LabelDirichlet] | type[Dirichlet]] = {
    "label-dirichlet": LabelDirichlet,
    "dirichlet": Dirichlet,
}
"""Scenarios whose name goes on with a concentration such as 0.1."""

NUMBER = "0.1 stands for any positive number"


def forms(family: Family | None = None) -> list[str]:
    """The names of a family's scenarios, with 0.1 for a number; of all families where none is named."""
    with_number = {f"{start}0.1": kind for start, kind in WITH_NUMBER.items()}
    every: dict[str, type[Scenario[Any]]] = {**SCENARIOS.all(), **with_number}
    return [name for name, kind in every.items() if family is None or family in kind.families]


def _concentration(name: str, text: str) -> float:
    value = float(text)
    plain = f"{value:.15g}"
    if value <= 0 or text != plain:
        raise RequestError(f"scenario '{name}': expected a positive number without padding, such as 0.1")
    return value


def parse(name: str) -> Scenario[Any]:
    """The scenario of that name; raises ``RequestError`` with the nearest name."""
    if name in SCENARIOS.all():
        return SCENARIOS.all()[name]()
    match = re.fullmatch(r"(.*?)([0-9]+(?:\.[0-9]+)?)", name, re.ASCII)
    if match is None or match[1] not in WITH_NUMBER:
        raise RequestError(f"{unknown('scenario', name, forms())}; {NUMBER}")
    return WITH_NUMBER[match[1]](_concentration(name, match[2]))


def find(name: str, dataset: str, family: Family) -> Scenario[Any]:
    """The scenario of that name for a data set of that family.

    Raises:
        RequestError: no such scenario, or it is for another family.
    """
    scenario = parse(name)
    if family not in scenario.families:
        raise RequestError(
            f"scenario '{name}' is for {' or '.join(scenario.families)} data, but {dataset} is {family} "
            f"data: use {' or '.join(forms(family))}; {NUMBER}"
        )
    return scenario
