"""Damaged and foreign bundles: one line that names the file and what is wrong."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bundle_makers import change_manifest, change_table, done, opened, set_cell, sign, spec_of

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.store.bundle import Bundle
from bench.store.bundle_write import write_bundle

RUNS, RESULTS, CURVES, ARTEFACTS = (
    f"{name}.parquet" for name in ("runs", "client_results", "curves", "artefacts")
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    runs = [(spec_of(), done()), (spec_of(seed=1), done(shift=1)), (spec_of(seed=2), RunResult("oom"))]
    with opened(folder / "a.db", runs) as store:
        write_bundle(store, store.runs(), folder / "bundle")
    return folder / "bundle"


@pytest.fixture
def bundle(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "bundle"))


def row_of(folder: Path, state: str) -> int:
    return list(Bundle(folder).runs()["state"]).index(state)


def refused(folder: Path, file: str, problem: str) -> None:
    with pytest.raises(RequestError) as refusal:
        Bundle(folder)
    text = str(refusal.value)
    assert text.startswith(f"bundle {folder}: {file}: ")
    assert problem in text
    assert "\n" not in text


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


CELLS: list[tuple[str, str, Any, str]] = [
    (RUNS, "spec", '{"dataset":"cora"}', "the spec's hash does not match the spec"),
    (RUNS, "spec_hash", "0" * 64, "the spec's hash does not match the spec"),
    (RUNS, "method", "fedavg", "method is not that of the spec"),
    (RUNS, "seed", 77, "seed is not that of the spec"),
    (RUNS, "clients", 5, "clients is not that of the spec"),
    (RUNS, "rounds", 4, "rounds is not that of the spec"),
    (RUNS, "state", "failed", "state: expected done, diverged"),
    (RUNS, "bytes_up", -1, "bytes_up is negative"),
    (RUNS, "seconds_total", float("nan"), "column seconds_total: a value is not finite"),
    (RUNS, "seconds_total", -0.5, "seconds_total is negative"),
    (RUNS, "environment", "e" * 64, "bundle.json has no such hash"),
    (RUNS, "partition_hash", "elsewhere", "bundle.json has no such partition"),
    (RESULTS, "run", 3, "run: expected 0 to 2"),
    (RESULTS, "run", -1, "run: expected 0 to 2"),
    (RESULTS, "stage", "sent", "stage: expected received, trained"),
    (RESULTS, "split", "all", "split: expected train, val, test"),
    (RESULTS, "rule", "luck", "rule: expected best_val"),
    (RESULTS, "metric", "<script>", "metric: expected a name"),
    (RESULTS, "client", 2, "no client of this run"),
    (RESULTS, "client", 1, "this value occurs twice"),
    (RESULTS, "samples", 0, "samples: expected at least 1"),
    (RESULTS, "correct", 99, "correct: expected 0 to samples"),
    (RESULTS, "correct", -1, "correct: expected 0 to samples"),
    (RESULTS, "correct", None, "expected either correct or value"),
    (RESULTS, "value", 0.5, "expected either correct or value"),
    (RESULTS, "value", float("nan"), "column value: a value is not finite"),
    (CURVES, "run", 9, "run: expected 0 to 2"),
    (CURVES, "split", "val", "split: expected test"),
    (CURVES, "rows", 0, "rows: expected at least 1"),
    (CURVES, "rows", 4, "correct: expected rows x clients counts"),
    (CURVES, "clients", 3, "clients: not that of the run"),
    (CURVES, "stage", "trained", "this curve occurs twice"),
    (CURVES, "correct", [0, 1, 2, 0, 1, 12], "correct: expected 0 to the client's samples"),
    (CURVES, "correct", [0, 1, -2, 0, 1, 2], "correct: expected 0 to the client's samples"),
    (ARTEFACTS, "name", "malicious", "an array occurs twice"),
    (ARTEFACTS, "data", b"\x80\x04K\x01.", "data: expected an NPY array"),
    (ARTEFACTS, "data", npy(np.array([{"a": 1}], object)), "data: expected an NPY array"),
    (ARTEFACTS, "data", npy(np.zeros(2**18, np.float32)), "column data: a value of"),
    (ARTEFACTS, "data", npy(np.zeros(3))[:-1], "data: expected an NPY array"),
]


@pytest.mark.parametrize(("file", "column", "value", "problem"), CELLS)
def test_a_wrong_value(bundle: Path, file: str, column: str, value: Any, problem: str) -> None:
    change_table(bundle, file, set_cell(column, value))
    refused(bundle, file, problem)


def test_results_of_a_run_that_has_none(bundle: Path) -> None:
    for file in (RESULTS, CURVES, ARTEFACTS):
        target = Path(shutil.copytree(bundle, bundle.with_name(file)))
        change_table(target, file, set_cell("run", row_of(bundle, "oom")))
        refused(target, file, "results of a run that is not done")


def with_spec(change: Callable[[dict[str, Any]], Any]) -> Callable[[pa.Table], pa.Table]:
    """A change of the first spec, with its right hash."""
    import hashlib

    def changed(table: pa.Table) -> pa.Table:
        tree = json.loads(table.column("spec")[0].as_py())
        text = change(tree)
        if not isinstance(text, str):
            text = json.dumps(tree, sort_keys=True, separators=(",", ":"))
        table = set_cell("spec", text)(table)
        return set_cell("spec_hash", hashlib.sha256(text.encode()).hexdigest())(table)

    return changed


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda tree: tree.update(color="red"), "spec: color: Extra inputs"),
        (lambda tree: {"dataset": tree.pop("dataset")}, "spec: dataset: Field required"),
        (lambda tree: tree.update(seed=True), "spec: seed: Input should be"),
        (lambda tree: tree["protocol"].update(rounds=0), "spec: protocol.rounds: Input should be"),
        (lambda tree: tree["client"].update(dropout=float("nan")), "spec: "),
        (lambda tree: tree.pop("protocol") and None, "not in its canonical form"),
        (lambda tree: json.dumps(tree), "not in its canonical form"),
        (lambda tree: "cora", "spec: "),
        (lambda tree: "[" * 100_000, "spec: "),
    ],
)
def test_a_wrong_spec(bundle: Path, change: Callable[[dict[str, Any]], Any], problem: str) -> None:
    change_table(bundle, RUNS, with_spec(change))
    refused(bundle, RUNS, problem)


def test_a_spec_twice(bundle: Path) -> None:
    change_table(bundle, RUNS, lambda table: table.take([0, 0, 1]))
    refused(bundle, RUNS, "this spec occurs twice")


@pytest.mark.parametrize("file", [RUNS, RESULTS, CURVES, ARTEFACTS])
def test_a_wrong_table(bundle: Path, file: str) -> None:
    def case(name: str, change: Callable[[pa.Table], pa.Table], problem: str) -> None:
        target = Path(shutil.copytree(bundle, bundle.with_name(name)))
        change_table(target, file, change)
        refused(target, file, problem)

    case("missing", lambda table: table.drop_columns([table.column_names[0]]), "is missing")
    case("more", lambda table: table.append_column("more", table.column(0)), "the column more is not part")
    case(
        "type",
        lambda table: table.set_column(
            0,
            table.column_names[0],
            table.column(0).cast(pa.binary())
            if pa.types.is_string(table.schema.field(0).type)
            else table.column(0).cast(pa.int64()),
        ),
        ": expected ",
    )
    case("null", set_cell_nullable, "a value is missing")


def set_cell_nullable(table: pa.Table) -> pa.Table:
    values = table.column(0).to_pylist()
    values[0] = None
    field = pa.field(table.column_names[0], table.schema.field(0).type, nullable=True)
    return table.set_column(0, field, pa.array(values, field.type))


def test_a_file_that_is_damaged_or_foreign(bundle: Path) -> None:
    path = bundle / RESULTS
    data = path.read_bytes()
    for wrong in (data[:-1], data + b"\0", data[:50] + bytes([data[50] ^ 1]) + data[51:], b""):
        path.write_bytes(wrong)
        refused(bundle, RESULTS, "damaged: its size or SHA-256")
    path.write_text("no table")
    sign(bundle, RESULTS, rows=0)
    refused(bundle, RESULTS, "not readable as Parquet")
    path.write_bytes(data)
    sign(bundle, RESULTS, rows=7)
    refused(bundle, RESULTS, "bundle.json says 7")
    path.unlink()
    refused(bundle, RESULTS, "cannot read it: No such file")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda tree: tree.update(version=2), "version 2, this bench reads 1"),
        (lambda tree: tree.update(format="a list"), "not a bundle of results"),
        (lambda tree: tree.pop("partitions"), "partitions: Field required"),
        (lambda tree: tree.update(more=1), "more: Extra inputs"),
        (lambda tree: tree["files"].pop(CURVES), "files: curves.parquet is missing"),
        (lambda tree: tree["files"].update({"../x": tree["files"][CURVES]}), "is not part of a bundle"),
        (lambda tree: tree["files"][CURVES].update(sha256="x"), f"files.{CURVES}.sha256: "),
        (lambda tree: tree["environments"][0]["description"].update(threads=2), "its hash does not match"),
        (lambda tree: tree["partitions"].append(tree["partitions"][0]), "a partition occurs twice"),
        (lambda tree: tree["partitions"][0].update(clients=0), "partitions.0.clients: "),
    ],
)
def test_a_wrong_table_of_contents(bundle: Path, change: Callable[[Any], Any], problem: str) -> None:
    change_manifest(bundle, change)
    refused(bundle, "bundle.json", problem)


def test_no_json(bundle: Path) -> None:
    for text, problem in (
        ("{", "not valid JSON"),
        ('{"format": NaN}', "NaN is no number of JSON"),
        ("[]", "not a bundle of results"),
        ("[" * 100_000, "nested too deeply"),
        ("\udcff", "not valid JSON"),
    ):
        (bundle / "bundle.json").write_bytes(text.encode("utf-8", "surrogateescape"))
        refused(bundle, "bundle.json", problem)


def test_no_bundle(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(RequestError, match=r"no bundle at .*: expected a folder with bundle\.json"):
            Bundle(folder)
