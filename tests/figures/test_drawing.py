"""Figures as files: the same bytes from every process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from bench.figures import drawing, style
from bench.figures.drawing import Drawings
from bench.figures.panels import Figure
from bench.statistics.summary import with_intervals
from bench.studies.study import Study

LOOKS_AT_FIGURES = True


def figure(last: float) -> Figure:
    """A curve that ends at a number."""
    place = {"dataset": "cora", "scenario": "non-overlapping", "clients": 10, "method": "local"}
    rows = pd.DataFrame({**place, "round": [1, 2], "n": 3, "mean": [50.0, last], "std": 0.0})
    looks = {"local": replace(style.look_of("local", Study), label="Local")}
    data = with_intervals(rows).assign(panel="Cora")
    return Figure(f"curve{last:.0f}", "curves", "Test accuracy", "", data, looks)


def saved(folder: Path, figures: list[Figure], workers: int = 1) -> dict[str, bytes]:
    """What the files of figures hold."""
    with Drawings(workers, pdf=True) as shown:
        for each in figures[:3]:
            shown.begin(each)
        shown.save({each: folder / each.name for each in figures})
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_figure_is_a_picture_a_page_and_its_numbers(tmp_path: Path) -> None:
    first, other = saved(tmp_path / "one", [figure(60.0)]), saved(tmp_path / "two", [figure(61.0)])
    assert first.keys() == {"curve60.csv", "curve60.pdf", "curve60.png"}
    assert not set(first.values()) & set(other.values())
    assert saved(tmp_path / "again", [figure(60.0)]) == first


@pytest.mark.slow
def test_processes_draw_the_same_bytes_as_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = [figure(60.0 + number) for number in range(4)]
    alone = saved(tmp_path / "alone", every)
    monkeypatch.setattr(drawing, "MANY", 2)
    assert saved(tmp_path / "two", every, workers=2) == alone
