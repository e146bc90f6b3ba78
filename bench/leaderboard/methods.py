"""What a method's page says of it: from its class, and from the rows and runs that it has."""

from __future__ import annotations

import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from bench.hyper import HyperParameters
from bench.leaderboard.rows import RunLink, links
from bench.report.settings import Column, difference

if TYPE_CHECKING:
    from bench.engine.method import Method

Text = tuple[tuple[str, bool], ...]
"""A paragraph: pieces of text, and whether each is code."""

NOT_HERE = "This method is not installed here: nothing is known of it but its runs."


@dataclass(frozen=True)
class HyperParameter:
    """A hyper-parameter: its name, default, values that tuning may try, and what it does."""

    name: str
    default: str
    search: str
    meaning: str


@dataclass(frozen=True)
class About:
    """A method's description. ``family`` is the title of the method that it is built on in the end."""

    name: str
    reference: str = ""
    preset_of: str = ""
    family: str = "not installed"
    data: tuple[str, ...] = ()
    text: tuple[Text, ...] = (((NOT_HERE, False),),)
    hyper: tuple[HyperParameter, ...] = ()


@dataclass(frozen=True)
class OtherRuns:
    """Runs of a method that stand in no row: where, with which settings, and the runs."""

    column: Column
    setting: str
    runs: tuple[RunLink, ...]


def about(name: str, methods: Mapping[str, type[Method]]) -> About:
    """A method's description from its class; a method that is not installed has a short one."""
    cls = methods.get(name)
    if cls is None:
        return About(name)
    ancestors = [methods[base.__dict__["name"]] for base in cls.__mro__ if _registered(base, methods)]
    module = sys.modules.get(cls.__module__)
    text = [paragraph for part in (cls, module) if part for paragraph in paragraphs(_own_doc(part))]
    return About(
        name,
        cls.reference,
        ancestors[1].name if len(ancestors) > 1 else "",
        ancestors[-1].title,
        tuple(cls.families),
        tuple(text),
        tuple(_hyper(cls.Hyper)),
    )


def _registered(base: type, methods: Mapping[str, type[Method]]) -> bool:
    return methods.get(vars(base).get("name", "")) is base


def _own_doc(of: Any) -> str:
    """The docstring that a class or module has itself, not one that it inherits."""
    return inspect.cleandoc(vars(of).get("__doc__") or "")


def paragraphs(text: str) -> list[Text]:
    """The paragraphs of a docstring, lines joined, with what stands in backticks as code."""
    made = []
    for part in re.split(r"\n\s*\n", text):
        joined = " ".join(part.split())
        pieces = re.split(r"``?([^`]+)``?", joined)
        found = tuple((piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece)
        if found:
            made.append(found)
    return made


def _hyper(of: type[HyperParameters]) -> Iterable[HyperParameter]:
    space = of.search_space()
    for name, field in of.model_fields.items():
        search = ", ".join(map(str, space.get(name, ())))
        yield HyperParameter(name, str(field.default), search, field.description or "")


def other_runs(runs: pd.DataFrame, shown: set[str]) -> dict[str, list[OtherRuns]]:
    """Method -> its runs whose spec hash is not among ``shown``, by place and settings."""
    left = runs[~runs["spec_hash"].isin(shown)]
    usual: dict[tuple[str, Column], Mapping[str, Any]] = {}
    parts: dict[tuple[str, Column, str], list[int]] = defaultdict(list)
    where = zip(left["method"], left["column"], left["settings"], strict=True)
    for place, (method, column, settings) in enumerate(where):
        reference = usual.setdefault((method, column), settings)
        parts[method, column, difference(settings, reference)].append(place)
    made: dict[str, list[OtherRuns]] = defaultdict(list)
    for (method, column, setting), places in sorted(parts.items()):
        made[method].append(OtherRuns(column, setting, links(left.iloc[places])))
    return made
