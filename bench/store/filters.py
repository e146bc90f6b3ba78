"""Filters of runs and results, the same for a database and for frames."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from bench.errors import RequestError, unknown

if TYPE_CHECKING:
    import pandas as pd  # slow to import, and a database can be asked without


class Readings(TypedDict, total=False):
    """Which of the results of a run's clients are asked for; what is left out or None takes everything."""

    stage: str | None
    split: str | None
    rule: str | None
    metric: str | None


def wanted_values(filters: Mapping[str, Any], columns: Collection[str]) -> dict[str, list[Any]]:
    """Column -> values that are let through, from ``column=value`` or ``column=[values]``.

    NumPy's numbers become Python's own: a database driver would store them as bytes.

    Raises:
        RequestError: there is no such column.
    """
    values = {}
    for name, choice in filters.items():
        if name not in columns:
            raise unknown("column of runs", name, columns)
        is_collection = isinstance(choice, (list, tuple, set, frozenset))
        values[name] = [
            value.item() if isinstance(value, np.generic) else value
            for value in (choice if is_collection else [choice])
        ]
    return values


def filter_runs(runs: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """Rows that match every filter; raises as ``wanted_values``."""
    keep = np.ones(len(runs), bool)
    for name, values in wanted_values(filters, runs.columns).items():
        keep &= runs[name].isin(values).to_numpy()
    return runs[keep].reset_index(drop=True)


def filter_known_runs(runs: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """As ``filter_runs``, for filters that somebody typed: each value has to be that of some run.

    A filter that is None or empty takes everything.

    Raises:
        RequestError: a value that no run has, or no run left.
    """
    choices = {name: values for name, values in filters.items() if values}
    for name, values in choices.items():
        stored_values = set(runs[name])
        for value in values:
            if value not in stored_values:
                raise unknown(f"{name} among the stored runs:", str(value), map(str, stored_values))
    chosen_runs = filter_runs(runs, choices)
    if chosen_runs.empty:
        raise RequestError("no stored run is all of what is asked for: leave one of the filters away")
    return chosen_runs


def filter_results(results: pd.DataFrame, run_ids: Iterable[int], only: Readings) -> pd.DataFrame:
    """Rows of some runs with these readings."""
    keep = results["run_id"].isin({int(run) for run in run_ids})
    for name, value in only.items():
        if value is not None:
            keep &= results[name] == value
    return results[keep].reset_index(drop=True)
