"""The questions of ``Store``, put to data frames instead of a database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from bench.errors import unknown


def filter_runs(runs: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """Rows that match every ``column=value`` or ``column=[values]``.

    Raises:
        RequestError: there is no such column.
    """
    keep = pd.Series(True, index=runs.index)
    for name, wanted in filters.items():
        if name not in runs.columns:
            raise unknown("column of runs", name, runs.columns)
        several = isinstance(wanted, (list, tuple, set, frozenset))
        keep &= runs[name].isin(list(wanted) if several else [wanted])
    return runs[keep].reset_index(drop=True)


def filter_results(
    results: pd.DataFrame, run_ids: Iterable[int], stage: str | None, split: str | None, rule: str | None
) -> pd.DataFrame:
    """Rows of some runs; a filter that is None takes everything."""
    keep = results["run_id"].isin({int(run) for run in run_ids})
    for name, value in (("stage", stage), ("split", split), ("rule", rule)):
        if value is not None:
            keep &= results[name] == value
    return results[keep].reset_index(drop=True)
