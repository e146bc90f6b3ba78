"""Which stored runs an export takes."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from bench.errors import RequestError, unknown
from bench.grids import expand, load_grid


@dataclass(frozen=True)
class Choice:
    """Names and numbers wanted; an empty part wants all, ``grid`` the runs that it plans."""

    datasets: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    clients: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    grid: str | None = None


def choose(runs: pd.DataFrame, choice: Choice) -> pd.DataFrame:
    """The rows of ``Store.runs`` that are wanted.

    Raises:
        RequestError: a name or number that no stored run has, an unknown grid, or nothing left.
    """
    wanted = {
        "dataset": choice.datasets,
        "scenario": choice.scenarios,
        "clients": choice.clients,
        "method": choice.methods,
        "seed": choice.seeds,
    }
    keep = pd.Series(True, index=runs.index)
    for column, values in wanted.items():
        have = set(runs[column])
        for value in values:
            if value not in have:
                raise unknown(f"{column} among the stored runs:", str(value), map(str, have))
        if values:
            keep &= runs[column].isin(values)
    if choice.grid is not None:
        planned = {plan.spec.hash for plan in expand(load_grid(choice.grid)) if plan.spec is not None}
        keep &= runs["spec_hash"].isin(planned)
    if not keep.any():
        raise RequestError("no stored run is all of what is asked for: leave one of the filters away")
    return runs[keep]
