"""What papers say that they searched or set, beside the suite's own spaces."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bench.studies.published import rows_of
from bench.studies.study import STUDIES, Study
from bench.tune.record import Record
from bench.tune.tuning import Tuning, Value

FILE = "hyperparameters.csv"


class PublishedSetting(NamedTuple):
    """A row of ``hyperparameters.csv``: the values of one hyper-parameter of a paper's component, as printed.

    ``values`` are separated by semicolons, a range has a dash. ``method`` and ``setting`` (a dotted key as
    ``--set`` takes it) are the suite's for it, both empty where it has none.
    """

    paper: str
    component: str
    name: str
    values: str
    method: str
    setting: str

    @property
    def text(self) -> str:
        """The values as tables show them."""
        return self.values.replace(";", ", ")


def published_settings(study: Study) -> tuple[PublishedSetting, ...]:
    """What the papers of a study's tables say of settings that the suite has, in the file's order.

    Empty where there is no ``hyperparameters.csv`` in the study's folder of published numbers.

    Raises:
        RequestError: the file lacks a column.
    """
    return tuple(row for row in _read_settings(study.published) if row.paper in study.papers and row.setting)


@cache
def _read_settings(folder: Path) -> tuple[PublishedSetting, ...]:
    file = folder / FILE
    if not file.is_file():
        return ()
    fields = PublishedSetting._fields
    rows = rows_of(file, fields, "settings")
    return tuple(PublishedSetting(*(row[name] for name in fields)) for row in rows)


def searched_values(searches: Iterable[Record | Tuning], setting: str) -> str:
    """The values of a setting that searches tried, or the one that it had in all of them."""
    values: dict[Value, None] = {}
    for search in searches:
        values |= dict.fromkeys(search.space.get(setting, (search.spec.settings().get(setting, "-"),)))
    numbers = sorted(value for value in values if not isinstance(value, str))
    return ", ".join(map(str, numbers or values))


def published_lines(tunings: Iterable[Tuning]) -> list[str]:
    """One line a setting of a tuned method that a study's papers print, with the values searched here."""
    of_method: dict[str, list[Tuning]] = {}
    for tuning in tunings:
        of_method.setdefault(tuning.spec.method, []).append(tuning)
    rows = (row for study in STUDIES.all().values() for row in published_settings(study()))
    return [
        f"{row.method} {row.setting}: {row.text} in {row.paper} ({row.component}, {row.name}), here "
        f"{searched_values(of_method[row.method], row.setting)}"
        for row in dict.fromkeys(rows)
        if row.method in of_method
    ]
