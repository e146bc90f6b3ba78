"""``bench report`` and ``bench leaderboard`` as a user calls them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from site_database import fill

from .conftest import Bench


@pytest.mark.slow
def test_build_writes_the_site_of_a_database(bench: Bench, tmp_path: Path) -> None:
    out, database = tmp_path / "new" / "site", f"sqlite:///{tmp_path / 'bench.db'}"
    fill(database)
    code, text, error = bench(f"leaderboard build --out {out} --db {database} --own")
    assert (code, error) == (0, "")
    assert str(out / "index.html") in text
    # real studies: Cora's board of FedSheafHN holds the runs
    page = (out / "board" / "fedsheafhn-cora.html").read_text()
    assert re.search(r'>76\.50 <span class="std"[^>]*>± 2\.65</span>', page)
    assert [path.name for path in out.parent.iterdir()] == ["site"]
