"""``--seed`` on the command line: one seed, several, ranges, and what is none."""

import json
from pathlib import Path

import pytest

from bench.cli.main import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))


def seeds(capsys: pytest.CaptureFixture[str], *words: str) -> list[int]:
    """Those that a sweep of the quickstart's grid (seeds 0 and 1) would run."""
    with pytest.raises(SystemExit) as end:
        main(["sweep", "--grid", "quickstart", "-m", "local", "--dry-run", "--json", *words])
    assert end.value.code == 0
    return [run["seed"] for run in json.loads(capsys.readouterr().out)["runs"]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], [0, 1]),
        (["--seed", "1"], [1]),
        (["--seed", "20-23"], [20, 21, 22, 23]),
        (["--seed", "5", "--seed", "3-5", "--seed=0"], [5, 3, 4, 0]),
        (["--seed", "7-7"], [7]),
    ],
)
def test_numbers_and_ranges(
    words: list[str], expected: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert seeds(capsys, *words) == expected


@pytest.mark.parametrize(
    "word", ["-1", "x", "3-1", "1-", "-", "1-2-3", "1.5", "0-99999", "\N{ARABIC-INDIC DIGIT ONE}"]
)
def test_anything_else_is_refused_in_one_line(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["sweep", "--grid", "quickstart", f"--seed={word}"])
    error = capsys.readouterr().err
    assert end.value.code == 2
    assert error.startswith("bench: ")
    assert error.count("\n") == 1
    assert "--seed" in error
    assert word in error
