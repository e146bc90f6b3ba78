"""What a paper says in words, or a study registers before its runs, as differences that runs can show."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable

from pydantic import ConfigDict, TypeAdapter, with_config

from bench.grids.grid import ColumnMatch
from bench.statistics.summary import Interval
from bench.studies.measures import Measure, NamedMeasure

ABOVE: Interval = (0.0, math.inf)
"""The range of a difference whose first side is the higher one."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Claim:
    """``first`` less ``second`` lies in ``range``, at every place: a column of some tables at a point.

    - ``first`` and ``second`` are titles of lines, of which the mean is compared; with ``each`` the lowest of
      the first and the highest of the second. Without a second the first itself lies in the range.
    - ``tables`` and ``reduced`` are names of experiments with all these lines; the latter are read where none
      of the former was run. ``source`` says where the paper has it.
    - ``only`` are the columns that are meant. With ``points`` the first is read at the one point, the second
      at the other, with ``second_clients`` the second in the column of so many clients.
    - ``most`` asks for more than half of the places, ``average`` for the mean over those measured.
    - Accuracies are compared client by client and seed by seed; a ``measure``, one number a run, by seed.
    - With ``relative`` the difference is in percent of the second. With ``exact`` the numbers have no spread,
      and the ends of the range belong to it.
    """

    text: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    tables: tuple[str, ...]
    reduced: tuple[str, ...] = ()
    source: str = ""
    range: Interval = ABOVE
    each: bool = False
    most: bool = False
    average: bool = False
    relative: bool = False
    exact: bool = False
    only: ColumnMatch = field(default_factory=ColumnMatch)
    points: tuple[str, str] | None = None
    second_clients: int | None = None
    measure: NamedMeasure = None


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Claims:
    """A list of claims with a document of its own."""

    name: str
    title: str
    claims: tuple[Claim, ...]
    remarks: tuple[str, ...] = ()


def read_claims(folder: Traversable, names: Iterable[str], measures: Iterable[Measure]) -> tuple[Claims, ...]:
    """The lists of claims in the files ``NAME.toml`` of a folder, which call measures by their names."""
    adapter, by_name = TypeAdapter(Claims), {measure.name: measure for measure in measures}
    lists = []
    for name in names:
        content = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
        lists.append(adapter.validate_python({"name": name, **content}, context=by_name))
    return tuple(lists)
