"""Small pictures in the rows of a board."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
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


def test_an_axis_leaves_room_to_most_values() -> None:
    means = [39.0, 80.0, 81.0, 82.0, 83.0, 84.0]
    low, high = np.quantile(means, (0.25, 0.75))
    rows = pd.DataFrame({"mean": means, "high": [np.nan, np.nan, np.nan, np.nan, 86.0, 99.0]})
    ends = usual_ends(rows, ["mean"], ["high"])
    assert set(ends) == {end for end in (*means, 86.0, 99.0) if 2 * low - high <= end <= 2 * high - low}
    assert (ends.min(), 99.0 in set(ends)) == (80.0, False)


def test_a_difference_is_a_bar_as_long_as_it_is_large(site: Path) -> None:
    text = (site / BOARD).read_text(encoding="utf-8")
    lengths = {}
    for row in re.findall(r'<tr id="[^"]+" class="row".*?</tr>', text, re.DOTALL):
        number = re.search(r">([+-][\d.]+)<svg", row)
        bar = re.search(r'class="bar" x1="([\d.]+)%" x2="([\d.]+)%"', row)
        assert bool(number) == bool(bar)
        if number and bar:
            lengths[float(number[1])] = float(bar[2]) - float(bar[1])
    assert len(lengths) > 1
    by_task = {round(length / difference, 1) for difference, length in lengths.items()}
    assert len(by_task) < len(lengths)  # one factor a task
    assert min(by_task) > 0
