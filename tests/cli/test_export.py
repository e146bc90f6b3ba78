"""``bench export``: filters, a bundle or a tracker, and what is refused in one line."""

import json
from pathlib import Path

import pytest
from stored_runs import database, done, spec_of

from bench.cli.main import main
from bench.engine.result import RunResult
from bench.store.bundle import Bundle

TABLES = ("runs", "client_results", "curves", "artefacts", "confusions")
FILES = {"bundle.json", *(f"{name}.parquet" for name in TABLES)}


def bench(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


def test_export_writes_what_the_filters_leave(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [(spec_of(seed=seed, method=method), done()) for seed in (0, 1) for method in ("local", "fedavg")]
    runs.append((spec_of(seed=2), RunResult("failed", reason="bug")))
    url = database(tmp_path / "a.db", runs)
    out = tmp_path / "deep" / "out"
    asked = ("export", "--db", url, "--out", str(out))
    code, text, error = bench(capsys, *asked, "-m", "local")
    size = sum(path.stat().st_size for path in out.iterdir())
    assert (code, text, error) == (0, f"{out}: 2 runs, {size:,} bytes\n", "")
    assert set(Bundle(out).runs()["method"]) == {"local"}
    code, text, error = bench(capsys, *asked, "--seed", "1", "-d", "cora", "-k", "2", "--json")
    told = json.loads(text)
    assert (code, told["runs"], set(told["files"]), told["bundle"]) == (0, 2, FILES, str(out))
    assert set(Bundle(out).runs()["seed"]) == {1}


def test_a_wrong_export_is_one_line_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = database(tmp_path / "a.db", [(spec_of(), done())])
    asked = ("export", "--db", url, "--out", str(tmp_path / "out"))
    for more, said in (
        (("-m", "locl"), "unknown method among the stored runs: 'locl': did you mean 'local'?"),
        (("--seed", "4"), "unknown seed among the stored runs: '4'"),
        (("--grid", "quickstart"), "no stored run is all of what is asked for"),
        (("--grid", "quick"), "unknown grid 'quick'"),
    ):
        code, text, error = bench(capsys, *asked, *more)
        assert (code, text) == (2, "")
        assert said in error
        assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_grid_takes_its_own_runs_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from bench.grids import expand, load_grid

    planned = next(plan.spec for plan in expand(load_grid("quickstart")) if plan.spec is not None)
    url = database(tmp_path / "a.db", [(planned, RunResult("oom", reason="8 GB")), (spec_of(), done())])
    out = tmp_path / "out"
    code, text, _ = bench(capsys, "export", "--db", url, "--out", str(out), "--grid", "quickstart")
    assert (code, text.split(":")[1].split(",")[0]) == (0, " 1 run")
    assert list(Bundle(out).runs()["spec_hash"]) == [planned.hash]
