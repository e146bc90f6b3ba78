"""Bundles: what the database says comes back, always in the same bytes."""

import hashlib
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from stored_runs import SPLITS, change_manifest, context_of, database, done, opened, spec_of

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.store import open_store
from bench.store.bundle import SHIPPED, Bundle, read_bundles, read_timings, write_bundle
from bench.studies import shipped

FILES = {
    "bundle.json",
    "runs.parquet",
    "client_results.parquet",
    "curves.parquet",
    "artefacts.parquet",
    "confusions.parquet",
}


@st.composite
def outcomes(draw: st.DrawFn) -> tuple[int, RunResult]:
    """Number of clients and a run of theirs: done with any counts, or without numbers."""
    clients, rows = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    state = draw(st.sampled_from(("done", "done", "oom", "diverged", "not_applicable", "failed", "no_data")))
    partition = f"partition of {clients}" if draw(st.booleans()) else ""
    if state != "done":
        return clients, RunResult(
            state, reason="why, <b>not</b> ü", traceback="/home/me", partition_hash=partition
        )
    samples = {split: draw(arrays(np.int32, clients, elements=st.integers(0, 70_000))) for split in SPLITS}
    correct = {}
    for stage, count in (("received", draw(st.integers(1, rows))), ("trained", rows)):
        for split in SPLITS:
            counts = draw(arrays(np.int32, (count, clients), elements=st.integers(0, 70_000)))
            correct[stage, split] = np.minimum(counts, samples[split])
    artefacts = {
        name: draw(arrays(np.float32, shape, elements=st.floats(-1e6, 1e6, width=32)))
        for name, shape in (("malicious", (clients,)), ("weights", (clients, clients)))
    }
    seconds = {"total": draw(st.floats(0, 1e6)), "server": draw(st.floats(0, 1))}
    return clients, RunResult(
        "done",
        correct=correct,
        samples=samples,
        loss=draw(arrays(np.float32, rows, elements=st.floats(0, 8, width=32))),
        artefacts={**artefacts, "large": np.zeros(1100, np.float32)},
        seconds=seconds,
        peak_memory=draw(st.integers(0, 2**40)),
        bytes_up=draw(st.integers(0, 2**50)),
        partition_hash=partition,
    )


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(drawn=st.lists(outcomes(), min_size=1, max_size=5), order=st.randoms(use_true_random=False))
def test_a_bundle_answers_as_the_database(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[int, RunResult]], order: object
) -> None:
    folder = tmp_path_factory.mktemp("bundle")
    runs = [(spec_of(clients, seed), result) for seed, (clients, result) in enumerate(drawn)]
    kept = [spec.hash for spec, result in runs if result.state not in ("failed", "no_data")]
    if not kept:
        with opened(folder / "a.db", runs) as store, pytest.raises(RequestError, match="no run to export"):
            write_bundle(store, store.runs(), folder / "out")
        assert not (folder / "out").exists()
        return
    with opened(folder / "a.db", runs) as store:
        write_bundle(store, store.runs(), folder / "out")
        bundle = Bundle(folder / "out")
        compare(store, bundle, sorted(kept))
        compare(store, Bundle(folder / "out", trusted=True), sorted(kept))
    shuffled = list(runs)
    order.shuffle(shuffled)
    with opened(folder / "b.db", shuffled) as store:
        write_bundle(store, store.runs(), folder / "again")
    assert {path.name for path in (folder / "again").iterdir()} == FILES
    for name in FILES:
        assert (folder / "out" / name).read_bytes() == (folder / "again" / name).read_bytes()


