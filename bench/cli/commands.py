"""The commands of ``bench``: registers them, and runs the one that is asked for."""

from __future__ import annotations

import cyclopts

from bench import __version__
from bench.cli import checks, compare, data, listings, report, results, runs, sweep, tune
from bench.cli.output import Screen
from bench.errors import RequestError

app = cyclopts.App(
    name="bench",
    version=__version__,
    help="Benchmark personalised federated learning: published against measured, cell by cell.",
    default_parameter=cyclopts.Parameter(negative=()),
    console=Screen(),
    suppress_keyboard_interrupt=False,  # main says what an interrupt means
)
for command in (
    sweep.quickstart,
    sweep.sweep,
    tune.tune,
    report.report,
    report.leaderboard,
    compare.compare,
    listings.methods,
    listings.datasets,
    listings.grids,
    data.app,
    runs.app,
    results.export,
    results.verify,
    results.results,
    results.database,
    checks.check_method,
    checks.check_gpu,
    checks.doctor,
    checks.speed,
):
    app.command(command)
app.command(results.import_bundle, name="import")


def run(words: list[str]) -> int:
    """Run a command line; its exit code, 0 or 1. A wrong one is a ``RequestError``."""
    try:
        outcome = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except cyclopts.CycloptsError as error:
        raise RequestError(str(error)) from None
    return outcome if isinstance(outcome, int) else 0
