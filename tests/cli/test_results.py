"""``bench export``, ``import`` and ``verify``; a sweep goes on from an import."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stored_runs import bundle_of, database, done, spec_of

from bench.engine.result import RunResult
from bench.federation.build import build
from bench.resolve import resolve
from bench.runner import fingerprint
from bench.store import open_store

from .conftest import Bench


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    runs = [(spec_of(), done()), (spec_of(seed=1), done(shift=1)), (spec_of(seed=2), RunResult("oom"))]
    return bundle_of(tmp_path / "theirs", runs)


def test_an_import_says_what_it_did(bundle: Path, tmp_path: Path, bench: Bench) -> None:
    url = database(
        tmp_path / "own.db", [(spec_of(seed=1), done(shift=4)), (spec_of(seed=2), RunResult("oom"))]
    )
    for counts in (["1", "0", "2"], ["0", "0", "3"]):
        code, text, error = bench(f"import {bundle} --db {url}")
        assert (code, re.findall(r"\d+", text), error) == (0, counts, ""), "added, replaced, skipped"
    (bundle / "runs.parquet").write_bytes(b"")
    assert bench(f"import {bundle} --db {url}").refused


@pytest.mark.slow
def test_a_sweep_goes_on_from_an_imported_bundle(tmp_path: Path, bench: Bench) -> None:
    code = fingerprint.code("local")
    older = replace(code, engine_numerics=code.engine_numerics - 1)
    runs = [
        (resolve("cora", "non-overlapping", 3, "local", seed), done(3, code=made_by))
        for seed, made_by in enumerate((code, code, older))
    ]
    assert bench("import", str(bundle_of(tmp_path / "theirs", runs))).code == 0
    text = bench("sweep -d cora -s non-overlapping -k 3 -m local --seed 0-3 --dry-run --json").out
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


@pytest.mark.slow
def test_a_true_bundle_is_verified(home: Path, tmp_path: Path, bench: Bench) -> None:
    url, out = f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "real"
    swept = f"sweep -d cora -k 3 -m local --set protocol.rounds=2 --devices cpu --db {url}"
    for words in (swept, f"export --db {url} --out {out}", f"import {out}"):
        assert bench(words).code == 0
    code, text, _ = bench(f"verify {out} --sample 3")
    run, last = text.splitlines()
    assert code == 0
    assert run.startswith("local cora non-overlapping 3 seed 0 (")
    assert "): equal: " in run
    assert "1 equal" in last
    with open_store(f"sqlite:///{home / 'bench.db'}", create=False) as store:
        assert store.runs()["bundle_state"].tolist() == ["verified"]
        assert json.loads(store.table("bundles")["sample"][0]) == {store.runs()["spec_hash"][0]: "equal"}


def test_a_forged_bundle_is_contradicted(tmp_path: Path, bench: Bench) -> None:
    """No look at the bundle alone can tell: the clients are real, the numbers are not."""
    spec = resolve("cora", "non-overlapping", 3, "local", 0, {"protocol.rounds": 2})
    clients = build(*spec.federation_key).hash
    forged = bundle_of(
        tmp_path / "forged", [(spec, done(3, partition_hash=clients, code=fingerprint.of(spec)))]
    )
    assert bench(f"import {forged}").code == 0
    code, text, _ = bench(f"verify {forged}")
    run, last = text.splitlines()
    assert (code, "differs" in run, "contradicted" in last) == (1, True, True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dataset": "pubmed"}, "pubmed"),
        ({"method": "locl"}, "unknown method 'locl': did you mean 'local'?"),
        ({"seed": 1}, "is by code of other numerics than is here"),
    ],
)
def test_what_cannot_be_made_here_is_refused_and_nothing_is_marked(
    changes: dict[str, Any], words: str, tmp_path: Path, home: Path, bench: Bench
) -> None:
    spec, code = spec_of().model_copy(update=changes), fingerprint.code("local")
    code = replace(code, method_numerics=code.method_numerics + spec.seed)
    bundle = bundle_of(tmp_path / "theirs", [(spec, done(code=code))])
    assert bench(f"import {bundle}").code == 0
    ended = bench(f"verify {bundle}")
    assert ended.refused
    assert (ended.out, words in ended.err) == ("", True)
    with open_store(f"sqlite:///{home / 'bench.db'}", create=False) as store:
        assert set(store.runs()["bundle_state"]) == {"unverified"}