def compare(store: object, bundle: Bundle, hashes: list[str]) -> None:
    """Every answer about these runs is the same, but for ids and the traceback."""
    theirs, ours = store.runs(spec_hash=hashes), bundle.runs()
    assert list(ours.columns) == list(theirs.columns)
    assert list(ours["spec_hash"]) == hashes
    assert list(ours["id"]) == list(range(1, len(hashes) + 1))
    ids = dict(zip(theirs["spec_hash"], theirs["id"], strict=True))
    theirs = theirs.set_index("spec_hash").loc[hashes].reset_index()[list(ours.columns)]
    same = [name for name in ours.columns if name not in ("id", "environment_id", "traceback")]
    pd.testing.assert_frame_equal(ours[same], theirs[same])
    assert set(ours["traceback"]) == {""}
    texts = [
        dict(zip(s.environments()["id"], s.environments()["description"], strict=True))
        for s in (store, bundle)
    ]
    assert list(theirs["environment_id"].map(texts[0])) == list(ours["environment_id"].map(texts[1]))
    for number, digest in enumerate(hashes, 1):
        run = ids[digest]
        for wanted in ({}, {"stage": "trained", "split": "val", "rule": "last"}):
            expected = store.client_results([run], **wanted).assign(run_id=number)
            results = bundle.client_results([number], **wanted)
            pd.testing.assert_frame_equal(results, expected, check_dtype=len(expected) > 0, check_exact=True)
        for stage in ("received", "trained"):
            try:
                expected = store.curves([run], "test")[run, stage]
            except KeyError:
                with pytest.raises(KeyError):
                    bundle.curves([number], "test")[number, stage]
                continue
            np.testing.assert_array_equal(
                bundle.curves([number], "test")[number, stage], expected, strict=True
            )
            with pytest.raises(KeyError):
                bundle.curves([number], "val")[number, stage]
        results = {key[1:]: counts for key, counts in bundle.confusions([number]).items()}
        stored = {key[1:]: counts for key, counts in store.confusions([run]).items()}
        assert results.keys() == stored.keys()
        assert all(np.array_equal(results[key], stored[key]) for key in stored)
        small = [name for name in store.artefact_names(run) if name != "large"]
        assert bundle.artefact_names(number) == small
        for name in small:
            np.testing.assert_array_equal(
                bundle.artefact(number, name), store.artefact(run, name), strict=True
            )
        with pytest.raises(KeyError):
            bundle.artefact(number, "large")


def test_a_damaged_shipped_bundle_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("first", "second"):
        with opened(tmp_path / f"{name}.db", [(spec_of(), done())]) as store:
            write_bundle(store, store.runs(), tmp_path / "measured" / name)
    (tmp_path / "measured" / "first" / "curves.parquet").write_bytes(b"")
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    with shipped.opened_results(None, own=False, folder=tmp_path / "measured") as source:
        assert source.runs()["origin"].tolist() == ["second"]
    warning = capsys.readouterr().err
    assert warning.startswith("bench: warning: left out: bundle ")
    assert "first: curves.parquet: " in warning
    assert warning.count("\n") == 1


def test_times_of_done_runs_are_read_and_damaged_bundles_left_out(tmp_path: Path) -> None:
    timed = replace(done(), seconds={"total": 7.5}, peak_memory=2**30)
    measured = tmp_path / "measured"
    for name, result in (("a", timed), ("b", RunResult("diverged")), ("cut", timed), ("text", timed)):
        seed = ord(name[0])
        with opened(tmp_path / f"{name}.db", [(spec_of(seed=seed), result)]) as store:
            write_bundle(store, store.runs(), measured / name)
    (measured / "cut" / "runs.parquet").write_bytes(b"")
    (measured / "text" / "runs.parquet").write_bytes(b"no Parquet")
    digest = hashlib.sha256(b"no Parquet").hexdigest()  # as stated, but not to be read
    change_manifest(
        measured / "text", lambda tree: tree["files"]["runs.parquet"].update(sha256=digest, bytes=10)
    )
    spec = spec_of(seed=ord("a"))
    names = (spec.dataset, spec.scenario, spec.clients, spec.method)
    assert read_timings(measured) == {spec.hash: (*names, spec.canonical(), 7.5, "cpu")}
    assert read_timings(tmp_path / "nowhere") == {}


