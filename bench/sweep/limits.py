"""When a sweep stops before everything is done, and for how long a run may take."""

from __future__ import annotations

from dataclasses import dataclass

from bench.errors import RequestError


@dataclass(frozen=True)
class Limits:
    """Failures after which nothing new starts, seconds that a run may take, seconds that the sweep
    may take; None where there is no such limit.
    """

    failures: int | None = None
    timeout: float | None = None
    budget: float | None = None


def checked(
    fail_fast: bool,
    max_failures: int | None,
    timeout: float | None,
    budget_hours: float | None,
    checkpoint_minutes: float = 1.0,
) -> Limits:
    """The limits that the command line's options name.

    Raises:
        RequestError: a limit that is not positive, or two numbers of failures at once.
    """
    for option, value in (
        ("--max-failures", max_failures),
        ("--timeout", timeout),
        ("--budget-hours", budget_hours),
        ("--checkpoint-minutes", checkpoint_minutes),
    ):
        if value is not None and not value > 0:
            raise RequestError(f"{option} expects more than 0, got {value:g}")
    if fail_fast and max_failures is not None:
        raise RequestError("--fail-fast and --max-failures exclude each other: --fail-fast stops after one")
    return Limits(1 if fail_fast else max_failures, timeout, budget_hours * 3600 if budget_hours else None)
