"""The commands of ``bench``: registers the groups, and runs the one that is asked for."""

from __future__ import annotations

import cyclopts

from bench import __version__
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
for name, place, summary in (
    ("quickstart", "sweep:quickstart", "Run six methods on Cora and report on them."),
    ("sweep", "sweep:sweep", "Run what is not done yet of a grid."),
    ("tune", "tune:tune", "Find every method's best configuration with one budget for all."),
    ("report", "report:report", "Write tables and figures, published beside measured."),
    ("compare", "compare:compare", "Run your own method and say where it stands among the others."),
    ("leaderboard", "leaderboard:app", "Write the results as a site."),
    ("methods", "listings:methods", "List the methods, or describe one with its hyper-parameters."),
    ("datasets", "listings:datasets", "List the data sets and say which are at hand, or describe one."),
    ("scenarios", "listings:scenarios", "List the scenarios, and the numbers of clients that they take."),
    ("grids", "listings:grids", "List the grids that come with the suite, or describe one."),
    ("runs", "runs:app", "List runs, show one, and say what runs now."),
    ("export", "results:export", "Write results as a bundle of files that others can read."),
    ("import", "results:import_bundle", "Check a bundle and write its runs into the database."),
    ("verify", "results:verify", "Make a sample of a bundle's runs again and compare."),
    ("results", "results:results", "Keep a folder of results with one bundle a study and data set."),
    ("check-method", "checks:check_method", "Check your own method file, and say what to mend."),
    ("check-gpu", "checks:check_gpu", "Run on a GPU what only a GPU can show."),
    ("doctor", "checks:doctor", "Report the environment and say what to fix."),
    ("data", "data:app", "Fetch and describe data sets, and exchange their clients."),
    ("db", "results:database", "Bring the database's schema up to date."),
    ("speed", "checks:speed", "Measure seconds a round, or of whole runs."),
):
    app.command(f"bench.cli.{place}", name=name, help=summary)  # imported on use: each needs other libraries


def _say_all(words: list[str]) -> None:
    """Let the command that is asked for show its docstring: the summary is for the list of commands."""
    _, (_, *commands), _ = app.parse_commands(words)
    for command in commands[:1]:
        if command.default_command is not None:
            command.help = command.default_command.__doc__


def run(words: list[str]) -> int:
    """Run a command line; its exit code, 0 or 1. A wrong one is a ``RequestError``."""
    try:
        _say_all(words)
        outcome = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except cyclopts.CycloptsError as error:
        raise RequestError(str(error)) from None
    return outcome if isinstance(outcome, int) else 0
