"""Importing bundles: all or nothing, what meets what is stored, and what is refused."""

import hashlib
import json
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from stored_runs import (
    bundle_of,
    change_manifest,
    change_table,
    database,
    done,
    dump,
    save,
    set_cell,
    spec_of,
)

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.selection import RULES
from bench.spec import RunSpec
from bench.store import open_store
from bench.store.bundle import Bundle, write_bundle
from bench.store.bundle_import import Finding, ImportInfo, import_bundle, is_choice_of, mark

RESULTS, CURVES = "client_results.parquet", "curves.parquet"
Pairs = list[tuple[RunSpec, RunResult]]


def take(target: Path, folder: Path) -> ImportInfo:
    return import_bundle(f"sqlite:///{target}", Bundle(folder))


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    runs = [(spec_of(), done()), (spec_of(seed=1), done(shift=1)), (spec_of(seed=2), RunResult("oom"))]
    return bundle_of(tmp_path / "theirs", runs)


# What is written ----------------------------------------------------------------------------------


def test_an_imported_run_says_where_it_is_from(bundle: Path, tmp_path: Path) -> None:
    change_manifest(bundle, lambda tree: tree.update(source="A. Author, <b>Lab</b>, é"))
    url = database(tmp_path / "own.db", [(spec_of(seed=5), done())])
    take(tmp_path / "own.db", bundle)
    with open_store(url, create=True) as store:
        runs = store.runs().set_index("seed")
        assert runs["bundle"].to_dict() == {5: "", 0: "theirs", 1: "theirs", 2: "theirs"}
        assert runs["bundle_state"].to_dict() == dict.fromkeys((0, 1, 2), "unverified") | {5: ""}
        assert set(store.runs(bundle="theirs", state="done")["seed"]) == {0, 1}
        (row,) = store.bundles().to_dict("records")
        assert row["source"] == "A. Author, <b>Lab</b>, é"
        assert row["hash"] == hashlib.sha256((bundle / "bundle.json").read_bytes()).hexdigest()
        assert (row["name"], row["state"], row["sample"]) == ("theirs", "unverified", "{}")
        save(store, spec_of(), done(shift=3))  # run again here: one's own from now on
        assert store.runs(seed=0, dataset="cora")["bundle"].tolist() == [""]


DONE, OOM = done(), RunResult("oom")


@pytest.mark.parametrize(
    ("stored", "offered", "expected"),
    [
        (DONE, DONE, ImportInfo(0, 0, 1)),
        (DONE, done(shift=1), ImportInfo(0, 0, 1)),
        (DONE, OOM, ImportInfo(0, 0, 1)),
        (RunResult("failed"), DONE, ImportInfo(0, 1, 0)),
        (RunResult("no_data"), DONE, ImportInfo(0, 1, 0)),
        (OOM, DONE, ImportInfo(0, 1, 0)),
        (RunResult("diverged"), DONE, ImportInfo(0, 0, 1)),
        (RunResult("not_applicable"), DONE, ImportInfo(0, 0, 1)),
        (RunResult("failed"), OOM, ImportInfo(0, 0, 1)),
        (OOM, OOM, ImportInfo(0, 0, 1)),
    ],
)
def test_a_stored_run_meets_an_imported_one(
    tmp_path: Path, stored: RunResult, offered: RunResult, expected: ImportInfo
) -> None:
    target = tmp_path / "target.db"
    url = database(target, [(spec_of(), stored)])
    theirs = bundle_of(tmp_path / "theirs", [(spec_of(), offered)])
    before = dump(target)
    assert take(target, theirs) == expected
    if not expected.replaced:
        assert dump(target) == before
        return
    with open_store(url, create=False) as store:
        (run,) = store.runs().to_dict("records")
        assert (run["id"], run["state"], run["bundle"]) == (1, "done", "theirs")
        last = store.client_results([1], stage="trained", split="test", rule="last")
        assert last["value"].tolist() == [2 / 10, 2 / 11]  # the third row of counts 0, 1, 2


