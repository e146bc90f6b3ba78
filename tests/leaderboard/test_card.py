"""The picture that other sites show beside a link to a page."""

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

from .site_database import build_site


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


@pytest.mark.parametrize("words", [1, 200])
@pytest.mark.parametrize("methods", [2, 40])
def test_all_stays_within_the_picture_and_equal_ranks_give_equal_bytes(
    methods: int, words: int, tmp_path: Path
) -> None:
    paths = [tmp_path / name for name in ("one.png", "two.png")]
    for path in paths:
        pictures.draw_card(path, "A title " * 12, "word " * words, ranking(methods))
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


def test_no_ranking_is_no_reason_to_have_no_picture(tmp_path: Path) -> None:
    pictures.draw_card(tmp_path / "card.png", "Title", "No two methods were measured yet.", None)
    assert pixels(tmp_path / "card.png").shape == (630, 1200, 3)


def test_every_page_names_the_picture_with_its_size_and_what_it_says(site: Path) -> None:
    headline = re.search(r'class="headline">([^<]+)<', (site / "index.html").read_text())
    assert headline
    for path in site.rglob("*.html"):
        named = dict(
            re.findall(r'(?:property|name)="((?:og:image|twitter)[^"]*)" content="([^"]+)"', path.read_text())
        )
        with Image.open(path.parent / named["og:image"]) as image:
            assert image.format == "PNG"
            assert image.size == (int(named["og:image:width"]), int(named["og:image:height"])) == (1200, 630)
        assert named["og:image:alt"] == headline[1]
        assert named["twitter:card"] == "summary_large_image"


def test_a_site_that_is_built_again_has_the_same_picture(site: Path, database: str, tmp_path: Path) -> None:
    build_site(database, tmp_path / "again")
    assert (tmp_path / "again/assets/card.png").read_bytes() == (site / "assets/card.png").read_bytes()
