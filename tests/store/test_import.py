"""Importing bundles: all or nothing, what meets what is stored, and what is refused."""

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bundle_makers import (
    change_manifest,
    change_table,
    context_of,
    database,
    done,
    opened,
    set_cell,
    sign,
    spec_of,
)

from bench.cli.main import main
from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.report import shipped
from bench.selection import RULES
from bench.spec import RunSpec
from bench.store import bundle_import, bundle_parquet, connect, migrate, open_store
from bench.store.bundle import Bundle, read_bundles
from bench.store.bundle_consistent import FITS
from bench.store.bundle_import import Imported, import_bundle
from bench.store.bundle_write import write_bundle

RUNS, RESULTS, CURVES, ARTEFACTS = (
    f"{name}.parquet" for name in ("runs", "client_results", "curves", "artefacts")
)
Pairs = list[tuple[RunSpec, RunResult]]


def bundle_of(folder: Path, runs: Pairs) -> Path:
    with opened(folder.with_suffix(".db"), runs) as store:
        write_bundle(store, store.runs(), folder)
    return folder


def dump(path: Path) -> list[str]:
    with sqlite3.connect(path) as raw:
        lines = list(raw.iterdump())
    raw.close()
    return lines


def take(target: Path, folder: Path) -> Imported:
    return import_bundle(f"sqlite:///{target}", Bundle(folder))


