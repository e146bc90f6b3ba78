"""How ``bench`` starts and ends: every end has its exit code, and a wrong request is one line.

Commands are imported within ``main``, since an interrupt while they are is one like any other.
"""

from __future__ import annotations

import errno
import os
import sys

from bench.errors import RequestError


def main(words: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 something failed, 2 wrong request, 130 interrupted."""
    try:
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
        print(f"bench: {error}", file=sys.stderr)
        _drop_output()
        sys.exit(1 if error.errno == errno.ENOSPC else 2)
    sys.exit(code)


def _drop_output() -> None:
    """Leave out the rest of the output: Python would try to write it at the end, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
