"""``bench doctor``: what it finds, and that it says what to fix."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import Bench


def test_a_fresh_installation_has_nothing_to_fix(home: Path, bench: Bench) -> None:
    ended = bench("doctor")
    out = " ".join(ended.out.split())
    assert ended.code == 0
    assert out.endswith("nothing to fix")
    assert "torch 2." in out
    assert re.search("ok data not at hand: [^:]* dblp4k", out)
    assert re.search("ok data embedded: [^:]* cora,", out)
    assert not home.exists()  # an examination leaves nothing behind


@pytest.mark.parametrize(
    ("file", "words"), [("home/bench.db", "fix database"), ("home", "set BENCH_HOME to a folder")]
)
def test_a_database_or_a_home_that_is_none_is_to_be_fixed(
    file: str, words: str, tmp_path: Path, bench: Bench
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("no database at all")
    ended = bench("doctor")
    assert ended.code == 1
    assert words in " ".join(ended.out.split())
