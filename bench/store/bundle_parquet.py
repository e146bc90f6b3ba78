"""A Parquet file of a bundle as a table of the stated columns, without trusting what it says."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.store.bundle_files import BundleFile
from bench.store.bundle_format import ARRAY_BYTES, MANIFEST, SCHEMAS, TABLE_BYTES, TEXT_BYTES

BATCH = 16_384
"""Rows decoded at a time; what they come to is counted before more are read."""

COUNT_BYTES = 4


def read_table(file: BundleFile, data: bytes, rows: int) -> pa.Table:
    """The table in ``data``, of exactly the file's columns and so many rows.

    Metadata is dropped: pandas would take orders from it. Texts are decoded only once their
    length is known, because a few bytes of Parquet can stand for any number of long texts.

    Raises:
        RequestError: not Parquet, other columns or types, another number of rows, or too large.
    """
    schema = SCHEMAS[file.name]
    try:
        _check_schema(file, pq.ParquetFile(pa.BufferReader(data)), schema, rows)
        table = _decoded(file, data, schema)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        file.refuse(f"not readable as Parquet: {error}")
    file.require(table.num_rows == rows, f"{table.num_rows} rows, {MANIFEST} says {rows}")
    return table


def _check_schema(file: BundleFile, parquet: pq.ParquetFile, schema: pa.Schema, rows: int) -> None:
    metadata = parquet.metadata
    found = parquet.schema_arrow
    foreign = [name for name in found.names if name not in schema.names]
    more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
    file.require(not foreign, f"the column {''.join(foreign[:1])}{more} is not part of the format")
    for field in schema:
        file.require(field.name in found.names, f"the column {field.name} is missing")
    file.require(len(found) == len(schema), "a column occurs twice")
    for field in schema:
        kind = found.field(field.name).type
        file.require(kind == field.type, f"column {field.name}: expected {field.type}, got {kind}")
    file.require(metadata.num_rows == rows, f"{metadata.num_rows} rows, {MANIFEST} says {rows}")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    size = sum(max(group.total_byte_size, 0) for group in groups)
    file.require(size <= TABLE_BYTES, f"too large: {size:,} bytes unpacked, expected {TABLE_BYTES:,} at most")
    # Counts that repeat take no room in the file, so a single list could hold any number of them.
    values = sum(group.column(place).num_values for group in groups for place in range(group.num_columns))
    most = TABLE_BYTES // COUNT_BYTES
    file.require(values <= most, f"too large: {values:,} values, expected {most:,} at most")


def _decoded(file: BundleFile, data: bytes, schema: pa.Schema) -> pa.Table:
    variable = [field.name for field in schema if _is_variable(field.type)]
    parquet = pq.ParquetFile(pa.BufferReader(data), read_dictionary=variable)
    size = 0
    encoded: list[list[pa.Array]] = []
    for batch in parquet.iter_batches(batch_size=BATCH):
        encoded.append([batch.column(field.name) for field in schema])
        for field, column in zip(schema, encoded[-1], strict=True):
            if not _is_variable(field.type):
                size += column.nbytes
                continue
            lengths = pc.binary_length(column.dictionary)
            longest = pc.max(lengths).as_py() or 0
            most = ARRAY_BYTES if pa.types.is_binary(field.type) else TEXT_BYTES
            file.require(
                longest <= most,
                f"column {field.name}: a value of {longest:,} bytes, expected {most:,} at most",
            )
            size += pc.sum(lengths.take(column.indices)).as_py() or 0
        file.require(size <= TABLE_BYTES, f"too large: more than {TABLE_BYTES:,} bytes unpacked")
    batches = [pa.RecordBatch.from_arrays([_plain(each) for each in row], schema=schema) for row in encoded]
    return pa.Table.from_batches(batches, schema=schema)


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def _is_variable(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
