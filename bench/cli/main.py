"""The ``bench`` command: registers the groups and turns a wrong request into one line and exit code 2."""

from __future__ import annotations

import sys

import cyclopts

from bench import __version__
from bench.cli.data import app as data
from bench.cli.db import app as db
from bench.cli.report import report
from bench.cli.runs import app as runs
from bench.cli.speed import speed
from bench.cli.sweep import sweep
from bench.errors import RequestError

app = cyclopts.App(
    name="bench",
    version=__version__,
    help="Benchmark personalised federated learning: published against measured, cell by cell.",
    default_parameter=cyclopts.Parameter(negative=()),
)
app.command(sweep)
app.command(report)
app.command(speed)
app.command(data)
app.command(runs)
app.command(db)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 something failed, 2 wrong request, 130 interrupted."""
    try:
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
