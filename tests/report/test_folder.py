"""A report that is there already, and what it rests on: as users meet it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib.figure import Figure as Canvas
from stored_runs import MemoryStore
from toy_study import ToyStudy

from bench import frames
from bench.cli.main import main
from bench.figures import layout


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Names of what is done, in order: ``open`` a database, ``draw`` a figure."""
    done: list[str] = []
    source = MemoryStore()
    for seed in (0, 1):
        source.add("local", seed, [72, 70 + seed])

    @contextmanager
    def opened(url: str | None, own: bool) -> Iterator[MemoryStore]:
        done.append("open")
        yield source

    def draw(figure: Any) -> Canvas:
        done.append("draw")
        return Canvas(figsize=(1, 1))

    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("bench.studies.shipped.opened", opened)
    monkeypatch.setattr("bench.studies.study.STUDIES", SimpleNamespace(all=lambda: {"toy": ToyStudy}))
    monkeypatch.setattr(layout, "draw", draw)
    return done


def report(out: Path, *words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["report", "--out", str(out), *words])
    return int(str(ended.value.code))


def test_an_unchanged_report_opens_and_draws_nothing(
    work: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert report(out) == 0
    first = capsys.readouterr().out
    drawn = work.count("draw")
    assert (work.count("open"), drawn > 0) == (1, True)
    assert report(out) == 0
    assert capsys.readouterr().out == first
    assert report(out, "--print", "toy/table1") == 0
    assert "71.25 ± 0.35" in capsys.readouterr().out  # (71 + 71.5) / 2, deviation 0.5 / sqrt(2)
    assert (work.count("open"), work.count("draw")) == (1, drawn)
    (out / "cells.csv").unlink()
    assert report(out) == 0  # made again, from the drawings that were kept
    assert (out / "cells.csv").is_file()
    assert (work.count("open"), work.count("draw")) == (2, drawn)
    monkeypatch.setattr(frames, "stamp", lambda db, own: "other results")
    assert report(out) == 0
    assert work.count("open") == 3


def test_wrong_requests_are_one_line_and_leave_the_report_as_it_is(
    work: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
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
    assert "mine.txt" in lines[-1]
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == {
        **before,
        out / "mine.txt": b"mine",
    }
