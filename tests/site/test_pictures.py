"""Small pictures in the rows of a board."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from pages import BOARD

from bench.site.pictures import Scale, usual_ends


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
