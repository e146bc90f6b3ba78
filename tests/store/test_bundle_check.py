"""Damaged and forged bundles: each is refused in one line that names the file."""

import hashlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stored_runs import bundle_of, change_manifest, change_table, done, set_cell, sign, spec_of

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.store.bundle import Bundle

MANIFEST = "bundle.json"
RUNS, RESULTS, CURVES, ARTEFACTS, CONFUSIONS = (
    f"{name}.parquet" for name in ("runs", "client_results", "curves", "artefacts", "confusions")
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    runs = [(spec_of(), done()), (spec_of(seed=1), done(shift=1)), (spec_of(seed=2), RunResult("oom"))]
    bundle_of(folder / "bundle", runs)
    return folder / "bundle"


@pytest.fixture
def bundle(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "bundle"))


def refused(folder: Path, file: str, about: str = "") -> None:
    """In words that name the file and what it is about."""
    with pytest.raises(RequestError) as refusal:
        Bundle(folder)
    text = str(refusal.value)
    assert text.startswith(f"bundle {folder}: {file}: "), text
    assert about in text


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


CELLS: list[tuple[str, str, Any]] = [
    (RUNS, "spec", '{"dataset":"cora"}'),
    (RUNS, "spec_hash", "0" * 64),
    (RUNS, "method", "fedavg"),
    (RUNS, "seed", 77),
    (RUNS, "clients", 5),
    (RUNS, "rounds", 4),
    (RUNS, "state", "failed"),
    (RUNS, "bytes_up", -1),
    (RUNS, "seconds_total", float("nan")),
    (RUNS, "seconds_total", -0.5),
    (RUNS, "environment", "e" * 64),
    (RUNS, "partition_hash", "elsewhere"),
    (RESULTS, "run", 3),
    (RESULTS, "run", -1),
    (RESULTS, "client", 2),
    (RESULTS, "client", -1),
    (RESULTS, "client", 1),  # a second time
    (RESULTS, "samples", 0),
    (RESULTS, "correct", 99),
    (RESULTS, "correct", -1),
    (RESULTS, "correct", None),
    (RESULTS, "value", 0.5),  # beside a count
    (CURVES, "run", 9),
    (CURVES, "split", "val"),
    (CURVES, "rows", 0),
    (CURVES, "rows", 4),
    (CURVES, "clients", 3),
    (CURVES, "stage", "trained"),  # a second time
    (CURVES, "correct", [0, 1, 2, 0, 1, 12]),  # of 11 samples
    (CURVES, "correct", [0, 1, -2, 0, 1, 2]),
    (CURVES, "correct", []),
    (ARTEFACTS, "name", "malicious"),  # a second time
    (ARTEFACTS, "data", b"\x80\x04K\x01."),
    (ARTEFACTS, "data", npy(np.array([{"a": 1}], object))),
    (ARTEFACTS, "data", npy(np.zeros(3))[:-1]),
    (CONFUSIONS, "run", 9),
    (CONFUSIONS, "stage", "trained"),  # a second time
    (CONFUSIONS, "rule", "luck"),
    (CONFUSIONS, "clients", 3),
    (CONFUSIONS, "classes", 0),
    (CONFUSIONS, "counts", []),
    (CONFUSIONS, "counts", [2, 8, 0, 0, 1, 10, 0, 0]),  # of client 1 are 2 right
    (CONFUSIONS, "counts", [2, 8, 0, 0, 2, 8, 0, 0]),  # of client 1 are 11 tested
    (CONFUSIONS, "counts", [2, 9, -1, 0, 2, 9, 0, 0]),
]


def test_a_wrong_value(whole: Path, tmp_path: Path) -> None:
    for number, (file, column, value) in enumerate(CELLS):
        folder = Path(shutil.copytree(whole, tmp_path / f"{number}-{column}"))
        change_table(folder, file, set_cell(column, value))
        refused(folder, file)


def test_a_wrong_value_that_needs_another_beside_it(whole: Path, tmp_path: Path) -> None:
    without = list(Bundle(whole).runs()["state"]).index("oom")
    cases: list[tuple[str, str, list[Callable[[pa.Table], pa.Table]]]] = [
        (RUNS, "state", [set_cell("state", "no_data", without)]),
        *((file, "run", [set_cell("run", without)]) for file in (RESULTS, CURVES, ARTEFACTS, CONFUSIONS)),
        (RUNS, "spec_hash", [lambda table: table.take([0, 1, 2, 0])]),
        (RESULTS, "samples", [set_cell("correct", 0), set_cell("samples", 0)]),
        (RESULTS, "value", [set_cell("correct", None), set_cell("value", 1.01)]),
        (RESULTS, "value", [set_cell("correct", None), set_cell("value", -0.01)]),
        (RESULTS, "value", [set_cell("correct", None), set_cell("value", float("nan"))]),
    ]
    for number, (file, column, changes) in enumerate(cases):
        folder = Path(shutil.copytree(whole, tmp_path / str(number)))
        for change in changes:
            change_table(folder, file, change)
        refused(folder, file, column)


def test_an_array_without_items_and_html_pass(bundle: Path) -> None:
    change_table(bundle, ARTEFACTS, set_cell("data", npy(np.zeros(0))))
    change_table(bundle, RUNS, set_cell("reason", '<b onload="x">é</b>\nsecond line'))
    assert '<b onload="x">é</b>\nsecond line' in set(Bundle(bundle).runs()["reason"])


