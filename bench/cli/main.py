"""How ``bench`` starts and ends: every end has its exit code, and a wrong request is one line.

Commands are imported within ``main``, since an interrupt while they are is one like any other.
"""

from __future__ import annotations

import errno
import os
import re
import sys

from bench.errors import RequestError

WIDTH = re.compile("[2-9][0-9]|[1-9][0-9]{2,3}")
"""Columns that a terminal may have; rich, which writes tables, would print nothing in none."""


def main(words: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 something failed, 2 wrong request, 130 interrupted."""
    try:
        _settle_streams()
        _check_working_directory()
        from bench.cli.commands import run

        code = run(sys.argv[1:] if words is None else words)
        sys.stdout.flush()
    except RequestError as error:
        print("bench: " + " ".join(str(error).split()), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("bench: interrupted; the next call continues from here", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away, for example `bench datasets | head`
        _drop_output()
        sys.exit(0)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sys.stderr.write(f"bench: {error}\n")
        _drop_output()
        sys.exit(1)
    sys.exit(code)


def _settle_streams() -> None:
    """Ignore a width that no terminal has, and let what goes to a stream closed by ``>&-`` go nowhere."""
    if not WIDTH.fullmatch(os.environ.get("COLUMNS", "")):
        os.environ.pop("COLUMNS", None)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - till the end


def _check_working_directory() -> None:
    """Raises ``RequestError`` where somebody has deleted it; libraries fail on that at many places."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise RequestError("the working directory was deleted: change into another folder") from None


def _drop_output() -> None:
    """Leave out the rest of the output: Python would try to write it at the end, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
