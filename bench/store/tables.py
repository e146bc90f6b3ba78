"""Stored runs as seven tables, which a database and a bundle give alike.

===============  ==================================================================================
runs             ``bench.store.store.RUN_VALUES``
client_results   run_id, client, stage, split, rule, metric, value (0 to 1), samples
curves           run_id, stage, split, rows, clients, counts: correct predictions, int32
                 ``[rows, clients]``
confusions       run_id, stage, rule, clients, classes, counts: test items by true and predicted
                 class, int32 ``[clients, classes, classes]``
artefacts        run_id, name, data: an array as NPY bytes
environments     id, hash, description (JSON)
partitions       hash, dataset, scenario, clients, provenance (JSON)
===============  ==================================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.errors import unknown
from bench.store.models import unpack_array


class Tables(ABC):
    """Stored runs, and the questions that are put to them."""

    @abstractmethod
    def table(self, name: str, /, **filters: Any) -> pd.DataFrame:
        """The rows of a table that match every filter, ordered by the table's first columns.

        A filter is ``column=value`` or ``column=[values]``.
        """

    def runs(self, **filters: Any) -> pd.DataFrame:
        """One row a run, such as ``runs(dataset="cora", method=["local", "fedavg"], state="done")``."""
        return self.table("runs", **filters)

    def client_results(self, run_ids: Iterable[int], **only: str | None) -> pd.DataFrame:
        """The values of the runs' clients; ``only`` are filters, and one that is None takes everything."""
        filters = {name: value for name, value in only.items() if value is not None}
        return self.table("client_results", run_id=list(run_ids), **filters)

    def curves(self, run_ids: Iterable[int], split: str) -> dict[tuple[int, str], NDArray[np.int32]]:
        """Run and stage -> correct predictions ``[rows, clients]``, of those runs that have a curve."""
        rows = self.table("curves", run_id=list(run_ids), split=split)
        keys = rows[["run_id", "stage"]].itertuples(index=False, name=None)
        return dict(zip(keys, rows["counts"], strict=True))

    def confusions(self, run_ids: Iterable[int]) -> dict[tuple[int, str, str], NDArray[np.int32]]:
        """Run, stage and rule -> test items ``[clients, true class, predicted class]``, where kept."""
        rows = self.table("confusions", run_id=list(run_ids))
        keys = rows[["run_id", "stage", "rule"]].itertuples(index=False, name=None)
        return dict(zip(keys, rows["counts"], strict=True))

    def artefacts(self, run_ids: Iterable[int], name: str) -> dict[int, NDArray[Any]]:
        """An array such as ``loss`` by run, of those runs that keep it."""
        rows = self.table("artefacts", run_id=list(run_ids), name=name)
        return dict(zip(rows["run_id"].tolist(), map(unpack_array, rows["data"]), strict=True))


def wanted_values(filters: Mapping[str, Any], columns: Collection[str]) -> dict[str, list[Any]]:
    """Column -> values that are let through, from ``column=value`` or ``column=[values]``."""
    values = {}
    for name, choice in filters.items():
        if name not in columns:
            raise unknown("column of runs", name, columns)
        values[name] = list(choice) if isinstance(choice, (list, tuple, set, frozenset)) else [choice]
    return values


def filter_runs(runs: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """Rows of a table that match every filter."""
    keep = np.ones(len(runs), bool)
    for name, values in wanted_values(filters, runs.columns).items():
        is_wanted = runs[name] == values[0] if len(values) == 1 else runs[name].isin(values)
        keep &= is_wanted.to_numpy(bool)
    return runs[keep].reset_index(drop=True)
