"""The tables of the result database, and the frames that a database and a bundle give alike.

A run is one row of ``runs`` with its rows in ``client_results``, ``curves``, ``confusions`` and
``artefacts``. ``spec_hash`` identifies a run; ``cell`` is common to the runs that differ in their seed
alone. A run with a ``bundle_id`` was made by somebody else and imported.

Frames of ``Tables``:

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
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlalchemy import BigInteger, Column, Double, ForeignKey, Integer, LargeBinary, MetaData, String, Table
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from bench.errors import unknown
from bench.spec import RunSpec

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
"""Names of constraints, which SQLite's migrations need."""

LARGE = BigInteger().with_variant(Integer, "sqlite")
"""Bytes: SQLite's integers are as large as need be."""


class Base(DeclarativeBase):
    """Declarative base."""

    metadata = MetaData(naming_convention=NAMING)


class Claim(Base):
    """A run that a sweep makes: no other one starts it before ``until``, by the database's clock."""

    __tablename__ = "claims"
    spec_hash: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    until: Mapped[float]
    run: Mapped[str] = mapped_column(default="", server_default="")
    device: Mapped[str] = mapped_column(default="", server_default="")
    since: Mapped[datetime | None]


class Environment(Base):
    """Where runs were made: versions, processor, accelerator, threads (JSON), by its SHA-256."""

    __tablename__ = "environments"
    id: Mapped[int] = mapped_column(primary_key=True)
    hash: Mapped[str] = mapped_column(unique=True)
    description: Mapped[str]


class Partition(Base):
    """A federation that runs used: its hash and how it was made (JSON)."""

    __tablename__ = "partitions"
    hash: Mapped[str] = mapped_column(primary_key=True)
    dataset: Mapped[str]
    scenario: Mapped[str]
    clients: Mapped[int]
    provenance: Mapped[str]


class ImportedBundle(Base):
    """A bundle of which runs were imported, by the SHA-256 of its ``bundle.json``. ``state`` and ``sample``
    (spec hash -> finding, JSON) are those of ``bench.store.bundle.mark``. Times are UTC.
    """

    __tablename__ = "bundles"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    source: Mapped[str]
    hash: Mapped[str] = mapped_column(unique=True)
    imported: Mapped[datetime]
    state: Mapped[str]
    sample: Mapped[str]
    checked: Mapped[datetime | None]


class Run(Base):
    """One executed spec. ``state`` other than ``done`` has no results, but a ``reason``."""

    __tablename__ = "runs"
    id: Mapped[int] = mapped_column(primary_key=True)
    spec_hash: Mapped[str] = mapped_column(unique=True)
    spec: Mapped[str]
    cell: Mapped[str] = mapped_column(index=True, server_default="")
    dataset: Mapped[str] = mapped_column(index=True)
    scenario: Mapped[str]
    clients: Mapped[int]
    method: Mapped[str] = mapped_column(index=True)
    seed: Mapped[int]
    rounds: Mapped[int]
    state: Mapped[str] = mapped_column(index=True)
    reason: Mapped[str] = mapped_column(default="")
    traceback: Mapped[str] = mapped_column(default="")
    partition_hash: Mapped[str] = mapped_column(default="", index=True)
    environment_id: Mapped[int | None] = mapped_column(ForeignKey("environments.id"))
    started: Mapped[datetime]
    seconds_total: Mapped[float] = mapped_column(default=0.0)
    seconds_client: Mapped[float] = mapped_column(default=0.0)
    seconds_server: Mapped[float] = mapped_column(default=0.0)
    seconds_evaluation: Mapped[float] = mapped_column(default=0.0)
    peak_memory: Mapped[int] = mapped_column(LARGE, default=0)
    bytes_up: Mapped[int] = mapped_column(LARGE, default=0)
    bytes_down: Mapped[int] = mapped_column(LARGE, default=0)
    device: Mapped[str] = mapped_column(default="")
    code_version: Mapped[str]
    source_hash: Mapped[str] = mapped_column(default="")
    method_numerics: Mapped[int]
    engine_numerics: Mapped[int]
    bundle_id: Mapped[int | None] = mapped_column(ForeignKey("bundles.id"))


def _table_of_runs(name: str, keys: str, values: str, **options: Any) -> None:
    """A table whose rows go with their run; the run and the ``keys`` tell them apart."""
    kinds = {"client": Integer, "value": Double, "data": LargeBinary}
    Table(
        name,
        Base.metadata,
        Column("run_id", Integer, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        *(Column(key, kinds.get(key, String), primary_key=True) for key in keys.split()),
        *(Column(value, kinds.get(value, Integer), nullable=False) for value in values.split()),
        **options,
    )


_table_of_runs("client_results", "client stage split rule metric", "value samples", sqlite_with_rowid=False)
"""One client's value of a metric, for a stage, split and selection rule."""

_table_of_runs("curves", "stage split", "rows clients data")
"""Correct predictions by row and client: zlib-compressed little-endian int32 ``[rows, clients]``."""

_table_of_runs("confusions", "stage rule", "clients classes data")
"""Test items by client, true and predicted class at the rounds of a rule, in the same form, where kept."""

_table_of_runs("artefacts", "name", "data")
"""An array that a run keeps beside its numbers, such as a collaboration matrix (NPY bytes)."""


def spec_columns(spec: RunSpec) -> dict[str, Any]:
    """The columns of ``runs`` that follow from the spec."""
    return {
        "spec_hash": spec.hash,
        "spec": spec.canonical(),
        "cell": spec.cell,
        "rounds": spec.protocol.rounds,
        **{name: getattr(spec, name) for name in ("dataset", "scenario", "clients", "method", "seed")},
    }


AXES = {"curves": ("rows", "clients"), "confusions": ("clients", "classes", "classes")}
"""Tables with an array of counts in the column ``data``, and the columns that say its shape."""


def pack_counts(counts: NDArray[np.int32]) -> bytes:
    """The bytes of an array of counts, row by row."""
    return zlib.compress(np.ascontiguousarray(counts, dtype="<i4").tobytes(), 6)


def unpack_counts(data: bytes, shape: tuple[int, ...]) -> NDArray[np.int32]:
    """The array that ``pack_counts`` wrote."""
    return np.frombuffer(zlib.decompress(data), dtype="<i4").reshape(shape).astype(np.int32)


def pack_array(array: NDArray[Any]) -> bytes:
    """NPY bytes of an array of numbers."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def unpack_array(data: bytes) -> NDArray[Any]:
    """The array that ``pack_array`` wrote."""
    array: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    return array


# Frames ------------------------------------------------------------------------------------------


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
