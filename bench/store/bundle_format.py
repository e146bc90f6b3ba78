"""What a bundle is: its files, their columns and its table of contents (``docs/results-format.md``)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

FORMAT = "pfl-bench bundle"
VERSION = 1
MANIFEST = "bundle.json"

STATES = ("done", "diverged", "not_applicable", "oom")
"""States that a bundle may hold: outcomes of a run, not of a machine or of somebody's set-up."""

SPLITS = ("train", "val", "test")
CURVE_SPLIT = "test"
USUAL_ARRAY_BYTES = 4096
"""Largest NPY data of an array that a bundle keeps unless more is asked for."""
ARRAY_BYTES = 2**20
"""Largest NPY data of an array that a reader takes: what hundreds of rounds weigh by layer fits."""

MANIFEST_BYTES = 4 * 2**20
FILE_BYTES = 256 * 2**20
TABLE_BYTES = 2**30
TEXT_BYTES = 65_536
DEPTH = 32
"""Largest ``bundle.json``, Parquet file, content of one when decoded, and text in it, in bytes; and
how deeply JSON may be nested. A reader refuses more, whatever it would find there."""


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


TEXT, COUNT, LARGE, SECONDS = pa.string(), pa.int32(), pa.int64(), pa.float64()

SCHEMAS = {
    "runs.parquet": _schema(
        spec_hash=TEXT,
        spec=TEXT,
        dataset=TEXT,
        scenario=TEXT,
        clients=COUNT,
        method=TEXT,
        seed=LARGE,
        rounds=COUNT,
        state=TEXT,
        reason=TEXT,
        partition_hash=TEXT,
        environment=TEXT,
        started=pa.timestamp("us"),
        seconds_total=SECONDS,
        seconds_client=SECONDS,
        seconds_server=SECONDS,
        seconds_evaluation=SECONDS,
        peak_memory=LARGE,
        bytes_up=LARGE,
        bytes_down=LARGE,
        device=TEXT,
        code_version=TEXT,
        source_hash=TEXT,
        method_numerics=COUNT,
        engine_numerics=COUNT,
    ),
    "client_results.parquet": _schema(
        run=COUNT, stage=TEXT, split=TEXT, rule=TEXT, metric=TEXT, client=COUNT, samples=COUNT
    )
    .append(pa.field("correct", COUNT))
    .append(pa.field("value", SECONDS)),
    "curves.parquet": _schema(
        run=COUNT,
        stage=TEXT,
        split=TEXT,
        rows=COUNT,
        clients=COUNT,
        correct=pa.list_(pa.field("element", COUNT, nullable=False)),
    ),
    "artefacts.parquet": _schema(run=COUNT, name=TEXT, data=pa.binary()),
}
"""File -> its columns. ``run`` is a row of ``runs.parquet``, from 0."""

MOST_ROWS = {
    "runs.parquet": 100_000,
    "client_results.parquet": 20_000_000,
    "curves.parquet": 200_000,
    "artefacts.parquet": 1_000_000,
}
"""File -> the most rows that a reader takes."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Whole = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class File(_Part):
    """Size, SHA-256 and rows of one Parquet file."""

    bytes: Whole
    rows: Whole
    sha256: Digest


class Environment(_Part):
    """Where runs were made; ``hash`` is the SHA-256 of the description's canonical JSON."""

    hash: Digest
    description: dict[str, Any]


class Partition(_Part):
    """A federation that runs used and how it was made."""

    hash: Annotated[str, Field(min_length=1)]
    dataset: str
    scenario: str
    clients: Annotated[int, Field(ge=1, le=2**31 - 1)]
    provenance: dict[str, Any]


class Manifest(_Part):
    """``bundle.json``. ``source`` says who made the runs and where more is to be read."""

    format: Literal["pfl-bench bundle"]
    version: Literal[1]
    source: Annotated[str, Field(max_length=1000)] = ""
    files: dict[str, File]
    environments: list[Environment]
    partitions: list[Partition]