def test_a_bundle_of_before_has_no_counts_by_class(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    with opened(tmp_path / "a.db", [(spec_of(), done())]) as store:
        write_bundle(store, store.runs(), folder)
        assert Bundle(folder).confusions([1]).keys() == store.confusions([1]).keys() != set()
    (folder / "confusions.parquet").unlink()
    change_manifest(folder, lambda tree: tree.update(version=1) or tree["files"].pop("confusions.parquet"))
    bundle = Bundle(folder)
    assert bundle.confusions([1]) == {}
    assert len(bundle.client_results([1])) == 2 * 3 * 4 * 2


@pytest.mark.slow
def test_bundles_that_ship_keep_every_rule() -> None:
    bundles, damaged = read_bundles(SHIPPED)
    assert [bundle.name for bundle in bundles] == sorted(
        path.parent.name for path in SHIPPED.glob("*/bundle.json")
    )
    assert damaged == []


# Writing ------------------------------------------------------------------------------------------


def test_large_arrays_are_kept_where_asked_for(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).random((40, 6, 20, 20), np.float32)
    with opened(tmp_path / "a.db", [(spec_of(), replace(done(), artefacts={"weights": weights}))]) as store:
        runs = store.runs()
        write_bundle(store, runs, tmp_path / "usual")
        write_bundle(store, runs, tmp_path / "large", 512 * 1024)
    assert "weights" not in Bundle(tmp_path / "usual").artefact_names(1)
    np.testing.assert_array_equal(Bundle(tmp_path / "large").artefact(1, "weights"), weights, strict=True)


def test_a_value_that_no_count_gives_comes_back_bit_by_bit(tmp_path: Path) -> None:
    url = database(tmp_path / "a.db", [(spec_of(), replace(done(), confusion={}))])
    value = 0.1 + 0.2  # 0.30000000000000004, not 3 / 10
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("UPDATE client_results SET value = ? WHERE client = 0 AND rule = 'last'", [value])
    connection.close()
    with open_store(url, create=False) as store:
        write_bundle(store, store.runs(), tmp_path / "out")
    rows = Bundle(tmp_path / "out").client_results([1], rule="last")
    assert set(rows.loc[rows["client"] == 0, "value"]) == {value}
    assert set(rows.loc[rows["client"] == 1, "value"]) == {2 / 11}


def test_only_a_bundle_is_replaced(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db", [(spec_of(), done()), (spec_of(seed=1), done())]) as store:
        runs = store.runs()
        empty = tmp_path / "empty"
        empty.mkdir()
        assert write_bundle(store, runs, empty) == 2
        assert write_bundle(store, runs[runs["seed"] == 1], empty) == 1
        assert list(Bundle(empty).runs()["seed"]) == [1]
        (empty / "notes.txt").write_text("mine")
        with pytest.raises(RequestError, match=r"notes\.txt"):
            write_bundle(store, runs, empty)
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "runs.parquet").write_text("")
        with pytest.raises(RequestError, match=r"holds runs\.parquet"):
            write_bundle(store, runs, tmp_path / "other")
    assert {path.name for path in tmp_path.iterdir()} - {"a.db-wal", "a.db-shm"} == {"a.db", "empty", "other"}
    assert {path.name for path in empty.iterdir()} == FILES | {"notes.txt"}


def test_what_a_bundle_may_not_hold_is_not_written(tmp_path: Path) -> None:
    url = database(tmp_path / "a.db", [(spec_of(), done())])
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("UPDATE client_results SET value = 1.01 WHERE client = 0")
    connection.close()
    with (
        open_store(url, create=False) as store,
        pytest.raises(RequestError, match=r"client_results\.parquet: row \d+: .*value"),
    ):
        write_bundle(store, store.runs(), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_environments_are_kept_once_each(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with open_store(url, create=True) as store:
        for seed, version in enumerate(("3.12", "3.11", "3.12", "3.13")):
            result = done() if version != "3.13" else RunResult("failed")
            store.save(spec_of(seed=seed), result, context_of(environment={"python": version}))
        write_bundle(store, store.runs(), tmp_path / "out")
    bundle = Bundle(tmp_path / "out")
    versions = {
        row["id"]: json.loads(row["description"])["python"]
        for row in bundle.environments().to_dict("records")
    }
    assert sorted(versions.values()) == ["3.11", "3.12"]
    by_seed = {row["seed"]: versions[row["environment_id"]] for row in bundle.runs().to_dict("records")}
    assert by_seed == {0: "3.12", 1: "3.11", 2: "3.12"}
