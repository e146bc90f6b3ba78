"""Which runs were made with a tuned configuration, and what its search was allowed and used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.spec import RunSpec
from bench.studies.source import Runs
from bench.tune.apply import Configuration
from bench.tune.record import Record


@dataclass(frozen=True)
class SearchSummary:
    """The search that found the configuration of a cell's runs.

    ``is_own``: by the user, not one that comes with the suite. ``counts`` are the trials that the searches
    behind a row used: its cells are those of one method, one total and one origin. ``other_settings`` is
    what the runs have otherwise than the cell's usual spec though it was not tuned: ``protocol.rounds=9``.
    """

    record: Record
    is_own: bool
    counts: frozenset[int]
    other_settings: str = ""

    @property
    def trials(self) -> int:
        """Trials that were asked for."""
        return self.record.budget.trials


def search_of(runs: Runs, find: Callable[[RunSpec], Configuration | None]) -> SearchSummary | None:
    """The search that ``find``, of ``bench.tune.apply.Configurations``, knows of all stored runs of a cell:
    the one whose winner they were made with.

    None where a run has a seed of the search. Studies whose budget was not used up are none, nor are those
    by code of other numerics.
    """
    configurations = (find(RunSpec.model_validate_json(spec)) for spec in runs["spec"])
    configuration = next(configurations)
    if configuration is None or any(candidate is not configuration for candidate in configurations):
        return None
    record = configuration.record
    return SearchSummary(record, configuration.own, frozenset({record.used.trials}))


def mark(search: SearchSummary) -> str:
    """What rows of tuned cells say: the trials that were granted, and before them those used where they
    are fewer. ``tuned here``: by a search of the user's own.
    """
    low, high = min(search.counts), max(search.counts)
    counts = "" if low == search.trials else f"{low} of " if low == high else f"{low} to {high} of "
    return f"tuned{' here' if search.is_own else ''}, {counts}{search.trials} trials"
