"""The result database: what goes in comes out, and what cannot be used is refused in one line."""

import json
import sqlite3
import threading
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from stored_runs import SPLITS, MemoryStore, done, save, spec_of

from bench.engine.result import Code, RunResult
from bench.engine.states import State
from bench.errors import RequestError
from bench.selection import RULES
from bench.spec import RunSpec
from bench.store import Store, open_store


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


@st.composite
def results(draw: st.DrawFn) -> RunResult:
    """Finished runs; some clients lack samples in a split; ``trained`` may have more rows."""
    clients, rows = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    epochs = draw(st.integers(1, 3))
    samples = {split: draw(arrays(np.int32, clients, elements=st.integers(0, 9))) for split in SPLITS}
    correct = {
        (stage, split): np.minimum(
            draw(arrays(np.int32, (rows * factor, clients), elements=st.integers(0, 9))), samples[split]
        )
        for stage, factor in (("received", 1), ("trained", epochs))
        for split in SPLITS
    }
    return RunResult("done", correct=correct, samples=samples, partition_hash="p", seconds={"total": 1.5})


@settings(max_examples=25, deadline=None)
@given(result=results())
def test_round_trip(result: RunResult) -> None:
    clients = len(result.samples["val"])
    store = MemoryStore()
    run = save(store, spec_of(clients), result)
    frame = store.client_results([run])
    for (stage, split), counts in result.correct.items():
        np.testing.assert_array_equal(store.curves([run], split)[run, stage], counts)
    store.close()
    stored = {
        (row.stage, row.split, row.rule, row.client): (row.value, row.samples) for row in frame.itertuples()
    }
    expected = {}
    for stage, rule in product(("received", "trained"), RULES):
        val, test = (result.correct[stage, split] for split in ("val", "test"))
        rows = RULES[rule](val, result.samples["val"], test, result.samples["test"])
        for client, split in product(range(clients), SPLITS):
            if n := int(result.samples[split][client]):
                value = result.correct[stage, split][rows[client], client] / n
                expected[stage, split, rule, client] = (value, n)
    assert stored == expected
    assert set(frame["metric"]) <= {"accuracy"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(url_of(tmp_path / "bench.db"), create=True)


def test_run_row_holds_spec_costs_and_versions(store: Store) -> None:
    spec = spec_of(2, seed=7, rounds=8)
    seconds = {"client": 1.0, "server": 2.0, "evaluation": 3.0, "total": 7.0}
    result = done(seconds=seconds, peak_memory=2**40, bytes_up=2**41, code=Code(3, 2, "abc"))
    run = store.save(spec, result, {"metis": 5}).id
    row = store.runs().iloc[0]
    assert RunSpec.model_validate_json(row["spec"]) == spec
    assert row["spec_hash"] == spec.hash
    assert (row["dataset"], row["clients"], row["seed"], row["rounds"]) == ("cora", 2, 7, 8)
    assert {part: row[f"seconds_{part}"] for part in seconds} == seconds
    assert (row["peak_memory"], row["bytes_up"]) == (2**40, 2**41)
    assert (row["method_numerics"], row["engine_numerics"], row["source_hash"]) == (3, 2, "abc")
    assert json.loads(store.table("partitions").iloc[0]["provenance"]) == {"metis": 5}
    loss = store.artefacts([run], "loss")[run]
    np.testing.assert_array_equal(loss, np.array([1.0, 0.5, 0.25], np.float32), strict=True)


def test_a_repeated_run_replaces_the_old_one_with_all_that_belongs_to_it(store: Store) -> None:
    spec = spec_of(2)
    failed = save(store, spec, RunResult("failed", "why", "trace"))
    assert store.runs().iloc[0]["reason"] == "why"
    assert store.client_results([failed]).empty
    first = save(store, spec, done())
    second = save(store, spec, done(shift=1))
    assert len(store.runs()) == 1
    assert first == second == failed
    assert set(store.client_results([second])["value"]) == {3 / 10, 3 / 11}
    save(store, spec, RunResult("diverged", "nan in round 3"))
    assert store.client_results([second]).empty
    with pytest.raises(KeyError):
        store.curves([second], "val")[second, "trained"]


@pytest.mark.parametrize("state", ["failed", "oom", "no_data"])
def test_a_failure_never_replaces_what_is_settled(store: Store, state: State) -> None:
    spec = spec_of(2)
    run = save(store, spec, RunResult(state, "first"))
    assert save(store, spec, RunResult(state, "second")) == run
    assert store.runs()["reason"].tolist() == ["second"]
    save(store, spec, done())
    assert save(store, spec, RunResult(state, "third")) == run
    assert store.runs()["state"].tolist() == ["done"]
    assert set(store.client_results([run])["value"]) == {2 / 10, 2 / 11}


def test_a_save_that_breaks_in_the_middle_leaves_the_old_run(store: Store) -> None:
    spec = spec_of(2)
    run = save(store, spec, done())
    broken = done(shift=1)
    broken.artefacts = {"bad": np.array([object()])}  # cannot be stored: pickle is not allowed
    with pytest.raises(ValueError, match="pickle"):
        save(store, spec, broken)
    assert set(store.client_results([run])["value"]) == {2 / 10, 2 / 11}


def test_reading_changes_nothing_and_cannot_write(store: Store, tmp_path: Path) -> None:
    save(store, spec_of(2), done())
    store.close()
    before = (tmp_path / "bench.db").read_bytes()
    with open_store(url_of(tmp_path / "bench.db"), create=False) as reader:
        assert len(reader.runs()) == 1
        with pytest.raises(RequestError, match="readonly"):
            save(reader, spec_of(2, seed=1), done())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.db"]
    assert (tmp_path / "bench.db").read_bytes() == before


def test_a_database_in_a_folder_without_write_bits_is_read_and_nothing_is_left_there(tmp_path: Path) -> None:
    file = tmp_path / "kept" / "bench.db"
    with open_store(url_of(file), create=True) as store:
        save(store, spec_of(), done())
    file.chmod(0o444)
    file.parent.chmod(0o555)
    with open_store(url_of(file), create=False) as reader:
        assert len(reader.runs()) == 1
        left = list(file.parent.iterdir())
    file.parent.chmod(0o755)
    assert left == [file]


def test_what_is_no_result_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.db"
    text.write_text("not a database, though long enough to hold a header")
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as raw:
        raw.execute("CREATE TABLE songs (title)")
    raw.close()
    cases = {
        url_of(text): "not a database",
        url_of(other): "no such table: alembic_version",
        url_of(tmp_path): "unable to open",
    }
    before = {path: path.read_bytes() for path in (text, other)}
    for url, message in cases.items():
        for create in (True, False):
            with pytest.raises(RequestError, match=message) as caught:
                open_store(url, create)
            assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in before} == before
    assert sorted(tmp_path.iterdir()) == sorted(before)


def test_a_missing_database_is_made_for_writing_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a b %41 #1 é" / "bench.db"
    with pytest.raises(RequestError, match="no database at"):
        open_store(url_of(path), create=False)
    assert not list(tmp_path.iterdir())
    open_store(url_of(path), create=True).close()
    with sqlite3.connect(path) as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_new_database_that_another_process_is_making_is_waited_for(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "bench.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, other.execute, ("ROLLBACK",))
    timer.start()
    try:
        with open_store(url_of(tmp_path / "bench.db"), create=True) as store:
            assert store.runs().empty
            assert not other.in_transaction
    finally:
        timer.join()
        other.close()
