"""Importing bundles: all or nothing, what meets what is stored, and what is refused."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from stored_runs import bundle_of, change_manifest, database, done, dump, save, spec_of

from bench.engine.result import RunResult
from bench.store import open_store
from bench.store.bundle import Bundle, import_bundle, mark


def take(target: Path, folder: Path) -> tuple[int, ...]:
    """How many runs are added, replaced and skipped."""
    counts = import_bundle(f"sqlite:///{target}", Bundle(folder))
    return counts["added"], counts["replaced"], counts["skipped"]


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
        (row,) = store.table("bundles").to_dict("records")
        assert row["source"] == "A. Author, <b>Lab</b>, é"
        assert row["hash"] == hashlib.sha256((bundle / "bundle.json").read_bytes()).hexdigest()
        assert (row["name"], row["state"], row["sample"]) == ("theirs", "unverified", "{}")
        save(store, spec_of(), done(shift=3))  # run again here: one's own from now on
        assert store.runs(seed=0, dataset="cora")["bundle"].tolist() == [""]


DONE, OOM = done(), RunResult("oom")


@pytest.mark.parametrize(
    ("stored", "offered", "expected"),
    [
        (DONE, DONE, (0, 0, 1)),
        (DONE, done(shift=1), (0, 0, 1)),
        (RunResult("failed"), DONE, (0, 1, 0)),
        (OOM, DONE, (0, 1, 0)),
        (RunResult("diverged"), DONE, (0, 0, 1)),
        (RunResult("failed"), OOM, (0, 0, 1)),
        (OOM, OOM, (0, 0, 1)),
    ],
)
def test_a_stored_run_meets_an_imported_one(
    tmp_path: Path, stored: RunResult, offered: RunResult, expected: tuple[int, ...]
) -> None:
    target = tmp_path / "target.db"
    url = database(target, [(spec_of(), stored)])
    theirs = bundle_of(tmp_path / "theirs", [(spec_of(), offered)])
    before = dump(target)
    assert take(target, theirs) == expected
    if not expected[1]:
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


# Trust --------------------------------------------------------------------------------------------


def test_a_contradiction_is_not_outweighed_by_other_runs(bundle: Path, tmp_path: Path) -> None:
    take(tmp_path / "new.db", bundle)
    digest = Bundle(bundle).hash
    with open_store(f"sqlite:///{tmp_path / 'new.db'}", create=True) as store:
        first, second, third = store.runs()["spec_hash"]
        assert mark(store, "0" * 64, {first: "equal"}) is None
        assert mark(store, digest, {first: "equal", second: "close"}) == "verified"
        runs = store.runs().set_index("spec_hash")
        assert runs["bundle_sampled"].to_dict() == {first: True, second: True, third: False}
        assert mark(store, digest, {third: "differs"}) == "contradicted"
        assert mark(store, digest, {second: "equal"}) == "contradicted"
        assert set(store.runs()["bundle_state"]) == {"contradicted"}
        assert mark(store, digest, {third: "equal"}) == "verified"  # the same run, made again
