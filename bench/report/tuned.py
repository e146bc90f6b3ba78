"""Which runs were made with a tuned configuration, and what its search was allowed and used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.spec import RunSpec
from bench.tune.apply import configurations
from bench.tune.record import Record


@dataclass(frozen=True)
class Search:
    """The study that found the configuration of a cell's runs.

    ``elsewhere`` says whether some of the runs have another partition than the search had. ``counts`` are
    the trials that the studies behind a row used: its cells are those of one method and one total.
    """

    record: Record
    elsewhere: bool
    counts: frozenset[int]

    @property
    def granted(self) -> int:
        """Trials that were asked for."""
        return self.record.budget.trials


Tuned = Callable[[Iterable[str]], Search | None]
"""Specs (canonical JSON) of the runs of a cell -> the study that found their configuration, or None."""


def tuned() -> Tuned:
    """Looks specs up among the configurations at hand: the user's own, and those of the suite.

    Runs count as tuned where every one of them was made with the same study's winner, and none has a
    seed of the search. Studies whose budget was not used up are no configurations, and where the default
    configuration won, its runs are the default's.

    Raises:
        RequestError: a file of a configuration is damaged.
    """
    known = configurations()

    def found(specs: Iterable[str]) -> Search | None:
        runs = [RunSpec.model_validate_json(spec) for spec in specs]
        behind = [known.behind(run) for run in runs]
        records = {each.record.study: each.record for each in behind if each is not None}
        if None in behind or len(records) != 1:
            return None
        (record,) = records.values()
        searched = record.spec.protocol.partition_seed
        elsewhere = any(run.protocol.partition_seed != searched for run in runs)
        return Search(record, elsewhere, frozenset({record.used.trials}))

    return found


def mark(search: Search) -> str:
    """What rows of tuned cells say: the trials that were granted, and before them those used where they
    are fewer.
    """
    least, most = min(search.counts), max(search.counts)
    used = "" if least == search.granted else f"{least} of " if least == most else f"{least} to {most} of "
    return f"tuned, {used}{search.granted} trials"


def budget(search: Search) -> str:
    """The budget in full, what was used of it, and whether the search was on another partition."""
    record = search.record
    seeds = ", ".join(map(str, record.seeds))
    text = (
        f"{_of(record.used.trials, record.budget.trials)} trials and "
        f"{_of(record.used.client_epochs, record.budget.client_epochs)} client epochs, by validation "
        f"accuracy of seeds {seeds}"
    )
    if not search.elsewhere:
        return text
    return (
        f"{text}, searched on partition {record.spec.protocol.partition_seed}, reported on others, whose "
        "test items the search may have trained or validated on"
    )


def _of(used: float, granted: float) -> str:
    """``17 of 20``, or ``20`` where all of it was used."""
    texts = [f"{used:,.0f}", f"{granted:,.0f}"]
    return texts[1] if texts[0] == texts[1] else " of ".join(texts)