def bench(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    runs = [(spec_of(), done()), (spec_of(seed=1), done(shift=1)), (spec_of(seed=2), RunResult("oom"))]
    return bundle_of(tmp_path / "theirs", runs)


# What is written ----------------------------------------------------------------------------------


def test_what_was_imported_is_exported_in_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    assert take(tmp_path / "new.db", bundle) == Imported(3, 0, 0, ())
    assert migrate.check(f"sqlite:///{tmp_path / 'new.db'}") == migrate.HEAD
    with open_store(f"sqlite:///{tmp_path / 'new.db'}", create=False) as store:
        write_bundle(store, store.runs(), tmp_path / "again")
    for path in bundle.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    before = dump(tmp_path / "new.db")
    assert take(tmp_path / "new.db", bundle) == Imported(0, 0, 3, ())
    assert dump(tmp_path / "new.db") == before


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
        store.save(spec_of(), done(shift=3), context_of())  # run again here: one's own from now on
        assert store.runs(seed=0, dataset="cora")["bundle"].tolist() == [""]


def test_numerics_versions_stay(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'theirs.db'}"
    with open_store(url, create=True) as store:
        store.save(spec_of(), done(), replace(context_of(), method_numerics=7, engine_numerics=8))
        write_bundle(store, store.runs(), tmp_path / "theirs")
    take(tmp_path / "new.db", tmp_path / "theirs")
    with open_store(f"sqlite:///{tmp_path / 'new.db'}", create=False) as store:
        (stored,) = store.states().values()
    assert (stored.state, stored.method_numerics, stored.engine_numerics) == ("done", 7, 8)


def test_a_sweep_goes_on_from_an_imported_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.resolve import resolve
    from bench.sweep import fingerprint

    code = fingerprint.code("local")
    with open_store(f"sqlite:///{tmp_path / 'a.db'}", create=True) as store:
        for seed, older in ((0, 0), (1, 0), (2, 1)):
            context = replace(
                context_of(),
                method_numerics=code.method_numerics,
                engine_numerics=code.engine_numerics - older,
            )
            store.save(resolve("cora", "non-overlapping", 3, "local", seed), done(clients=3), context)
        write_bundle(store, store.runs(), tmp_path / "theirs")
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    assert bench(capsys, "import", str(tmp_path / "theirs"))[0] == 0
    seeds = [word for seed in range(4) for word in ("--seed", str(seed))]
    asked = ("sweep", "-d", "cora", "-s", "non-overlapping", "-k", "3", "-m", "local", *seeds)
    _, text, _ = bench(capsys, *asked, "--dry-run", "--json")
    assert json.loads(text)["counts"] == {"done": 2, "stale": 1, "missing": 1}


RULES_TABLE: list[tuple[str, RunResult, RunResult, tuple[int, int, int], int]] = [
    ("equal", done(), done(), (0, 0, 1), 0),
    ("equal but for time", done(), replace(done(), seconds={"total": 9.0}, bytes_up=1), (0, 0, 1), 0),
    ("another number", done(), done(shift=1), (0, 0, 0), 1),
    ("another partition", done(), replace(done(), partition_hash="q"), (0, 0, 0), 1),
    ("failed", RunResult("failed"), done(), (0, 1, 0), 0),
    ("no data", RunResult("no_data"), done(), (0, 1, 0), 0),
    ("oom", RunResult("oom"), done(), (0, 1, 0), 0),
    ("diverged", RunResult("diverged"), done(), (0, 0, 0), 1),
    ("not applicable", RunResult("not_applicable"), done(), (0, 0, 0), 1),
    ("failed here, oom there", RunResult("failed"), RunResult("oom"), (0, 0, 0), 1),
    ("done here, oom there", done(), RunResult("oom"), (0, 0, 0), 1),
    ("oom twice", RunResult("oom", reason="8 GB"), RunResult("oom", reason="16 GB"), (0, 0, 1), 0),
]


@pytest.mark.parametrize("own", [True, False], ids=["own", "imported"])
@pytest.mark.parametrize(("name", "stored", "offered", "counts", "conflicts"), RULES_TABLE)
def test_a_stored_run_meets_an_imported_one(
    tmp_path: Path,
    name: str,
    stored: RunResult,
    offered: RunResult,
    counts: tuple[int, int, int],
    conflicts: int,
    own: bool,
) -> None:
    target = tmp_path / "target.db"
    database(target if own else tmp_path / "other.db", [(spec_of(), stored)])
    if not own:
        if stored.state in ("failed", "no_data"):
            pytest.skip("no bundle holds such a run")
        take(target, bundle_of(tmp_path / "first", [(spec_of(), stored)]))
    before = dump(target)
    found = take(target, bundle_of(tmp_path / "second", [(spec_of(), offered)]))
    assert (found.added, found.replaced, found.equal, len(found.conflicts)) == (*counts, conflicts)
    if found.replaced:
        with open_store(f"sqlite:///{target}", create=False) as store:
            (run,) = store.runs().to_dict("records")
            assert (run["id"], run["state"], run["bundle"]) == (1, "done", "second")
            last = store.client_results([1], stage="trained", split="test", rule="last")
            assert last["value"].tolist() == [2 / 10, 2 / 11]  # the third row of counts 0, 1, 2
    else:
        assert dump(target) == before
    if conflicts:
        assert found.conflicts[0].startswith("local on cora, non-overlapping, 2 clients, seed 0")
        assert ("our own" if own else "that of bundle first") in found.conflicts[0]


def test_a_conflict_does_not_keep_the_rest_out(bundle: Path, tmp_path: Path) -> None:
    database(tmp_path / "own.db", [(spec_of(seed=1), done(shift=5)), (spec_of(seed=2), done())])
    found = take(tmp_path / "own.db", bundle)
    assert (found.added, found.replaced, found.equal, len(found.conflicts)) == (1, 0, 0, 2)


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

    monkeypatch.setattr(bundle_import, "pack_array", full)
    with pytest.raises(KeyboardInterrupt):
        take(tmp_path / "own.db", bundle)
    assert dump(tmp_path / "own.db") == before


# What is refused ----------------------------------------------------------------------------------


def refused(folder: Path, problem: str) -> None:
    """In one line that says so, and without making a database."""
    target = folder.with_name("untouched.db")
    with pytest.raises(RequestError) as refusal:
        take(target, folder)
    text = str(refusal.value)
    assert problem in text
    assert text.isprintable()
    assert len(text) < 600
    assert not target.exists()


def test_a_partition_of_other_clients(bundle: Path, tmp_path: Path) -> None:
    theirs = replace(done(clients=4), partition_hash="p2")
    database(tmp_path / "own.db", [(spec_of(clients=4, seed=9), theirs)])
    before = dump(tmp_path / "own.db")
    with pytest.raises(RequestError, match="partition p2 has another clients than in sqlite"):
        take(tmp_path / "own.db", bundle)
    assert dump(tmp_path / "own.db") == before


def where(table: pa.Table, **wanted: Any) -> int:
    columns = {name: table.column(name).to_pylist() for name in wanted}
    return next(
        row for row in range(len(table)) if all(columns[name][row] == wanted[name] for name in wanted)
    )


def test_numbers_that_do_not_agree_among_themselves(bundle: Path) -> None:
    """Counts of client 0 are 0, 1, 2 of 10 in run A and 1, 2, 3 in run B; the runs' order is by hash."""
    shift = 0 if Bundle(bundle).runs()["seed"][0] == 0 else 1
    files = {path.name: path.read_bytes() for path in bundle.iterdir()}
    reading = {"run": 0, "stage": "trained", "split": "test", "client": 0}
    cases: list[tuple[str, dict[str, Any], str, Any, str]] = [
        (RESULTS, {**reading, "rule": "last"}, "correct", 1 + shift, "of rule last are not from"),
        (RESULTS, {**reading, "rule": "best_test"}, "correct", 1 + shift, "of rule best_test are not from"),
        (RESULTS, {**reading, "rule": "best_val"}, "correct", 1 + shift, "of rule best_val are not from"),
        (RESULTS, {**reading, "rule": "client_best_val"}, "correct", 9, "of rule client_best_val are not"),
        (RESULTS, {**reading, "rule": "last"}, "samples", 9, "client 0, test: samples differ, 9 and 10"),
        (RESULTS, {**reading, "rule": "last"}, "metric", "loss", "expected every stage and rule, got 7"),
        (CURVES, {"run": 0, "stage": "trained"}, "correct", [0] * 6, "trained: the results of rule"),
    ]
    for file, row, column, value, problem in cases:
        for name, data in files.items():
            (bundle / name).write_bytes(data)
        change_table(
            bundle,
            file,
            lambda table, column=column, value=value, row=row: set_cell(column, value, where(table, **row))(
                table
            ),
        )
        refused(bundle, problem)


def test_a_finished_run_without_its_parts(bundle: Path, tmp_path: Path) -> None:
    nowhere = replace(done(), partition_hash="")
    refused(bundle_of(tmp_path / "nowhere", [(spec_of(), nowhere)]), "a finished run needs a partition_hash")
    empty = RunResult("done", partition_hash="p2")
    refused(bundle_of(tmp_path / "empty", [(spec_of(), empty)]), "needs accuracy on the test split")
    change_table(bundle, CURVES, lambda table: table.slice(1))
    refused(bundle, "a finished run needs the curve of the test split")


def test_an_accuracy_that_is_no_count(tmp_path: Path) -> None:
    url = database(tmp_path / "a.db", [(spec_of(), done())])
    with sqlite3.connect(tmp_path / "a.db") as raw:
        raw.execute("UPDATE client_results SET value = 0.123 WHERE client = 1 AND split = 'val'")
    raw.close()
    with open_store(url, create=False) as store:
        write_bundle(store, store.runs(), tmp_path / "out")
    refused(tmp_path / "out", "accuracy without a count of correct predictions")


def test_every_rule_has_its_test() -> None:
    assert FITS.keys() == RULES.keys()
    curve = np.array([[1, 5], [3, 4], [2, 6]], np.int32)
    samples = np.array([10, 10])
    cases = {
        "last": ([2, 6], [1, 5]),
        "best_val": ([3, 4], [3, 5]),
        "best_test": ([2, 6], [3, 4]),  # 8 of 20 is the most
        "client_best_val": ([3, 5], [4, 5]),
    }
    for rule, (right, wrong) in cases.items():
        assert FITS[rule](curve, np.array(right), samples)
        assert not FITS[rule](curve, np.array(wrong), samples)


@pytest.mark.parametrize(
    ("file", "column", "value", "problem"),
    [
        (RUNS, "device", "\x1b[31mcpu", "column device: a control character in '\\x1b[31mcpu'"),
        (RUNS, "device", "a\nb", "column device: a control character"),
        (RUNS, "code_version", "\u202e1.0", "column code_version: a control character"),
        (RUNS, "reason", "a\x00b", "column reason: a control character"),
        (RUNS, "reason", "x" * 65_537, "column reason: a value of 65,537 bytes, expected 65,536 at most"),
        (RUNS, "started", datetime(9999, 1, 1), "started: expected a time of this century"),
        (RUNS, "started", datetime(1970, 1, 1), "started: expected a time of this century"),
        (ARTEFACTS, "name", "a\rb", "column name: a control character"),
        (ARTEFACTS, "data", bytes(2**20 + 1), "column data: a value of 1,048,577 bytes"),
    ],
)
def test_texts_and_times(bundle: Path, file: str, column: str, value: Any, problem: str) -> None:
    change_table(bundle, file, set_cell(column, value))
    refused(bundle, problem)


def test_html_is_kept_as_it_is(bundle: Path, tmp_path: Path) -> None:
    text = '<script>alert("é")</script>\nsecond line'
    change_table(bundle, RUNS, set_cell("reason", text))
    take(tmp_path / "new.db", bundle)
    with open_store(f"sqlite:///{tmp_path / 'new.db'}", create=False) as store:
        assert text in set(store.runs()["reason"])


def test_the_name_of_the_folder(bundle: Path, tmp_path: Path) -> None:
    renamed = bundle.rename(tmp_path / "a\x1b[31m\nb")
    with pytest.raises(RequestError, match="a control character in its name: rename the folder"):
        take(tmp_path / "untouched.db", renamed)
    assert not (tmp_path / "untouched.db").exists()
    take(tmp_path / "new.db", renamed.rename(tmp_path / "<b>é</b>".replace("/", "")))
    with open_store(f"sqlite:///{tmp_path / 'new.db'}", create=False) as store:
        assert set(store.runs()["bundle"]) == {"<b>é<b>"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda tree: tree["partitions"][0].update(scenario="a\x00b"), "a text holds a control character"),
        (lambda tree: tree["partitions"][0]["provenance"].update({"\ud800": 1}), "control character"),
        (lambda tree: tree.update(source="x" * 1001), "source: String should have at most 1000"),
        (lambda tree: tree["partitions"][0].update(clients=2**40), "partitions.0.clients: "),
        (lambda tree: tree["files"][RUNS].update(bytes=2**40), "too large: expected at most 268,435,456"),
        (lambda tree: tree["files"][RUNS].update(rows=100_001), "too many rows: expected at most 100,000"),
        (lambda tree: tree["files"].update({"a\n" * 999: tree["files"][RUNS]}), "a control character"),
        (lambda tree: tree["files"].update({"../x": tree["files"][RUNS]}), "is not part of a bundle"),
    ],
)
def test_tables_of_contents(bundle: Path, change: Callable[[Any], Any], problem: str) -> None:
    change_manifest(bundle, change)
    refused(bundle, problem)


