"""Where pages lie."""

from __future__ import annotations

from bench.leaderboard.folder import file_name

from .site_database import (
    EVIL,
)


def test_names_of_files_are_harmless_and_differ() -> None:
    assert file_name("fedsheafhn_released") == "fedsheafhn_released"
    for name in ("../../etc/passwd", "A", "a/b", "", "con.", "é", "x" * 300, EVIL, "a\0b", "index.html"):
        made = file_name(name)
        assert made != name
        assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-.")
        assert not made.startswith(".")
        assert len(made) < 80
    assert len({file_name(name).lower() for name in ("a", "A", "a/", "a.", " a")}) == 5
