"""A folder with an earlier report or leaderboard, as users meet it; names of files."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import toy_study
from site_database import EVIL
from stored_runs import database as stored
from stored_runs import result_of

from bench import registry
from bench.cli.main import main
from bench.resolve import resolve
from bench.site.folder import file_name


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """``BENCH_HOME`` with two runs of the toy study, which is a plug-in."""
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(registry.PLUGINS, toy_study.__file__)
    registry.forget()
    (tmp_path / "home").mkdir()
    store(tmp_path / "home", {0: [72, 70], 1: [72, 71]})
    yield tmp_path / "home"
    monkeypatch.undo()
    registry.forget()


def store(home: Path, correct: dict[int, list[int]]) -> None:
    """Write runs of Local on Cora with so many of 100 right, by seed and client."""
    specs = {seed: resolve("cora", "non-overlapping", 10, "local", seed) for seed in correct}
    runs = [(specs[seed], result_of(counts, partition_hash="p")) for seed, counts in correct.items()]
    stored(home / "bench.db", runs)


def report(out: Path, *words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["report", "--own", "--study", "toy", "--out", str(out), *words])
    return int(str(ended.value.code))


def test_an_unchanged_report_is_not_made_again(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert report(out) == 0
    first = capsys.readouterr().out
    made = out.stat().st_ino
    assert report(out) == 0
    assert capsys.readouterr().out == first
    assert report(out, "--print", "toy_table1") == 0
    assert "71.25 ± 0.35" in capsys.readouterr().out  # (71 + 71.5) / 2, deviation 0.5 / sqrt(2)
    assert report(out, "--print", "toy_reproduction") == 0
    text = capsys.readouterr().out
    assert "Reproduction score" in text
    assert "71.25 ± 0.35" not in text, "the main table is not asked for"
    assert out.stat().st_ino == made
    (out / "cells.csv").unlink()
    assert report(out) == 0
    assert (out / "cells.csv").is_file()
    store(home, {2: [90, 91]})
    assert report(out, "--print", "toy_table1") == 0
    assert "77.67 ± 11.12" in capsys.readouterr().out  # with 90.5


def test_wrong_requests_are_one_line_and_leave_the_report_as_it_is(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert report(out) == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert report(out, "--print", "toy_tabel1") == 2
    assert report(out, "-d", "coar") == 2
    assert report(out, "-d", "cora", "--print", "toy_tabel1") == 2
    (out / "mine.txt").write_text("mine")
    assert report(out) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert all("toy_table1" in lines[place] for place in (0, 2))
    assert "mine.txt" in lines[3]
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == {
        **before,
        out / "mine.txt": b"mine",
    }


def test_names_of_files_are_harmless_and_differ() -> None:
    assert file_name("fedsheafhn_released") == "fedsheafhn_released"
    for name in ("../../etc/passwd", "A", "a/b", "", "con.", "é", "x" * 300, EVIL, "a\0b", "index.html"):
        made = file_name(name)
        assert made != name
        assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-.")
        assert not made.startswith(".")
        assert len(made) < 80
    assert len({file_name(name).lower() for name in ("a", "A", "a/", "a.", " a")}) == 5
