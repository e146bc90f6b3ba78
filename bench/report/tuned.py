"""Which runs were made with a tuned configuration, and what its search was allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bench.spec import RunSpec
from bench.tune.apply import configurations
from bench.tune.record import Record

Tuned = Callable[[Iterable[str]], Record | None]
"""Specs (canonical JSON) of the runs of a cell -> the study that found their configuration, or None."""


def tuned() -> Tuned:
    """Looks specs up among the configurations at hand: the user's own, and those of the suite.

    Runs count as tuned where every one of them was made with the same study's winner, and none has a
    seed of the search. Studies whose budget was not used up are no configurations.

    Raises:
        RequestError: a file of a configuration is damaged.
    """
    known = configurations()

    def found(specs: Iterable[str]) -> Record | None:
        behind = [known.behind(RunSpec.model_validate_json(spec)) for spec in specs]
        records = {each.record.study: each.record for each in behind if each is not None}
        return next(iter(records.values())) if None not in behind and len(records) == 1 else None

    return found


def mark(record: Record) -> str:
    """What rows of tuned cells say."""
    return f"tuned, {record.budget.trials} trials"


def budget(record: Record) -> str:
    """The budget in full."""
    seeds = ", ".join(map(str, record.seeds))
    return (
        f"{record.budget.trials} trials and {record.budget.client_epochs:,.0f} client epochs, by validation "
        f"accuracy of seeds {seeds}"
    )
