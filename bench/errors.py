"""Errors that a user can act on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class RequestError(Exception):
    """The request was wrong. The command line prints the message as one line and exits with 2.

    The message says what was expected, what came and what to do.
    """


class BusyError(RequestError):
    """The database is locked or its server is away; the same may succeed a little later."""


class NoDataError(RequestError):
    """A data set's raw files are neither at hand nor to be had; a sweep records ``no_data``."""


class NotApplicableError(Exception):
    """The method cannot do what the spec asks of it; a run ends as ``not_applicable``."""


class DivergedError(Exception):
    """A loss or a logit is no longer finite; a run ends as ``diverged``."""


def first_problem(error: ValidationError, section: str = "", with_input: bool = False) -> str:
    """The first thing that pydantic refused: where, below a ``section``, and why; what came, if asked for."""
    detail = error.errors()[0]
    place = ".".join(str(part) for part in (*filter(None, [section]), *detail["loc"]))
    return f"{place}: {detail['msg']}" + (f", got {detail['input']!r}" if with_input else "")


FEW = 12
"""An error lists up to so many names."""


def unknown(kind: str, name: str, names: Iterable[str]) -> RequestError:
    """The error for a name that does not exist, with the one that may be meant, or with those there are."""
    options = sorted(names)
    matches = difflib.get_close_matches(name, options, n=1)
    if matches:
        hint = f"did you mean '{matches[0]}'?"
    else:
        hint = f"there is {', '.join(options[:FEW]) or 'none'}{', ...' if len(options) > FEW else ''}"
    return RequestError(f"unknown {kind} '{name}': {hint}")
