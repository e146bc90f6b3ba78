"""Reading a bundle's files, and everything that may be wrong with them, told in one line."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import ValidationError

from bench.errors import RequestError
from bench.selection import RULES
from bench.spec import STAGES, RunSpec
from bench.store import bundle_parquet
from bench.store.bundle_files import BundleFile, check_names
from bench.store.bundle_format import (
    ARRAY_BYTES,
    CURVE_SPLIT,
    DEPTH,
    FILE_BYTES,
    FORMAT,
    MANIFEST,
    MANIFEST_BYTES,
    MOST_ROWS,
    SCHEMAS,
    SPLITS,
    STATES,
    VERSION,
    Manifest,
)

SEVERAL_LINES = ("reason",)
"""Columns whose text may have line breaks."""

OF_SPEC = ("dataset", "scenario", "clients", "method", "seed", "rounds")
"""Columns of ``runs.parquet`` that repeat the spec."""

STARTED = (pd.Timestamp("2000-01-01"), pd.Timestamp("2099-12-31"))

CurveRow = tuple[int, str, str, int, int, NDArray[np.int32]]
"""Run (from 0), stage, split, rows, clients, counts client by client."""
ArtefactRow = tuple[int, str, bytes]
"""Run (from 0), name, NPY data."""

NPY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(?P<kind>\|[biu]1|[<>][iuf][248])', "
    rb"'fortran_order': (?:True|False), 'shape': (?P<shape>\([0-9, ]*\)), \} *\n",
    re.DOTALL,
)


class Tables(NamedTuple):
    """The content of a bundle's Parquet files."""

    runs: pd.DataFrame
    results: pd.DataFrame
    curves: list[CurveRow]
    artefacts: list[ArtefactRow]


