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
from bench.studies.measures import MEASURES, Measure, NamedMeasure


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Claim:
    """``first`` less ``second`` lies in ``range``, at every place: a column of some tables at a point.

    Accuracies are compared client by client and seed by seed; a ``measure``, one number a run, by seed.
    """

    text: str
    first: tuple[str, ...]  #: titles of lines, of which the mean is compared
    second: tuple[str, ...]  #: the same; without a second the first itself lies in the range
    tables: tuple[str, ...]  #: experiments with all these lines
    reduced: tuple[str, ...] = ()  #: those that are read where none of ``tables`` was run
    source: str = ""  #: where the paper has it
    range: Interval = (0.0, math.inf)
    each: bool = False  #: the lowest of the first is compared with the highest of the second
    most: bool = False  #: at more than half of the places
    average: bool = False  #: in the mean over the places measured
    relative: bool = False  #: the difference is in percent of the second
    exact: bool = False  #: the numbers have no spread, and the ends of the range belong to it
    only: ColumnMatch = field(default_factory=ColumnMatch)  #: the columns that are meant
    points: tuple[str, str] | None = None  #: where the first is read, and the second
    second_clients: int | None = None  #: the second is read in the column of so many clients
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
    """The lists of claims in the files ``NAME.toml`` of a folder; ``measures`` are the study's own."""
    adapter, by_name = TypeAdapter(Claims), {**MEASURES, **{measure.name: measure for measure in measures}}
    lists = []
    for name in names:
        content = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
        lists.append(adapter.validate_python({"name": name, **content}, context=by_name))
    return tuple(lists)
