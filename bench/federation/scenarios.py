"""Finds scenarios by name. The end of a name may be a parameter that the scenario reads itself."""

from __future__ import annotations

from typing import Any

from bench.data import Family
from bench.errors import RequestError, unknown
from bench.federation.scenario import SCENARIOS, Scenario

NUMBER = "a number at the end of a name is an example"


def forms(family: Family | None = None) -> list[str]:
    """The names of a family's scenarios (None: of all scenarios), with examples of parameters."""
    return [
        f"{name}{parameter}"
        for name, kind in SCENARIOS.all().items()
        if family is None or family in kind.families
        for parameter in kind.parameters
    ]


def parse(name: str) -> Scenario[Any]:
    """The scenario of that name. If several names match its beginning, the longest decides.

    Raises:
        RequestError: there is none (the message has the nearest name), or its parameter is wrong or
            missing.
    """
    kinds = SCENARIOS.all()
    for end in range(len(name), 0, -1):
        kind, parameter = kinds.get(name[:end]), name[end:]
        if kind is None or (parameter and not any(kind.parameters)):
            continue
        try:
            return kind.parse(parameter)
        except ValueError as error:
            examples = " or ".join(f"{kind.name}{example}" for example in kind.parameters)
            problem = " ".join(str(error).split())
            raise RequestError(f"scenario '{name}': {problem}; write it as {examples}") from None
    raise RequestError(f"{unknown('scenario', name, forms())}; {NUMBER}")


def find(name: str, dataset: str, family: Family) -> Scenario[Any]:
    """The scenario of that name for a data set of that family.

    Raises:
        RequestError: there is no such scenario, or it is for another family.
    """
    scenario = parse(name)
    if family not in scenario.families:
        raise RequestError(
            f"scenario '{name}' is for {' or '.join(scenario.families)} data, but {dataset} is {family} "
            f"data: use {' or '.join(forms(family))}; {NUMBER}"
        )
    return scenario