def canonical(value: Mapping[str, Any]) -> str:
    """JSON as the database keeps it: keys sorted, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _sha256(data: str | bytes) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    if math.isfinite(number := float(text)):
        return number
    raise ValueError(f"{text} is too large a number")


def _json(text: str | bytes) -> Any:
    """Parsed JSON.

    Raises:
        ValueError: not JSON, NaN or infinity in it, or nested too deeply.
    """
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _texts(tree: Any) -> Iterator[str]:
    """Every key and text in parsed JSON.

    Raises:
        ValueError: nested more than ``DEPTH`` deep.
    """
    level = [tree]
    for _ in range(DEPTH):
        below: list[Any] = []
        for value in level:
            if isinstance(value, str):
                yield value
            elif isinstance(value, dict):
                yield from value
                below += value.values()
            elif isinstance(value, (list, tuple)):
                below += value
        if not below:
            return
        level = below
    raise ValueError("nested too deeply")


def _printable(text: str, several_lines: bool = False) -> bool:
    """Whether a text can be shown as it is: no control character, no reversal of its direction."""
    return (text.replace("\n", "").replace("\t", "") if several_lines else text).isprintable()


def read_manifest(folder: Path) -> tuple[Manifest, str]:
    """``bundle.json``, checked in itself, and its SHA-256.

    Raises:
        RequestError: no such folder or file, a file in it that is not part of a bundle, not JSON,
            another format or version, a wrong content.
    """
    file = BundleFile(folder, MANIFEST)
    try:
        data = file.read(MANIFEST_BYTES)
        check_names(folder, {MANIFEST, *SCHEMAS})
    except OSError as error:
        raise RequestError(
            f"no bundle at {folder}: expected a folder with {MANIFEST} ({error.strerror})"
        ) from None
    file.require(len(data) <= MANIFEST_BYTES, f"too large: expected at most {MANIFEST_BYTES:,} bytes")
    try:
        tree = _json(data)
        texts = list(_texts(tree))
    except ValueError as error:
        file.refuse(f"not valid JSON: {error}")
    wrong = next((text for text in texts if not _printable(text)), None)
    file.require(wrong is None, f"a text holds a control character: {wrong!r}")
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        file.refuse(f'not a bundle of results: expected "format": "{FORMAT}"')
    if tree.get("version") != VERSION:
        file.refuse(f"version {tree.get('version')!r}, this bench reads {VERSION}: upgrade bench")
    try:
        manifest = Manifest.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        file.refuse(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
    missing = sorted(set(SCHEMAS) - set(manifest.files))
    file.require(not missing, f"files: {', '.join(missing)} is missing")
    foreign = sorted(set(manifest.files) - set(SCHEMAS))
    file.require(not foreign, f"files: {foreign[:1]} is not part of a bundle")
    for environment in manifest.environments:
        matches = _sha256(canonical(environment.description)) == environment.hash
        file.require(matches, f"environment {environment.hash[:8]}: its hash does not match its description")
    for kind, hashes in (
        ("environment", [each.hash for each in manifest.environments]),
        ("partition", [each.hash for each in manifest.partitions]),
    ):
        file.require(len(set(hashes)) == len(hashes), f"a {kind} occurs twice")
    for name, stated in manifest.files.items():
        part = BundleFile(folder, name)
        part.require(stated.bytes <= FILE_BYTES, f"too large: expected at most {FILE_BYTES:,} bytes")
        part.require(stated.rows <= MOST_ROWS[name], f"too many rows: expected at most {MOST_ROWS[name]:,}")
    return manifest, _sha256(data)


def read_tables(folder: Path, manifest: Manifest) -> Tables:
    """The Parquet files, each checked in itself and against the others.

    Raises:
        RequestError: a file is missing, damaged, not Parquet or of another schema; a spec's hash
            does not match; a count, number or name is out of its range.
    """
    tables = {name: _table(BundleFile(folder, name), manifest) for name in SCHEMAS}
    runs = _frame(tables["runs.parquet"])
    _check_runs(BundleFile(folder, "runs.parquet"), runs, manifest)
    results = _frame(tables["client_results.parquet"])
    _check_results(BundleFile(folder, "client_results.parquet"), results, runs)
    curves = _curves(BundleFile(folder, "curves.parquet"), tables["curves.parquet"], runs, results)
    artefacts = _artefacts(BundleFile(folder, "artefacts.parquet"), tables["artefacts.parquet"], runs)
    return Tables(runs, results, curves, artefacts)


def _table(file: BundleFile, manifest: Manifest) -> pa.Table:
    stated = manifest.files[file.name]
    try:
        data = file.read(stated.bytes)
    except OSError as error:
        file.refuse(f"cannot read it: {error.strerror}")
    file.require(
        len(data) == stated.bytes and _sha256(data) == stated.sha256,
        f"damaged: its size or SHA-256 is not that of {MANIFEST}",
    )
    table = bundle_parquet.read_table(file, data, stated.rows)
    for field in table.schema:
        column = table.column(field.name)
        file.require(field.nullable or not column.null_count, f"column {field.name}: a value is missing")
        if pa.types.is_floating(field.type):
            numbers = column.drop_null().to_numpy()
            file.require(bool(np.isfinite(numbers).all()), f"column {field.name}: a value is not finite")
        if pa.types.is_string(field.type):
            texts = pc.unique(column).to_pylist()
            lines = field.name in SEVERAL_LINES
            wrong = next((text for text in texts if not _printable(text, lines)), None)
            file.require(wrong is None, f"column {field.name}: a control character in {wrong!r}")
    return table


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _check_runs(file: BundleFile, runs: pd.DataFrame, manifest: Manifest) -> None:
    stated = zip(*(runs[name].tolist() for name in ("spec", "spec_hash", *OF_SPEC)), strict=True)
    for row, (text, digest, *values) in enumerate(stated):
        file.require(_sha256(text) == digest, f"row {row}: the spec's hash does not match the spec")
        spec = _spec(file, row, text)
        expected = (
            spec.dataset,
            spec.scenario,
            spec.clients,
            spec.method,
            spec.seed,
            spec.protocol.rounds,
        )
        for name, value, wanted in zip(OF_SPEC, values, expected, strict=True):
            file.require(value == wanted, f"row {row}: {name} is not that of the spec")
    twice = runs["spec_hash"].duplicated()
    file.each(~twice, "this spec occurs twice")
    file.each(runs["state"].isin(STATES), f"state: expected {', '.join(STATES)}")
    for name in ("method_numerics", "engine_numerics", "peak_memory", "bytes_up", "bytes_down"):
        file.each(runs[name] >= 0, f"{name} is negative")
    for name in ("seconds_total", "seconds_client", "seconds_server", "seconds_evaluation"):
        file.each(runs[name] >= 0, f"{name} is negative")
    file.each(runs["started"].between(*STARTED), "started: expected a time of this century")
    known = {each.hash for each in manifest.environments}
    file.each(runs["environment"].isin(known), f"environment: {MANIFEST} has no such hash")
    partitions = {each.hash: (each.dataset, each.scenario, each.clients) for each in manifest.partitions}
    of_run = zip(runs["dataset"], runs["scenario"], runs["clients"], strict=True)
    file.each(
        [
            not digest or partitions.get(digest) == names
            for digest, names in zip(runs["partition_hash"], of_run, strict=True)
        ],
        f"partition_hash: {MANIFEST} has no such partition of these clients",
    )


def _spec(file: BundleFile, row: int, text: str) -> RunSpec:
    try:
        spec = RunSpec.model_validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        file.refuse(f"row {row}: spec: {'.'.join(map(str, first['loc']))}: {first['msg']}")
    try:
        file.require(spec.canonical() == text, f"row {row}: the spec is not in its canonical form")
    except ValueError as error:  # a number of so many digits that Python does not write it
        file.refuse(f"row {row}: spec: {error}")
    file.require(
        all(map(_printable, _texts(spec.tree()))), f"row {row}: spec: a text holds a control character"
    )
    return spec


def _check_run(file: BundleFile, numbers: Iterable[int], runs: pd.DataFrame) -> None:
    run = np.asarray(numbers, np.int64)
    file.each((run >= 0) & (run < len(runs)), f"run: expected 0 to {len(runs) - 1}")
    done = (runs["state"] == "done").to_numpy()
    file.each(done[run], "results of a run that is not done")


def _check_results(file: BundleFile, results: pd.DataFrame, runs: pd.DataFrame) -> None:
    _check_run(file, results["run"], runs)
    for name, allowed in (("stage", STAGES), ("split", SPLITS), ("rule", tuple(RULES))):
        file.each(results[name].isin(allowed), f"{name}: expected {', '.join(allowed)}")
    file.each(
        results["metric"].str.fullmatch(r"[a-z][a-z0-9_]{0,63}"), "metric: expected a name like accuracy"
    )
    clients = runs["clients"].to_numpy()[results["run"].to_numpy()]
    file.each((results["client"] >= 0) & (results["client"] < clients), "client: no client of this run")
    file.each(results["samples"] >= 1, "samples: expected at least 1")
    counted = results["correct"].notna()
    file.each(counted != results["value"].notna(), "expected either correct or value")
    in_range = (results["correct"] >= 0) & (results["correct"] <= results["samples"])
    file.each(~counted | in_range, "correct: expected 0 to samples")
    file.each(counted | results["value"].between(0, 1), "value: expected 0 to 1")
    keys = ["run", "stage", "split", "rule", "metric", "client"]
    file.each(~results.duplicated(keys), "this value occurs twice")


def _curves(file: BundleFile, table: pa.Table, runs: pd.DataFrame, results: pd.DataFrame) -> list[CurveRow]:
    frame = _frame(table.drop_columns(["correct"]))
    _check_run(file, frame["run"], runs)
    file.each(frame["stage"].isin(STAGES), f"stage: expected {', '.join(STAGES)}")
    file.each(frame["split"] == CURVE_SPLIT, f"split: expected {CURVE_SPLIT}")
    file.each(frame["rows"] >= 1, "rows: expected at least 1")
    same = frame["clients"].to_numpy() == runs["clients"].to_numpy()[frame["run"].to_numpy()]
    file.each(same, "clients: not that of the run")
    file.each(~frame.duplicated(["run", "stage", "split"]), "this curve occurs twice")
    samples = _samples(results)
    curves: list[CurveRow] = []
    for row, (run, stage, split, rows, clients) in enumerate(frame.itertuples(index=False)):
        counts = np.asarray(table.column("correct")[row].values, np.int32)
        file.require(len(counts) == rows * clients, f"row {row}: correct: expected rows x clients counts")
        most = np.array([samples.get((run, client), 0) for client in range(clients)])
        by_client = counts.reshape(clients, rows)
        fits = bool(((by_client >= 0) & (by_client <= most[:, None])).all())
        file.require(fits, f"row {row}: correct: expected 0 to the client's samples")
        curves.append((int(run), stage, split, int(rows), int(clients), counts))
    return curves


def _samples(results: pd.DataFrame) -> dict[tuple[int, int], int]:
    """Test samples by run and client; a client without has no results."""
    rows = results[results["split"] == CURVE_SPLIT]
    keys = zip(rows["run"].tolist(), rows["client"].tolist(), strict=True)
    return dict(zip(keys, rows["samples"].tolist(), strict=True))


def _artefacts(file: BundleFile, table: pa.Table, runs: pd.DataFrame) -> list[ArtefactRow]:
    rows: list[ArtefactRow] = [(each["run"], each["name"], each["data"]) for each in table.to_pylist()]
    _check_run(file, [run for run, _, _ in rows], runs)
    file.require(len({row[:2] for row in rows}) == len(rows), "an array occurs twice")
    for row, (_, _, data) in enumerate(rows):
        file.require(
            len(data) <= ARRAY_BYTES and _is_npy(data),
            f"row {row}: data: expected an NPY array of numbers of at most {ARRAY_BYTES} bytes",
        )
    return rows


def _is_npy(data: bytes) -> bool:
    """Whether these are NPY bytes with numbers of the stated shape, and no more.

    The header is matched as NumPy writes it, because NumPy itself reads one as a Python literal.
    """
    head = NPY_HEADER.match(data)
    if head is None or int.from_bytes(data[8:10], "little") != head.end() - 10:
        return False
    shape = tuple(map(int, re.findall(rb"[0-9]+", head["shape"])))
    if repr(shape).encode() != head["shape"] or len(shape) > 4 or max(shape, default=0) > ARRAY_BYTES:
        return False
    return head.end() + math.prod(shape) * int(head["kind"][-1:]) == len(data)