def test_an_import_that_breaks_off_leaves_nothing(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database(tmp_path / "own.db", [(spec_of(seed=2), RunResult("failed"))])
    before = dump(tmp_path / "own.db")
    calls: list[int] = []

    def full(array: Any) -> bytes:
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return b""

    monkeypatch.setattr("bench.store.store.pack_counts", full)
    with pytest.raises(KeyboardInterrupt):
        take(tmp_path / "own.db", bundle)
    assert dump(tmp_path / "own.db") == before


# What is refused ----------------------------------------------------------------------------------


def refused(folder: Path, about: str) -> None:
    """In one line, and without making a database."""
    target = folder.with_name("untouched.db")
    with pytest.raises(RequestError) as refusal:
        take(target, folder)
    text = str(refusal.value)
    assert about in text
    assert not target.exists()


def where(table: pa.Table, **wanted: Any) -> int:
    columns = {name: table.column(name).to_pylist() for name in wanted}
    return next(
        row for row in range(len(table)) if all(columns[name][row] == wanted[name] for name in wanted)
    )


def test_numbers_that_do_not_agree_among_themselves(tmp_path: Path) -> None:
    """Counts of client 0 are 0, 1, 2 of 10 in run A and 1, 2, 3 in run B; the runs' order is by hash.

    Counts by class, which would be wrong beside any other accuracy, are left out.
    """
    runs = [(spec_of(seed=seed), replace(done(shift=seed), confusion={})) for seed in (0, 1)]
    bundle = bundle_of(tmp_path / "theirs", runs)
    shift = 0 if Bundle(bundle).runs()["seed"][0] == 0 else 1
    files = {path.name: path.read_bytes() for path in bundle.iterdir()}
    reading = {"run": 0, "stage": "trained", "split": "test", "client": 0}
    cases: list[tuple[str, dict[str, Any], str, Any, str]] = [
        (RESULTS, {**reading, "rule": "last"}, "correct", 1 + shift, "rule last"),
        (RESULTS, {**reading, "rule": "best_test"}, "correct", 1 + shift, "rule best_test"),
        (RESULTS, {**reading, "rule": "best_val"}, "correct", 1 + shift, "rule best_val"),
        (RESULTS, {**reading, "rule": "client_best_val"}, "correct", 9, "rule client_best_val"),
        (RESULTS, {**reading, "rule": "last"}, "samples", 9, "samples"),
        (RESULTS, {**reading, "rule": "last"}, "metric", "loss", "7"),
        (CURVES, {"run": 0, "stage": "trained"}, "correct", [0] * 6, "trained"),
    ]
    for file, row, column, value, about in cases:
        for name, data in files.items():
            (bundle / name).write_bytes(data)
        change_table(
            bundle,
            file,
            lambda table, column=column, value=value, row=row: set_cell(column, value, where(table, **row))(
                table
            ),
        )
        refused(bundle, about)


def test_a_finished_run_without_its_parts(bundle: Path, tmp_path: Path) -> None:
    nowhere = replace(done(), partition_hash="")
    refused(bundle_of(tmp_path / "nowhere", [(spec_of(), nowhere)]), "partition_hash")
    empty = RunResult("done", partition_hash="p2")
    refused(bundle_of(tmp_path / "empty", [(spec_of(), empty)]), "test split")
    change_table(bundle, CURVES, lambda table: table.slice(1))
    refused(bundle, "curve")


def test_an_accuracy_that_is_no_count(tmp_path: Path) -> None:
    url = database(tmp_path / "a.db", [(spec_of(), done())])
    with sqlite3.connect(tmp_path / "a.db") as raw:
        raw.execute("UPDATE client_results SET value = 0.123 WHERE client = 1 AND split = 'val'")
    raw.close()
    with open_store(url, create=False) as store:
        write_bundle(store, store.runs(), tmp_path / "out")
    refused(tmp_path / "out", "count")


def test_every_rule_has_its_test() -> None:
    curve = np.array([[1, 5], [3, 4], [2, 6]], np.int32)
    cases = {
        "last": ([2, 6], [1, 5]),
        "best_val": ([3, 4], [3, 5]),
        "best_test": ([2, 6], [3, 4]),  # 8 of 20 is the most
        "client_best_val": ([3, 5], [4, 5]),
    }
    assert cases.keys() == RULES.keys()
    for rule, counts in cases.items():
        choices = [
            is_choice_of(rule, curve, np.array(correct), np.array([10, 10], np.int32)) for correct in counts
        ]
        assert choices == [True, False]


# Trust --------------------------------------------------------------------------------------------


def test_a_contradiction_is_not_outweighed_by_other_runs(bundle: Path, tmp_path: Path) -> None:
    take(tmp_path / "new.db", bundle)
    digest = Bundle(bundle).hash
    with open_store(f"sqlite:///{tmp_path / 'new.db'}", create=True) as store:
        assert mark(store, "0" * 64, {"a": "equal"}) is None
        assert store.runs()["bundle_checked"].isna().all()
        before = datetime.now(UTC).replace(tzinfo=None)
        assert mark(store, digest, {"a": "equal", "b": "close"}) == "verified"
        (checked,) = set(store.runs()["bundle_checked"])
        assert before <= checked <= datetime.now(UTC).replace(tzinfo=None)
        assert mark(store, digest, {"c": "differs"}) == "contradicted"
        assert mark(store, digest, {"d": "equal"}) == "contradicted"
        assert set(store.runs()["bundle_state"]) == {"contradicted"}
        assert mark(store, digest, {"c": "equal"}) == "verified"  # the same run, made again
        assert not store.runs()["bundle_sampled"].any()
        runs = store.runs()["spec_hash"]
        mark(store, digest, {runs[0]: "equal"})
        assert store.runs().set_index("spec_hash")["bundle_sampled"].to_dict() == {
            run: run == runs[0] for run in runs
        }
        mark(store, digest, {runs[0]: "differs"})
        assert store.runs()["bundle_sampled"].sum() == 1
        kept = json.loads(store.bundles()["sample"][0])
        del kept[runs[0]]
        assert kept == {**dict.fromkeys("acd", "equal"), "b": "close"}


def test_a_run_that_came_close_says_so(bundle: Path, tmp_path: Path) -> None:
    take(tmp_path / "new.db", bundle)
    with open_store(f"sqlite:///{tmp_path / 'new.db'}", create=True) as store:
        assert not store.runs()["bundle_close"].any()
        first, second, third = store.runs()["spec_hash"]
        findings: dict[str, Finding] = {first: "close", second: "equal"}
        assert mark(store, Bundle(bundle).hash, findings) == "verified"
        runs = store.runs().set_index("spec_hash")
        assert runs["bundle_close"].to_dict() == {first: True, second: False, third: False}
        assert runs["bundle_sampled"].to_dict() == {first: True, second: True, third: False}
        mark(store, Bundle(bundle).hash, {first: "equal"})
        assert not store.runs()["bundle_close"].any()
