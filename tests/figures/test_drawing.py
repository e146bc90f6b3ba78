"""Figures as files: drawn once, kept by what they show, the same bytes from every process."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from bench.figures import drawing, style
from bench.figures.drawing import Drawings
from bench.figures.panels import Figure, Mark, Panel
from bench.statistics.summary import with_intervals
from bench.studies.study import Study

LOOKS_AT_FIGURES = True


def figure(last: float, name: str = "curve") -> Figure:
    """A curve that ends at a number."""
    place = {"dataset": "cora", "scenario": "non-overlapping", "clients": 10, "method": "local"}
    rows = pd.DataFrame({**place, "round": [1, 2], "n": 3, "mean": [50.0, last], "std": 0.0})
    marks = (Mark("local", "Local", style.look_of("local", Study)),)
    panel = Panel("curves", "Cora", with_intervals(rows), marks)
    return Figure(name, "", [panel], "Test accuracy")


def files(folder: Path) -> dict[str, int]:
    """The numbers of a folder's files: one that is written anew has another."""
    return {path.name: path.stat().st_ino for path in folder.iterdir()}


def test_a_figure_is_drawn_once_however_often_and_wherever_it_is_shown(tmp_path: Path) -> None:
    kept = tmp_path / "kept"

    def saved(last: float, folder: str) -> list[bytes]:
        with Drawings(kept, pdf=True) as shown:
            shown.save({figure(last): tmp_path / folder / "table" / "curve"})
        paths = sorted((tmp_path / folder / "table").iterdir())
        assert [path.name for path in paths] == ["curve.csv", "curve.pdf", "curve.png"]
        return [path.read_bytes() for path in paths]

    first = saved(60.0, "one")
    drawn = files(kept)
    assert {Path(name).suffix for name in drawn} == {".png", ".pdf"}
    assert saved(60.0, "two") == first
    assert files(kept) == drawn
    other = saved(61.0, "one")
    assert drawn.items() < files(kept).items()
    assert all(one != two for one, two in zip(first, other, strict=True))
    next(kept.glob("*.pdf")).unlink()
    assert (saved(60.0, "one"), saved(61.0, "one")) == (first, other)
    assert files(kept).keys() > drawn.keys()


@pytest.mark.slow
def test_processes_draw_the_same_bytes_as_one_does_before_all_figures_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = [figure(60.0 + number, f"curve{number}") for number in range(4)]
    with Drawings() as shown:
        shown.save({each: tmp_path / "alone" / each.name for each in every})
    monkeypatch.setattr(drawing, "MANY", 2)
    with Drawings(tmp_path / "kept", workers=2) as shown:
        for each in every[:2]:
            shown.begin(each)
        end = time.monotonic() + 120
        while len(list((tmp_path / "kept").glob("*.png"))) < 2 and time.monotonic() < end:
            time.sleep(0.1)
        assert len(list((tmp_path / "kept").glob("*.png"))) == 2
        shown.save({each: tmp_path / "two" / each.name for each in every})
    for path in (tmp_path / "alone").iterdir():
        assert (tmp_path / "two" / path.name).read_bytes() == path.read_bytes()


def test_drawings_that_no_report_shows_are_forgotten(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with Drawings(kept) as shown:
        shown.save({figure(60.0): tmp_path / "a"})
    long_ago = time.time() - 2 * drawing.KEPT_DAYS * 24 * 3600
    for path in kept.iterdir():
        os.utime(path, (long_ago, long_ago))
    with Drawings(kept) as shown:
        shown.save({figure(61.0): tmp_path / "b"})
    assert len(list(kept.iterdir())) == 1


def test_without_a_folder_that_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder", encoding="utf-8")
    with Drawings(tmp_path / "home" / "figures") as shown:
        shown.save({figure(60.0): tmp_path / "curve"})
    assert all((tmp_path / f"curve{kind}").stat().st_size for kind in (".png", ".csv"))


def test_a_drawing_depends_on_its_rows_words_and_looks_and_on_what_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        drawing, "_draw_files", lambda figure, fonts, stem, kinds: stem.with_suffix(".png").touch()
    )
    one = figure(60.0)
    (panel,) = one.panels
    (mark,) = panel.marks
    others = [
        figure(61.0),
        replace(one, title="Another title"),
        replace(one, panels=[replace(panel, title="CiteSeer")]),
        replace(one, panels=[replace(panel, marks=(replace(mark, label="Alone"),))]),
        replace(one, panels=[replace(panel, level=1.0)]),
    ]

    def kept() -> int:
        with Drawings(tmp_path / "kept") as shown:
            shown.save(
                {each: tmp_path / str(number) for number, each in enumerate([one, *others, figure(60.0)])}
            )
        return len(list((tmp_path / "kept").iterdir()))

    assert kept() == 1 + len(others)
    monkeypatch.setattr(drawing, "_version", lambda: b"another")
    assert kept() == 2 * (1 + len(others))
