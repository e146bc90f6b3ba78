"""The ``bench`` command: registers the groups and turns a wrong request into one line and exit code 2."""

from __future__ import annotations

import sys

import cyclopts

from bench import __version__
from bench.errors import RequestError

app = cyclopts.App(
    name="bench",
    version=__version__,
    help="Benchmark personalised federated learning: published against measured, cell by cell.",
    default_parameter=cyclopts.Parameter(negative=()),
    suppress_keyboard_interrupt=False,  # main says what an interrupt means
)
for name, place, summary in (
    ("sweep", "bench.cli.sweep:sweep", "Run what is not done yet of a grid."),
    ("tune", "bench.cli.tune:tune", "Find every method's best configuration with one budget for all."),
    ("report", "bench.cli.report:report", "Write tables and figures, published beside measured."),
    ("compare", "bench.cli.compare:compare", "Run your own method and say where it stands among the others."),
    ("leaderboard", "bench.cli.leaderboard:app", "Write the results as a site, or serve it."),
    ("export", "bench.cli.export:export", "Write results as a bundle of files that others can read."),
    ("import", "bench.cli.import_:import_", "Check a bundle and write its runs into the database."),
    ("verify", "bench.cli.verify:verify", "Make a sample of a bundle's runs again and compare."),
    ("runs", "bench.cli.runs:app", "List runs, and show one with the command that makes it."),
    (
        "check-method",
        "bench.cli.check_method:check_method",
        "Check your own method file, and say what to mend.",
    ),
    ("check-gpu", "bench.cli.check_gpu:check_gpu", "Run on a GPU what only a GPU can show."),
    ("doctor", "bench.cli.doctor:doctor", "Report the environment and say what to fix."),
    ("data", "bench.cli.data:app", "List, fetch, check and describe the data sets."),
    ("db", "bench.cli.db:app", "Check the database or bring its schema up to date."),
    ("speed", "bench.cli.speed:speed", "Measure seconds a round, or of whole runs."),
):
    app.command(place, name=name, help=summary)  # imported on use: each needs other libraries


def _say_all(arguments: list[str] | None) -> None:
    """Let the command that is asked for show its docstring: the summary is for the list of commands."""
    _, (_, *asked), _ = app.parse_commands(arguments)
    for command in asked[:1]:
        if command.default_command is not None:
            command.help = command.default_command.__doc__


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 something failed, 2 wrong request, 130 interrupted."""
    try:
        _say_all(arguments)
        outcome = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except (RequestError, cyclopts.CycloptsError) as error:
        print("bench: " + " ".join(str(error).split()), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("bench: interrupted; the next call continues from here", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away, for example `bench data list | head`
        sys.stderr.close()
        sys.exit(0)
    sys.exit(outcome if isinstance(outcome, int) else 0)
