"""The tables of the result database.

A run is one row of ``runs`` with its rows in ``client_results``, ``curves``, ``confusions`` and
``artefacts``. ``spec_hash`` identifies a run; runs that differ only in their seed have the same ``cell``.
A run with a ``bundle_id`` was made by somebody else and imported.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Integer, LargeBinary, MetaData, String, Table
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
"""Name patterns of constraints; SQLite's migrations need names."""

LARGE = BigInteger().with_variant(Integer, "sqlite")
"""Type of byte counts; SQLite's plain integers are large enough."""


class Base(DeclarativeBase):
    """Declarative base."""

    metadata = MetaData(naming_convention=NAMING)


class Claim(Base):
    """A run that a sweep makes: no other sweep starts it before ``until``, by the database's clock."""

    __tablename__ = "claims"
    spec_hash: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    until: Mapped[float]
    run: Mapped[str] = mapped_column(default="", server_default="")
    device: Mapped[str] = mapped_column(default="", server_default="")
    since: Mapped[datetime | None]


class Environment(Base):
    """The machine and software of runs: versions, processor, accelerator, threads (JSON), by its SHA-256."""

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
    """A bundle with imported runs, by the SHA-256 of its ``bundle.json``. ``bench.store.bundle_import.mark``
    sets ``state`` and ``sample`` (spec hash -> finding, JSON). Times are UTC.
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
    """One executed spec. A run whose ``state`` is not ``done`` has a ``reason`` and no results."""

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
    """Define a table whose rows are deleted with their run; its key is the run and ``keys``."""
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
"""Test items by client, true and predicted class at a rule's rounds, if stored; packed as ``curves``."""

_table_of_runs("artefacts", "name", "data")
"""An array that a run stores in addition to its numbers, such as a collaboration matrix (NPY bytes)."""