def test_contents_that_json_cannot_or_should_not_hold(bundle: Path) -> None:
    path = bundle / "bundle.json"
    kept = path.read_text()
    for text, problem in (
        (kept.replace('"threads": 1', '"threads": 1e999'), "1e999 is too large a number"),
        (kept.replace('"threads": 1', f'"threads": {"9" * 5000}'), "not valid JSON"),
        (kept.replace('"threads": 1', f'"threads": {"[" * 40}{"]" * 40}'), "nested too deeply"),
        (kept + " " * 4 * 2**20, "too large: expected at most 4,194,304 bytes"),
    ):
        assert text != kept
        path.write_text(text)
        refused(bundle, problem)


def test_a_number_of_too_many_digits_in_a_spec(bundle: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        text = table.column("spec")[0].as_py().replace('"hyper":{}', f'"hyper":{{"mu":{"9" * 5000}}}')
        table = set_cell("spec", text)(table)
        return set_cell("spec_hash", hashlib.sha256(text.encode()).hexdigest())(table)

    change_table(bundle, RUNS, change)
    refused(bundle, "row 0: spec: ")


def test_what_is_no_regular_file(bundle: Path, tmp_path: Path) -> None:
    path = bundle / CURVES
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    refused(bundle, f"{CURVES}: expected a regular file, no link or folder")
    path.unlink()
    os.mkfifo(path)
    refused(bundle, f"{CURVES}: expected a regular file, no link or folder")
    path.unlink()
    path.mkdir()
    refused(bundle, f"{CURVES}: expected a regular file, no link or folder")
    path.rmdir()
    (tmp_path / "elsewhere").rename(path)
    take(tmp_path / "whole.db", bundle)
    (bundle / "readme\n.sh").write_text("echo")
    refused(bundle, "'readme\\n.sh' is not part of a bundle: take it out")


def test_thousands_of_columns(bundle: Path) -> None:
    table = pq.read_table(bundle / RUNS)
    more = {f"column\n{number}": table.column(0) for number in range(3000)}
    change_table(
        bundle, RUNS, lambda table: pa.table({**dict(zip(table.column_names, table, strict=True)), **more})
    )
    refused(bundle, "and 2999 more is not part of the format")


def test_small_files_that_unpack_to_much(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of 60,000 bytes twenty thousand times is a file of a few kilobytes and over 1 GB in memory."""
    names = [f"a{number}" for number in range(20_000)]
    data = pq.read_table(bundle / ARTEFACTS).column("data")[0].as_py()
    arrays = {"run": pa.array([0] * 20_000, pa.int32()), "name": pa.array(names)}
    fields = pq.read_schema(bundle / ARTEFACTS)
    long = pa.DictionaryArray.from_arrays(np.zeros(20_000, np.int32), pa.array([b"x" * 60_000]))
    required = pa.schema([*list(fields)[:2], pa.field("data", long.type, nullable=False)])
    table = pa.table({**arrays, "data": long}, schema=required)
    pq.write_table(table, bundle / ARTEFACTS, store_schema=False, compression="zstd")
    assert (bundle / ARTEFACTS).stat().st_size < 200_000
    sign(bundle, ARTEFACTS)
    refused(bundle, f"{ARTEFACTS}: too large: more than 1,073,741,824 bytes unpacked")
    monkeypatch.setattr(bundle_parquet, "TABLE_BYTES", 100_000)
    small = pa.table({**arrays, "data": pa.array([data] * 20_000)})
    pq.write_table(small.cast(fields), bundle / ARTEFACTS, store_schema=False, use_dictionary=False)
    sign(bundle, ARTEFACTS)
    refused(bundle, "bytes unpacked, expected 100,000 at most")


def test_a_short_file_with_a_long_list(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = set_cell("correct", [0] * 100_000)
    pq.write_table(zeros(pq.read_table(bundle / CURVES)), bundle / CURVES, store_schema=False)
    sign(bundle, CURVES)
    assert (bundle / CURVES).stat().st_size < 10_000
    refused(bundle, "correct: expected rows x clients counts")
    monkeypatch.setattr(bundle_parquet, "TABLE_BYTES", 300_000)
    refused(bundle, "values, expected 75,000 at most")


def test_a_file_is_read_no_further_than_stated(bundle: Path) -> None:
    with (bundle / CURVES).open("r+b") as file:
        file.truncate(2**40)  # a terabyte of nothing
    refused(bundle, "damaged: its size or SHA-256")


# The command --------------------------------------------------------------------------------------


def test_the_command(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = database(
        tmp_path / "own.db", [(spec_of(seed=1), done(shift=4)), (spec_of(seed=2), RunResult("oom"))]
    )
    code, text, error = bench(capsys, "import", str(bundle), "--db", url)
    lines = text.splitlines()
    assert (code, error, len(lines)) == (0, "", 2)
    assert lines[0].startswith("conflict: local on cora, non-overlapping, 2 clients, seed 1 (")
    assert lines[1] == (
        "theirs: 1 runs added, 0 in place of failed ones, 1 equal to stored ones, "
        "1 in conflict with stored ones, which stay"
    )
    _, text, _ = bench(capsys, "import", str(bundle), "--db", url, "--json")
    told = json.loads(text)
    assert (told["added"], told["equal"], len(told["conflicts"])) == (0, 2, 1)
    (bundle / RUNS).write_bytes(b"")
    before = dump(tmp_path / "own.db")
    code, text, error = bench(capsys, "import", str(bundle), "--db", url)
    assert (code, text, error.count("\n")) == (2, "", 1)
    assert dump(tmp_path / "own.db") == before


def test_a_damaged_shipped_bundle_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("first", "second"):
        bundle_of(tmp_path / "measured" / name, [(spec_of(), done())])
    (tmp_path / "measured" / "first" / CURVES).write_bytes(b"")
    monkeypatch.setattr(shipped, "shipped_bundles", lambda: read_bundles(tmp_path / "measured"))
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    with shipped.opened(None, own=False) as source:
        assert source.runs()["origin"].tolist() == ["second"]
    warning = capsys.readouterr().err
    assert warning.startswith("bench: warning: left out: bundle ")
    assert f"first: {CURVES}: damaged" in warning
    assert warning.count("\n") == 1


# The schema ---------------------------------------------------------------------------------------


def test_a_filled_database_of_the_first_schema_is_upgraded(tmp_path: Path) -> None:
    from alembic import command

    path = tmp_path / "old.db"
    engine = connect.database(f"sqlite:///{path}").engine(write=True)
    config = migrate._config()
    with connect.writing(engine).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    engine.dispose()
    url = database(tmp_path / "new.db", [(spec_of(), done()), (spec_of(seed=1), RunResult("oom"))])
    with sqlite3.connect(path) as raw:  # the same rows as a new database, less what it has gained
        raw.execute("ATTACH ? AS new", [str(tmp_path / "new.db")])
        for table in ("environments", "partitions", "runs", "client_results", "curves", "artefacts"):
            names = ",".join(row[1] for row in raw.execute(f"PRAGMA main.table_info({table})"))
            raw.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM new.{table}")
    raw.close()
    with pytest.raises(
        RequestError, match=f"older schema 0001, expected {migrate.HEAD}: run 'bench db upgrade'"
    ):
        open_store(f"sqlite:///{path}", create=False)
    assert migrate.upgrade(f"sqlite:///{path}") == ("0001", migrate.HEAD)
    assert migrate.check(f"sqlite:///{path}") == migrate.HEAD
    with open_store(f"sqlite:///{path}", create=False) as old, open_store(url, create=False) as new:
        assert old.runs().equals(new.runs())
        assert old.runs()["cell"].tolist() == [spec_of().cell] * 2  # two seeds of one
        assert old.client_results([1]).equals(new.client_results([1]))
        assert len(old.client_results([1])) == 2 * 3 * 4 * 2  # stages, splits, rules, clients
        np.testing.assert_array_equal(old.curve(1, "trained", "test"), new.curve(1, "trained", "test"))
        assert old.artefact_names(1) == new.artefact_names(1)
