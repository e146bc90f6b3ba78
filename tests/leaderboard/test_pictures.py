"""Small pictures in the rows of a board, and the card that other sites show beside a link."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from bench.leaderboard import pictures
from bench.leaderboard.pictures import Scale, usual_ends

from .pages import BOARD


def test_a_picture_holds_every_number_in_its_place() -> None:
    axis = Scale(60.0, 80.0)
    first, middle, last = axis.at(60), axis.at(70), axis.at(80)
    assert middle == pytest.approx((first + last) / 2)
    assert axis.at(65) == pytest.approx((first + middle) / 2)
    assert (axis.at(-5), axis.at(500)) == (first, last)
    assert 0 < first < last < 100


def test_an_axis_leaves_room_to_most_values_and_points_to_the_others() -> None:
    most = [80.0, 81.0, 82.0, 83.0, 84.0]
    low, high = np.quantile([39.0, *most], (0.25, 0.75))
    ends = usual_ends([39.0, *most], [39.0, *most, 86.0, 99.0])
    assert ends == [end for end in (39.0, *most, 86.0, 99.0) if 2 * low - high <= end <= 2 * high - low]
    assert ends[0] == 80.0
    assert 99.0 not in ends
    axis = Scale(min(ends), max(ends))
    assert [axis.beyond(value) for value in (39.0, 81.0, 99.0)] == [-1, 0, 1]
    assert (axis.end(39.0), axis.end(81.0), axis.end(99.0)) == (0.0, axis.at(81.0), 100.0)


def test_a_difference_is_a_bar_as_long_as_it_is_large(site: Path) -> None:
    text = (site / BOARD).read_text(encoding="utf-8")
    lengths = {}
    for row in re.findall(r'<tr id="[^"]+" class="row".*?</tr>', text, re.DOTALL):
        number = re.search(r">([+-][\d.]+)<svg", row)
        bar = re.search(r'class="bar" x1="([\d.]+)%" x2="([\d.]+)%"', row)
        assert bool(number) == bool(bar)
        if number and bar and 'class="tip"' not in row:
            lengths[float(number[1])] = float(bar[2]) - float(bar[1])
    assert len(lengths) > 1
    by_task = {round(length / difference, 1) for difference, length in lengths.items()}
    assert len(by_task) < len(lengths)  # one factor a task
    assert min(by_task) > 0


def ranking(methods: int, group: int = 1) -> Any:
    """So many methods, all of one group, whose names want all the room there is, over three tasks."""
    return SimpleNamespace(
        table=pd.DataFrame(
            {
                "title": [f"$method_{number}$ " + "with a long name " * 4 for number in range(methods)],
                "rank": np.arange(1.0, methods + 1),
                "low": [None] + [1.0] * (methods - 1),
                "high": [None] + [methods + 0.5] * (methods - 1),
                "group": [group] * methods,
                "tasks": [3] * methods,
            }
        ),
        tasks=range(3),
        groups={"one": 1},
    )


def pixels(path: Path) -> Any:
    with Image.open(path) as image:
        assert image.format == "PNG"
        return np.asarray(image.convert("RGB"), np.int16)


def near(picture: Any, colour: str) -> Any:
    """Where a picture has a colour, ``[rows, columns]``."""
    wanted = [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
    return (abs(picture - np.array(wanted, np.int16)) <= 3).all(axis=2)


@pytest.mark.parametrize(("methods", "words"), [(2, 1), (40, 200), (None, 8)])
def test_all_stays_within_the_picture_and_equal_ranks_give_equal_bytes(
    methods: int | None, words: int, tmp_path: Path
) -> None:
    paths = [tmp_path / name for name in ("one.png", "two.png")]
    for path in paths:
        pictures.draw_card(path, "A title " * 12, "word " * words, methods and ranking(methods))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    picture = pixels(paths[0])
    assert picture.shape == (630, 1200, 3)
    ground = near(picture, pictures.GROUND)
    margin = np.ones_like(ground)
    margin[20:-20, 30:-30] = False
    assert ground[margin].all()
    assert not ground[20:-20, 30:-30].all()


def test_methods_that_cannot_be_told_from_the_best_are_coloured(tmp_path: Path) -> None:
    shares = []
    for group in (1, 2):
        pictures.draw_card(tmp_path / "card.png", "Title", "Sentence.", ranking(5, group))
        shares.append(near(pixels(tmp_path / "card.png"), pictures.ACCENT)[:500].sum())
    assert shares[0] > 1000
    assert shares[1] == 0


def test_methods_that_lack_a_task_are_not_drawn_among_the_others(tmp_path: Path) -> None:
    few, more = ranking(2), ranking(5)
    more.table["tasks"] = [3, 3, 2, 2, 2]
    few.table["high"] = more.table["high"][:2]
    for name, one in (("few", few), ("more", more)):
        pictures.draw_card(tmp_path / name, "Title", "Sentence.", one)
    assert (pixels(tmp_path / "few")[:500] == pixels(tmp_path / "more")[:500]).all()
