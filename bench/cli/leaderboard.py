"""``bench leaderboard``: the results as a site that can be shared."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from bench.cli.options import Database, Own, Shipped

app = App(name="leaderboard", help="Write the results as a site.")


@app.command
def build(
    *, out: Path = Path("site"), db: Database = None, own: Own = False, shipped: Shipped = False
) -> None:
    """Write a folder of pages in place of an earlier one; open its index.html, or put it on a web server."""
    from bench.engine.methods import METHODS
    from bench.site import folder, leaderboard
    from bench.studies.shipped import opened_results
    from bench.studies.study import STUDIES

    folder.check(out)  # before everything is read, which takes longer
    with opened_results(db, own, shipped=shipped) as source:
        runs = leaderboard.build(source, STUDIES.all(), METHODS.all(), out)
    print(f"{runs:,} runs: {out / folder.INDEX}")
