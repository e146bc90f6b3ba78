"""``bench export`` and ``bench import``: what they say, write and refuse; a sweep goes on from an import."""

import json
from pathlib import Path

import pytest
from stored_runs import bundle_of, database, done, save, spec_of

from bench.engine.result import RunResult
from bench.resolve import resolve
from bench.runner import fingerprint
from bench.store import open_store
from bench.store.bundle import Bundle, write_bundle

from .conftest import Bench

TABLES = ("runs", "client_results", "curves", "artefacts", "confusions")
FILES = {"bundle.json", *(f"{name}.parquet" for name in TABLES)}


def test_export_writes_what_the_filters_leave(tmp_path: Path, bench: Bench) -> None:
    runs = [(spec_of(seed=seed, method=method), done()) for seed in (0, 1) for method in ("local", "fedavg")]
    runs.append((spec_of(seed=2), RunResult("failed", reason="bug")))
    url = database(tmp_path / "a.db", runs)
    out = tmp_path / "deep" / "out"
    asked = ("export", "--db", url, "--out", str(out))
    code, text, error = bench(*asked, "-m", "local")
    size = sum(path.stat().st_size for path in out.iterdir())
    assert (code, text, error) == (0, f"{out}: 2 runs, {size:,} bytes\n", "")
    assert set(Bundle(out).runs()["method"]) == {"local"}
    assert {path.name for path in out.iterdir()} == FILES
    assert bench(*asked, "--seed", "1", "-d", "cora", "-k", "2").code == 0
    assert set(Bundle(out).runs()["seed"]) == {1}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    runs = [(spec_of(), done()), (spec_of(seed=1), done(shift=1)), (spec_of(seed=2), RunResult("oom"))]
    bundle_of(tmp_path / "theirs", runs)
    return tmp_path / "theirs"


def test_the_command(bundle: Path, tmp_path: Path, bench: Bench) -> None:
    url = database(
        tmp_path / "own.db", [(spec_of(seed=1), done(shift=4)), (spec_of(seed=2), RunResult("oom"))]
    )
    code, text, error = bench("import", str(bundle), "--db", url)
    lines = text.splitlines()
    assert (code, error) == (0, "")
    assert lines == ["theirs: 1 runs added, 0 in place of failed ones, 2 skipped: stored already"]
    assert (
        "0 runs added, 0 in place of failed ones, 3 skipped" in bench("import", str(bundle), "--db", url).out
    )
    (bundle / "runs.parquet").write_bytes(b"")
    assert bench("import", str(bundle), "--db", url).refused


@pytest.mark.slow
def test_a_sweep_goes_on_from_an_imported_bundle(
    tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = fingerprint.code("local")
    with open_store(f"sqlite:///{tmp_path / 'a.db'}", create=True) as store:
        for seed, older in ((0, 0), (1, 0), (2, 1)):
            spec = resolve("cora", "non-overlapping", 3, "local", seed)
            numerics = (code.method_numerics, code.engine_numerics - older)
            save(store, spec, done(clients=3), *numerics)
        write_bundle(store, store.runs(), tmp_path / "theirs")
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    assert bench("import", str(tmp_path / "theirs"))[0] == 0
    seeds = [word for seed in range(4) for word in ("--seed", str(seed))]
    asked = ("sweep", "-d", "cora", "-s", "non-overlapping", "-k", "3", "-m", "local", *seeds)
    _, text, _ = bench(*asked, "--dry-run", "--json")
    assert json.loads(text)["counts"] == {"done": 2, "stale": 1, "missing": 1}


def test_a_bundle_of_the_suite_is_verified_by_its_name(
    bundle: Path, tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A method that has no run is refused by the bundle that was opened; a folder of the name comes first."""
    monkeypatch.setattr("bench.store.bundle.SHIPPED", tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert "nothing to verify" in bench("verify theirs -m nobody").err
    (tmp_path / "elsewhere" / "theirs").mkdir()
    assert "no bundle at" in bench("verify theirs -m nobody").err
    assert "no bundle at" in bench("verify nothing -m nobody").err
