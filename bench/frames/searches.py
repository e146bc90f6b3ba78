"""Which runs were made in settings that a search found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

import pandas as pd

from bench.engine.methods import METHODS
from bench.studies.settings import Settings, difference_text
from bench.tune.apply import Configuration

DEFAULT, TUNED, OTHER = "default", "tuned", "other settings"
"""Values of the column ``tuning``."""

SettingsOf = dict[str, Settings]
"""Cell -> its settings by dotted key."""


def with_searches(
    runs: pd.DataFrame,
    settings: SettingsOf,
    references: Mapping[str, Settings],
    searches: Sequence[Configuration],
) -> pd.DataFrame:
    """The runs with ``tuning`` and ``search``, and with the mark of the search in ``setting``.

    Settings of one method, one total of trials and one origin have one mark, and with it one line over all
    columns, also where some of the searches used fewer trials.
    """
    by_family = _searches_by_family(searches)
    candidates = runs[runs["family"].isin(by_family.keys()) & ~runs["special"] & runs["counted"]]
    rows = []
    for cell, cell_runs in candidates.groupby("cell"):
        search = _search_of(cell_runs, by_family[cell_runs["family"].iloc[0]])
        if search:
            rows.append((cell, cell_runs["method"].iloc[0], cell_runs["setting"].iloc[0], search))
    found = pd.DataFrame(rows, columns=["cell", "method", "setting", "configuration"]).set_index("cell")
    numbers = {id(search): number for number, search in enumerate(searches)}
    found["search"] = pd.array([numbers[id(search)] for search in found["configuration"]], "Int64")
    tuned = found[found["setting"] != ""].copy()
    tuned["rest"] = [
        _difference_outside(search.record.space, settings[cell], references[cell])
        for cell, search in zip(tuned.index, tuned["configuration"], strict=True)
    ]
    tuned["trials"] = [search.record.budget.trials for search in tuned["configuration"]]
    tuned["used"] = [search.record.used.trials for search in tuned["configuration"]]
    tuned["own"] = [search.own for search in tuned["configuration"]]
    used = tuned.groupby(["method", "trials", "own"])["used"]
    tuned["low"], tuned["high"] = used.transform("min"), used.transform("max")
    marks = [mark(*row) for row in tuned[["own", "low", "high", "trials"]].itertuples(index=False)]
    tuned["marked"] = [
        ";".join(filter(None, (mark, rest))) for mark, rest in zip(marks, tuned["rest"], strict=True)
    ]
    setting = runs["cell"].map(tuned["marked"]).astype(object).fillna(runs["setting"])
    tuning = setting.eq("").map({True: DEFAULT, False: OTHER})
    is_tuned = runs["cell"].isin(tuned.index[tuned["rest"] == ""])
    return runs.assign(
        setting=setting,
        tuning=tuning.mask(is_tuned, TUNED),
        search=runs["cell"].map(found["search"]).astype("Int64"),
    )


def _searches_by_family(searches: Iterable[Configuration]) -> dict[str, list[Configuration]]:
    """The searches by the installed code whose winner, or kept default, are runs of a family."""
    by_family: dict[str, list[Configuration]] = defaultdict(list)
    for search in searches:
        spec = search.record.spec
        if spec.method in METHODS.all() and search.current:
            by_family[search.apply(spec).cell_on_any_partition].append(search)
    return dict(by_family)


def _search_of(runs: pd.DataFrame, configurations: Iterable[Configuration]) -> Configuration | None:
    """The one search behind all runs of a cell; None where a run has a seed of the search.

    Of usual settings it is the search that they won.
    """
    is_default = runs["setting"].iloc[0] == ""
    family = runs["family"].iloc[0]
    fitting = [
        configuration
        for configuration in configurations
        if (configuration.record.spec.cell_on_any_partition == family) == is_default
    ]
    first, *others = (
        next((search for search in fitting if seed not in search.record.seeds), None) for seed in runs["seed"]
    )
    return first if all(search is first for search in others) else None


def _difference_outside(keys: Collection[str], settings: Settings, reference: Settings) -> str:
    """The difference of settings from others, apart from some keys."""
    rest, other = (
        {key: value for key, value in values.items() if key not in keys} for values in (settings, reference)
    )
    return difference_text(rest, other)


def mark(is_own: bool, low: int, high: int, trials: int) -> str:
    """What lines of tuned cells say: the trials granted, and the trials used where these are fewer."""
    counts = "" if low == trials else f"{low} of " if low == high else f"{low} to {high} of "
    return f"tuned{' here' if is_own else ''}, {counts}{trials} trials"
