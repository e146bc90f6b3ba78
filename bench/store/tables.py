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

import io
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.errors import unknown
from bench.spec import RunSpec


class Stored(NamedTuple):
    """The data of a stored run that a sweep needs."""

    spec_hash: str
    id: int
    state: str
    reason: str
    method_numerics: int
    engine_numerics: int
    source_hash: str
    started: datetime
    spec: str
    seconds_total: float
    device: str


class Tables(ABC):
    """Stored runs, and queries on them."""

    @abstractmethod
    def table(self, name: str, /, **filters: Any) -> pd.DataFrame:
        """Return the rows of a table that match every filter, ordered by the table's first columns.

        A filter is ``column=value`` or ``column=[values]``.
        """

    def runs(self, **filters: Any) -> pd.DataFrame:
        """Return a row per run: ``runs(dataset="cora", method=["local", "fedavg"], state="done")``."""
        return self.table("runs", **filters)

    def client_results(self, run_ids: Iterable[int], **only: str | None) -> pd.DataFrame:
        """Return the values of the runs' clients. ``only`` are filters; a filter that is None is ignored."""
        filters = {name: value for name, value in only.items() if value is not None}
        return self.table("client_results", run_id=list(run_ids), **filters)

    def curves(self, run_ids: Iterable[int], split: str) -> dict[tuple[int, str], NDArray[np.int32]]:
        """Return correct predictions ``[rows, clients]`` by run and stage, for runs that have a curve."""
        rows = self.table("curves", run_id=list(run_ids), split=split)
        keys = rows[["run_id", "stage"]].itertuples(index=False, name=None)
        return dict(zip(keys, rows["counts"], strict=True))

    def confusions(self, run_ids: Iterable[int]) -> dict[tuple[int, str, str], NDArray[np.int32]]:
        """Return test items ``[clients, true class, predicted class]`` by run, stage and rule, if stored."""
        rows = self.table("confusions", run_id=list(run_ids))
        keys = rows[["run_id", "stage", "rule"]].itertuples(index=False, name=None)
        return dict(zip(keys, rows["counts"], strict=True))

    def artefacts(self, run_ids: Iterable[int], name: str) -> dict[int, NDArray[Any]]:
        """Return an array such as ``loss`` by run, for runs that store it."""
        rows = self.table("artefacts", run_id=list(run_ids), name=name)
        return dict(zip(rows["run_id"].tolist(), map(unpack_array, rows["data"]), strict=True))


def wanted_values(filters: Mapping[str, Any], columns: Collection[str]) -> dict[str, list[Any]]:
    """Return the wanted values by column, from ``column=value`` or ``column=[values]``."""
    values = {}
    for name, choice in filters.items():
        if name not in columns:
            raise unknown("column of runs", name, columns)
        values[name] = list(choice) if isinstance(choice, (list, tuple, set, frozenset)) else [choice]
    return values


def filter_runs(runs: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows of a table that match every filter."""
    keep = np.ones(len(runs), bool)
    for name, values in wanted_values(filters, runs.columns).items():
        is_wanted = runs[name] == values[0] if len(values) == 1 else runs[name].isin(values)
        keep &= is_wanted.to_numpy(bool)
    return runs[keep].reset_index(drop=True)


def plain_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert texts to Python strings: selecting their rows is three times as fast as with Arrow's."""
    return frame.astype(dict.fromkeys(frame.select_dtypes("str").columns, "object"))


def spec_columns(spec: RunSpec) -> dict[str, Any]:
    """Return the columns of ``runs`` that follow from the spec."""
    return {
        "spec_hash": spec.hash,
        "spec": spec.canonical(),
        "cell": spec.cell,
        "rounds": spec.protocol.rounds,
        **{name: getattr(spec, name) for name in ("dataset", "scenario", "clients", "method", "seed")},
    }


AXES = {"curves": ("rows", "clients"), "confusions": ("clients", "classes", "classes")}
"""Columns that give the shape of the counts, for each table whose column ``data`` holds counts."""


def pack_counts(counts: NDArray[np.int32]) -> bytes:
    """Compress an array of counts, row by row."""
    return zlib.compress(np.ascontiguousarray(counts, dtype="<i4").tobytes(), 6)


def unpack_counts(data: bytes, shape: tuple[int, ...]) -> NDArray[np.int32]:
    """Return the array that ``pack_counts`` compressed."""
    return np.frombuffer(zlib.decompress(data), dtype="<i4").reshape(shape).astype(np.int32)


def pack_array(array: NDArray[Any]) -> bytes:
    """Return the NPY bytes of an array of numbers."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def unpack_array(data: bytes) -> NDArray[Any]:
    """Return the array that ``pack_array`` wrote."""
    array: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    return array
