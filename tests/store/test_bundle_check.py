"""Damaged and forged bundles: each is refused in one line that names the file."""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

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
    return bundle_of(folder / "bundle", runs)


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


WRONG: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (RUNS, {}, {"spec": '{"dataset":"cora"}'}),
    (RUNS, {}, {"spec_hash": "0" * 64}),
    (RUNS, {}, {"method": "fedavg"}),
    (RUNS, {}, {"state": "failed"}),
    (RUNS, {"state": "oom"}, {"state": "done"}),
    (RUNS, {}, {"bytes_up": -1}),
    (RUNS, {}, {"seconds_total": float("nan")}),
    (RUNS, {}, {"environment": "e" * 64}),
    (RUNS, {"state": "done"}, {"partition_hash": "elsewhere"}),
    (RESULTS, {}, {"run": 3}),
    (RESULTS, {}, {"samples": 0, "correct": 0}),
    (RESULTS, {}, {"correct": 99}),
    (RESULTS, {}, {"correct": None}),
    (RESULTS, {}, {"value": 0.5}),  # beside a count
    (CURVES, {}, {"run": 9}),
    (CURVES, {}, {"split": "val"}),
    (CURVES, {}, {"correct": [0, 1, 2, 0, 1, 12]}),  # of 11 samples
    (CURVES, {}, {"correct": [0, 1, -2, 0, 1, 2]}),
    (CURVES, {}, {"correct": [0, 1, 1, 0, 1, 2]}),  # another last row than the rule "last" has read
    (ARTEFACTS, {}, {"run": 9}),
    (CONFUSIONS, {}, {"run": 9}),
    (CURVES, {}, {"stage": "early"}),
    (CURVES, {}, {"rows": 4}),
    (RESULTS, {"run": 0, "split": "test"}, {"metric": "loss"}),
]
NOT_TOGETHER = {"stage", "rows", "metric"}
"""Columns by which tables go together: the manifest is named where they do not."""


def test_a_wrong_value(whole: Path, tmp_path: Path) -> None:
    for number, (file, wanted, values) in enumerate(WRONG):
        folder = Path(shutil.copytree(whole, tmp_path / f"{number}-{'-'.join(values)}"))
        rows = pq.read_table(folder / file).to_pylist()
        row = next(row for row, found in enumerate(rows) if found.items() >= wanted.items())
        for column, value in values.items():
            change_table(folder, file, set_cell(column, value, row))
        refused(folder, MANIFEST if NOT_TOGETHER & values.keys() else file)


@pytest.mark.parametrize(
    ("rule", "counts"),
    [("last", [1, 1]), ("best_val", [2, 1]), ("client_best_val", [5, 2]), ("best_test", [2, 1])],
)
def test_counts_that_a_rule_has_not_read_from_the_curve(bundle: Path, rule: str, counts: list[int]) -> None:
    """The curve of both clients is 0, 1, 2: a rule for all reads a row."""
    results = pq.read_table(bundle / RESULTS).to_pylist()
    assert pq.read_table(bundle / CURVES).column("correct")[0].as_py() == [0, 1, 2, 0, 1, 2]
    where = {"run": 0, "split": "test", "rule": rule, "metric": "accuracy"}
    for row, found in enumerate(results):
        if found.items() >= where.items():
            change_table(bundle, RESULTS, set_cell("correct", counts[found["client"]], row))
    refused(bundle, CURVES, "every rule")


@pytest.mark.parametrize("start", ['{"color":"red",', "{ "])
def test_a_wrong_spec_with_its_right_hash(bundle: Path, start: str) -> None:
    """Of an unknown key, and with a space."""
    text = start + pq.read_table(bundle / RUNS).column("spec")[0].as_py()[1:]
    change_table(bundle, RUNS, set_cell("spec", text))
    change_table(bundle, RUNS, set_cell("spec_hash", hashlib.sha256(text.encode()).hexdigest()))
    refused(bundle, RUNS, "spec: ")


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.drop_columns(["run"]),
        lambda table: table.append_column("more", table.column(0)),
        lambda table: table.set_column(0, "run", pa.nulls(len(table), pa.int32())),
    ],
)
def test_a_wrong_table(bundle: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    change_table(bundle, CURVES, change)
    refused(bundle, CURVES, "columns")


def test_a_file_that_is_damaged_or_foreign(bundle: Path) -> None:
    path = bundle / RESULTS
    data = path.read_bytes()
    for wrong in (data[:-1], data[:50] + bytes([data[50] ^ 1]) + data[51:]):
        path.write_bytes(wrong)
        refused(bundle, RESULTS, "damaged")
    path.write_text("no table")
    sign(bundle, RESULTS, rows=0)
    refused(bundle, RESULTS, "Parquet")
    path.unlink()
    refused(bundle, MANIFEST, RESULTS)


@pytest.mark.parametrize(
    ("change", "about"),
    [
        (lambda tree: tree.update(version=3), "version"),
        (lambda tree: tree.update(format="a list"), "format"),
        (lambda tree: tree.pop("partitions"), "partitions"),
        (lambda tree: tree["files"].pop(CURVES), CURVES),
        (lambda tree: tree["files"].update({"../x": tree["files"][CURVES]}), "../x"),
    ],
)
def test_a_wrong_table_of_contents(bundle: Path, change: Callable[[Any], Any], about: str) -> None:
    change_manifest(bundle, change)
    refused(bundle, MANIFEST, about)


def test_what_is_beside_the_files_of_a_bundle_is_refused(bundle: Path, tmp_path: Path) -> None:
    (bundle / "readme.sh").write_text("echo")
    refused(bundle, MANIFEST, "readme")
    with pytest.raises(RequestError, match=r"no bundle at .*bundle\.json"):
        Bundle(tmp_path / "none")


def test_a_finished_run_has_all_of_its_parts(bundle: Path, tmp_path: Path) -> None:
    for number, result in enumerate(
        (replace(done(), partition_hash=""), RunResult("done", partition_hash="p2"))
    ):
        with pytest.raises(RequestError, match=r"runs\.parquet: row 0"):
            bundle_of(tmp_path / str(number), [(spec_of(), result)])
    change_table(bundle, CURVES, lambda table: table.slice(1))
    refused(bundle, CURVES, "both stages")
