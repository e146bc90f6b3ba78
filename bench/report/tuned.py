"""Which runs were made with a tuned configuration, and what its search was allowed and used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.report.source import Runs
from bench.spec import RunSpec
from bench.tune.apply import Configuration
from bench.tune.record import Record
from bench.tune.tuning import Tuning


@dataclass(frozen=True)
class Search:
    """The study that found the configuration of a cell's runs.

    ``own``: by the user, not one that comes with the suite. ``elsewhere`` says whether some of the runs were
    made on other clients than the search. ``counts`` are the trials that the studies behind a row used: its
    cells are those of one method, one total and one origin.
    """

    record: Record
    own: bool
    elsewhere: bool
    counts: frozenset[int]

    @property
    def granted(self) -> int:
        """Trials that were asked for."""
        return self.record.budget.trials

    @property
    def changes(self) -> tuple[str, ...]:
        """What the winner has otherwise than the default, such as ``client.dropout=0.0``."""
        record = self.record
        default = Tuning(record.spec, record.space, record.seeds, record.budget.trials).default
        return tuple(
            f"{key}={value}" for key, value in record.winner.overrides.items() if value != default[key]
        )


def search_of(runs: Runs, find: Callable[[RunSpec], Configuration | None]) -> Search | None:
    """The search that ``find``, of ``bench.tune.apply.Configurations``, knows of all stored runs of a cell:
    the one whose winner they were made with (``behind``), or that the default configuration won in which they
    were made (``kept``).

    None where a run has a seed of the search. Studies whose budget was not used up are none, nor are those
    by code of other numerics.
    """
    found = (find(RunSpec.model_validate_json(spec)) for spec in runs["spec"])
    first = next(found)
    if first is None or any(each is not first for each in found):
        return None
    record = first.record
    elsewhere = bool((runs["partition_hash"][runs["state"] == "done"] != record.clients).any())
    return Search(record, first.own, elsewhere, frozenset({record.used.trials}))


def mark(search: Search) -> str:
    """What rows of tuned cells say: the trials that were granted, and before them those used where they
    are fewer. ``tuned here``: by a search of the user's own.
    """
    least, most = min(search.counts), max(search.counts)
    used = "" if least == search.granted else f"{least} of " if least == most else f"{least} to {most} of "
    return f"tuned{' here' if search.own else ''}, {used}{search.granted} trials"


def budget(search: Search) -> str:
    """The budget that was granted, and whether the search was on other clients."""
    record = search.record
    seeds = ", ".join(map(str, record.seeds))
    text = (
        f"{record.budget.trials} trials and {record.budget.client_epochs:,.0f} client epochs at most, by "
        f"validation accuracy of seed{'s' if len(record.seeds) > 1 else ''} {seeds}"
    )
    if not search.elsewhere:
        return text
    return (
        f"{text}, searched on the clients {record.clients[:8]} (partition "
        f"{record.spec.protocol.partition_seed}), reported on others, whose test items the search may have "
        "trained or validated on"
    )
