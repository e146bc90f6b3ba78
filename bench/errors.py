"""Errors that a user can act on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class RequestError(Exception):
    """The request was wrong. The command line prints the message as one line and exits with 2.

    The message says what was expected, what was given and what to do.
    """


class BusyError(RequestError):
    """The database is locked or its server does not answer. A retry a little later may succeed."""


class NoDataError(RequestError):
    """Raw files of a data set are missing and cannot be downloaded; a sweep records ``no_data``."""


class NotApplicableError(Exception):
    """The method cannot do what the spec requires; the run ends as ``not_applicable``."""


class DivergedError(Exception):
    """A loss or a logit is no longer finite; a run ends as ``diverged``."""


def first_problem(error: ValidationError, section: str = "", with_input: bool = False) -> str:
    """Describe the first error of pydantic: key below ``section``, reason, and input if ``with_input``."""
    detail = error.errors()[0]
    place = ".".join(str(part) for part in (*filter(None, [section]), *detail["loc"]))
    return f"{place}: {detail['msg']}" + (f", got {detail['input']!r}" if with_input else "")


FEW = 12
"""Largest number of names that an error lists."""


def unknown(kind: str, name: str, names: Iterable[str]) -> RequestError:
    """Return the error for an unknown name, with the most similar name, or else with the existing names."""
    options = sorted(names)
    matches = difflib.get_close_matches(name, options, n=1)
    if matches:
        hint = f"did you mean '{matches[0]}'?"
    else:
        hint = f"there is {', '.join(options[:FEW]) or 'none'}{', ...' if len(options) > FEW else ''}"
    return RequestError(f"unknown {kind} '{name}': {hint}")
