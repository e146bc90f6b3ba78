"""Scenarios by name. A number at the end of a Dirichlet scenario's name is its concentration."""

from __future__ import annotations

import re
from typing import Any

from bench.data import Family
from bench.errors import RequestError, unknown
from bench.federation.graph import NonOverlapping, Overlapping
from bench.federation.hypergraph import LabelDirichlet
from bench.federation.images import Dirichlet
from bench.federation.scenario import Scenario

FORMS: dict[Family, tuple[str, ...]] = {
    "graph": ("non-overlapping", "overlapping", "label-dirichlet", "label-dirichletB"),
    "hypergraph": ("label-dirichlet", "label-dirichletB"),
    "images": ("dirichletB",),
}
"""How a scenario of each family is written; B is a concentration such as 0.1."""


def _concentration(name: str, text: str) -> float:
    value = float(text)
    plain = f"{value:.15g}"
    if value <= 0 or text != plain:
        raise RequestError(f"scenario '{name}': expected a positive number without padding, such as 0.1")
    return value


def parse(name: str) -> Scenario[Any]:
    """The scenario of that name; raises ``RequestError`` with the nearest name."""
    if name == "non-overlapping":
        return NonOverlapping()
    if name == "overlapping":
        return Overlapping()
    if name == "label-dirichlet":
        return LabelDirichlet()
    match = re.fullmatch(r"(label-)?dirichlet([0-9]+(?:\.[0-9]+)?)", name, re.ASCII)
    if match is None:
        raise unknown("scenario", name, dict.fromkeys(form for forms in FORMS.values() for form in forms))
    concentration = _concentration(name, match[2])
    return LabelDirichlet(concentration) if match[1] else Dirichlet(concentration)


def find(name: str, dataset: str, family: Family) -> Scenario[Any]:
    """The scenario of that name for a data set of that family.

    Raises:
        RequestError: no such scenario, or it is for another family.
    """
    scenario = parse(name)
    if family not in scenario.families:
        raise RequestError(
            f"scenario '{name}' is for {' or '.join(scenario.families)} data, but {dataset} is {family} "
            f"data: use {' or '.join(FORMS[family])}"
        )
    return scenario