def with_spec(change: Callable[[dict[str, Any]], Any]) -> Callable[[pa.Table], pa.Table]:
    """A change of the first spec, with its right hash."""

    def changed(table: pa.Table) -> pa.Table:
        tree = json.loads(table.column("spec")[0].as_py())
        text = change(tree)
        if not isinstance(text, str):
            text = json.dumps(tree, sort_keys=True, separators=(",", ":"))
        table = set_cell("spec", text)(table)
        return set_cell("spec_hash", hashlib.sha256(text.encode()).hexdigest())(table)

    return changed


@pytest.mark.parametrize(
    ("change", "about"),
    [
        (lambda tree: tree.update(color="red"), "color"),
        (lambda tree: {"dataset": tree.pop("dataset")}, "dataset"),
        (lambda tree: tree.update(seed=True), "seed"),
        (lambda tree: tree["protocol"].update(rounds=0), "protocol.rounds"),
        (lambda tree: tree["client"].update(dropout=float("nan")), "spec"),
        (lambda tree: json.dumps(tree), "spec"),  # with spaces
    ],
)
def test_a_wrong_spec(bundle: Path, change: Callable[[dict[str, Any]], Any], about: str) -> None:
    change_table(bundle, RUNS, with_spec(change))
    refused(bundle, RUNS, about)


@pytest.mark.parametrize("file", [RUNS, RESULTS, CURVES, ARTEFACTS, CONFUSIONS])
def test_a_wrong_table(bundle: Path, file: str) -> None:
    def other_type(table: pa.Table) -> pa.Table:
        name, column = table.column_names[0], table.column(0)
        kind = pa.binary() if pa.types.is_string(column.type) else pa.int64()
        return table.set_column(0, name, column.cast(kind))

    def missing_value(table: pa.Table) -> pa.Table:
        name, column = table.column_names[0], table.column(0)
        return table.set_column(0, name, pa.array([None, *column.to_pylist()[1:]], column.type))

    first = pq.read_schema(bundle / file).names[0]
    cases: list[tuple[str, Callable[[pa.Table], pa.Table]]] = [
        (first, lambda table: table.drop_columns([first])),
        ("more", lambda table: table.append_column("more", table.column(0))),
        (first, lambda table: table.append_column(first, table.column(0))),
        (first, other_type),
        (first, missing_value),
    ]
    for number, (about, change) in enumerate(cases):
        folder = Path(shutil.copytree(bundle, bundle.with_name(str(number))))
        change_table(folder, file, change)
        refused(folder, file, about)


def test_a_file_that_is_damaged_or_foreign(bundle: Path) -> None:
    path = bundle / RESULTS
    data = path.read_bytes()
    for wrong in (data[:-1], data[:50] + bytes([data[50] ^ 1]) + data[51:]):
        path.write_bytes(wrong)
        refused(bundle, RESULTS, "damaged")
    path.write_text("no table")
    sign(bundle, RESULTS, rows=0)
    refused(bundle, RESULTS, "Parquet")
    path.write_bytes(data)
    sign(bundle, RESULTS, rows=7)
    refused(bundle, RESULTS, "7")
    path.unlink()
    refused(bundle, RESULTS, "No such file")


def test_what_is_no_regular_file(bundle: Path, tmp_path: Path) -> None:
    path = bundle / CURVES
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    refused(bundle, CURVES, "link")
    path.unlink()
    (tmp_path / "elsewhere").rename(path)
    Bundle(bundle)
    (bundle / "readme.sh").write_text("echo")
    refused(bundle, MANIFEST, "readme")


@pytest.mark.parametrize(
    ("change", "about"),
    [
        (lambda tree: tree.update(version=3), "version"),
        (lambda tree: tree.update(format="a list"), "format"),
        (lambda tree: tree.pop("partitions"), "partitions"),
        (lambda tree: tree.update(more=1), "more"),
        (lambda tree: tree["files"].pop(CURVES), "expected"),
        (lambda tree: tree["files"].update({"../x": tree["files"][CURVES]}), "../x"),
        (lambda tree: tree["partitions"][0].update(clients="2"), "partitions.0.clients"),
    ],
)
def test_a_wrong_table_of_contents(bundle: Path, change: Callable[[Any], Any], about: str) -> None:
    change_manifest(bundle, change)
    refused(bundle, MANIFEST, about)


@pytest.mark.parametrize(
    ("change", "file"),
    [
        (lambda tree: tree["files"][CURVES].update(sha256="x"), CURVES),
        (lambda tree: tree["files"][RUNS].update(bytes=2**40), RUNS),
        (lambda tree: tree["environments"][0]["description"].update(threads=2), RUNS),
    ],
)
def test_a_table_that_is_not_what_its_contents_say(
    bundle: Path, change: Callable[[Any], Any], file: str
) -> None:
    change_manifest(bundle, change)
    refused(bundle, file)


def test_no_json(bundle: Path) -> None:
    path = bundle / MANIFEST
    kept = path.read_text()
    for text in (
        "{",
        '{"format": NaN}',
        kept.replace('"threads": 1', '"threads": 1e999'),
    ):
        assert text != kept
        path.write_text(text)
        refused(bundle, MANIFEST)


def test_no_bundle(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(RequestError, match=r"no bundle at .*bundle\.json"):
            Bundle(folder)
