"""``bench grids``: the grids that come with the suite."""

from __future__ import annotations

import json
from dataclasses import asdict

from bench.cli.options import AsJson
from bench.cli.output import console, say, table


def grids(*, as_json: AsJson = False) -> None:
    """List the grids: the study that each is of, how many runs it plans, and what it is.

    'bench sweep --grid NAME --dry-run' says what of one is done and what the rest costs. A TOML file of your
    own is a grid, too (docs/extending.md).
    """
    from bench.grids.summary import grid_summaries

    summaries = grid_summaries()
    if as_json:
        print(json.dumps([asdict(summary) for summary in summaries], indent=1))
        return
    studies: dict[str, list[tuple[str, str, str]]] = {}
    for grid in summaries:
        studies.setdefault(grid.study, []).append((grid.name, f"{grid.runs:,}", grid.title))
    console().print(table(("grid", "runs", "what"), studies, right={"runs"}, whole={"grid", "runs"}))
    say(f"{len(summaries)} grids; bench sweep --grid NAME --dry-run says what one would cost")
