"""``bench grids``: every grid that comes with the suite, with as many runs as a sweep of it plans."""

from __future__ import annotations

import json

from bench.grids import grid_names, load_grid

from .conftest import Bench


def test_every_grid_has_its_study_title_and_number_of_runs(bench: Bench) -> None:
    rows = {row["name"]: row for row in json.loads(bench("grids --json").out)}
    assert sorted(rows) == grid_names()
    assert rows["fedhgn_tables"]["study"] == "fedhgn"
    assert rows["ablation"]["title"] == load_grid("ablation").title
    planned = json.loads(bench("sweep --grid quickstart --dry-run --json").out)
    assert rows["quickstart"]["runs"] == len(planned["runs"])


def test_the_list_has_each_below_its_study(bench: Bench) -> None:
    lines = [line.split() for line in bench("grids").out.splitlines()]
    study, grid = lines.index(["fedhgn"]), [line[:1] for line in lines].index(["fedhgn_tables"])
    assert study < grid < lines.index(["fedsheafhn"])
