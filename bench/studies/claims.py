"""Claims that a paper makes in words or a study registers before its runs, as differences between lines."""

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
    """A claim: ``first`` minus ``second`` lies in ``range`` at every place (a table's column at a point).

    Accuracies are compared by client and seed. A ``measure`` has one number per run and is compared by seed.
    """

    text: str
    first: tuple[str, ...]  #: titles of lines; the mean of the lines is compared
    second: tuple[str, ...]  #: titles of lines; if empty, ``first`` itself lies in ``range``
    tables: tuple[str, ...]  #: experiments with all these lines
    reduced: tuple[str, ...] = ()  #: experiments that are read if none of ``tables`` was run
    source: str = ""  #: where the paper makes the claim
    range: Interval = (0.0, math.inf)
    each: bool = False  #: the lowest line of ``first`` is compared with the highest of ``second``
    most: bool = False  #: the claim is about more than half of the places
    average: bool = False  #: the claim is about the mean over the places measured
    relative: bool = False  #: the difference is in percent of ``second``
    exact: bool = False  #: the numbers have no spread, and the range includes its ends
    only: ColumnMatch = field(default_factory=ColumnMatch)  #: the claim is about these columns
    points: tuple[str, str] | None = None  #: points at which ``first`` and ``second`` are read
    second_clients: int | None = None  #: ``second`` is read in the column with this number of clients
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
    """Read the lists of claims in the files ``NAME.toml`` of a folder. ``measures`` are the study's own."""
    adapter, by_name = TypeAdapter(Claims), {**MEASURES, **{measure.name: measure for measure in measures}}
    lists = []
    for name in names:
        content = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
        lists.append(adapter.validate_python({"name": name, **content}, context=by_name))
    return tuple(lists)
