"""``bench doctor``: what it finds, and that it says what to fix."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.cli.main import main


def outcome(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(["doctor"])
    return int(ended.value.code or 0), " ".join(capsys.readouterr().out.split())


def test_a_fresh_installation_has_nothing_to_fix(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = outcome(capsys)
    assert code == 0
    assert out.endswith("nothing to fix")
    assert "torch 2." in out
    assert "none yet: the first sweep makes it" in out
    assert re.search("ok data not at hand: [^:]* dblp4k", out)
    assert re.search("ok data embedded: [^:]* cora,", out)
    assert not home.exists()  # an examination leaves nothing behind


def test_a_database_that_is_none_is_to_be_fixed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    (home / "bench.db").write_text("no database at all")
    code, out = outcome(capsys)
    assert code == 1
    assert "fix database" in out
    assert out.endswith("1 to fix")


def test_a_home_that_is_a_file_is_to_be_fixed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.write_text("")
    code, out = outcome(capsys)
    assert code == 1
    assert "set BENCH_HOME to a folder" in out
