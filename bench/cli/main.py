"""Start and end of ``bench``: exit codes, and one line for a wrong request.

``main`` imports the commands, so that it also handles an interrupt during the import.
"""

from __future__ import annotations

import errno
import os
import sys
from functools import cache
from typing import TYPE_CHECKING

from bench import __version__
from bench.errors import RequestError

if TYPE_CHECKING:
    from cyclopts import App


def main(words: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 something failed, 2 wrong request, 130 interrupted."""
    try:
        code = _run(sys.argv[1:] if words is None else words)
        sys.stdout.flush()
    except RequestError as error:
        print("bench: " + " ".join(str(error).split()), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("bench: interrupted; the next call continues from here", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the output's reader has ended, for example `bench datasets | head`
        _drop_output()
        sys.exit(0)
    except OSError as error:
        print(f"bench: {error}", file=sys.stderr)
        _drop_output()
        sys.exit(1 if error.errno == errno.ENOSPC else 2)
    sys.exit(code)


def _drop_output() -> None:
    """Discard the rest of the output. Otherwise Python writes the rest at its exit, and fails again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    """Run a command line and return its exit code, 0 or 1. A wrong line raises ``RequestError``."""
    from cyclopts import CycloptsError

    try:
        outcome = commands()(words, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        raise RequestError(str(error)) from None
    return outcome if isinstance(outcome, int) else 0


@cache
def commands() -> App:
    """The commands of ``bench``."""
    from cyclopts import App, Parameter

    from bench.cli import checks, listings, report, results, runs, sweep, tune
    from bench.cli.output import Screen

    app = App(
        name="bench",
        version=__version__,
        help="Benchmark personalised federated learning: published against measured, cell by cell.",
        default_parameter=Parameter(negative=()),
        console=Screen(),
        suppress_keyboard_interrupt=False,  # main handles interrupts
    )
    for command in (
        sweep.quickstart,
        sweep.sweep,
        tune.tune,
        report.report,
        report.leaderboard,
        sweep.compare,
        listings.methods,
        listings.datasets,
        listings.grids,
        listings.data,
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
    return app
