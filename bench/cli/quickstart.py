"""``bench quickstart``: some methods on data that comes with the suite, and a report on them."""

from __future__ import annotations

from pathlib import Path

from bench.cli.output import console, say

GRID = "quickstart"


def quickstart(*, out: Path = Path("report")) -> int:
    """Run six methods on Cora and report on them; the same command again finds every run done.

    Args:
        out: Folder for the report.
    """
    from bench.cli.report import report
    from bench.cli.sweep import sweep
    from bench.site import folder

    folder.check(out)
    if code := sweep(grid=GRID):
        return code
    report(grid=GRID, own=True, out=out)
    screen = console()
    say("", screen)
    say("Next: bench report                                what others have run", screen)
    say("      bench sweep --grid paper_tables --dry-run   what a whole table would cost", screen)
    return 0
