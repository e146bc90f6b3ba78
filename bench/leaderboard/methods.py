"""What a method's page says of it: from its class, and from the runs that stand on no board."""

from __future__ import annotations

import inspect
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markdown_it import MarkdownIt
from markupsafe import Markup

from bench.engine.method import Method
from bench.hyper import HyperParameter, hyper_parameters
from bench.leaderboard.boards import RunLink, links
from bench.studies.settings import Column, difference_text
from bench.studies.source import Runs

NOT_HERE = "This method is not installed here: nothing is known of it but its runs."
UNKNOWN = Markup(f"<p>{NOT_HERE}</p>")

_markdown = MarkdownIt("zero", {"html": False}).enable(
    ["list", "backticks", "code", "fence", "blockquote", "emphasis"]
)


OtherRuns = tuple[Column, str, tuple[RunLink, ...]]
"""Runs of a method that stand in no row: where, with which settings, and the runs."""


@dataclass(frozen=True)
class MethodDescription:
    """A method's description. ``family`` is the title of the method that it is built on in the end."""

    name: str
    title: str
    reference: str = ""
    preset_of: str = ""
    family: str = "not installed"
    data: tuple[str, ...] = ()
    description: Markup = UNKNOWN
    summary: str = NOT_HERE
    hyper: tuple[HyperParameter, ...] = ()


def about(
    name: str, methods: Mapping[str, type[Method]], title: str = "", uninstalled_title: str = ""
) -> MethodDescription:
    """A method's description from its class, under ``title`` instead of the class's own where that is given;
    one that is not installed has a short description.
    """
    cls = methods.get(name)
    if cls is None:
        return MethodDescription(name, title or uninstalled_title or name)
    names = [vars(base).get("name", "") for base in cls.__mro__]
    ancestors = [
        methods[name] for name, base in zip(names, cls.__mro__, strict=True) if methods.get(name) is base
    ]
    module = sys.modules.get(cls.__module__)
    docs = [
        doc for part in (cls, module) if part and (doc := inspect.cleandoc(vars(part).get("__doc__") or ""))
    ]
    return MethodDescription(
        name,
        title or cls.title,
        cls.reference,
        ancestors[1].name if len(ancestors) > 1 else "",
        ancestors[-1].title,
        tuple(cls.families),
        Markup("").join(map(html, docs)),
        " ".join(docs[0].split("\n\n")[0].split()) if docs else cls.title,
        tuple(hyper_parameters(cls.Hyper)),
    )


def other_runs(runs: pd.DataFrame, shown_hashes: Collection[str]) -> dict[str, list[OtherRuns]]:
    """Method -> its runs whose spec hash is not among ``shown_hashes``, by place and settings."""
    unshown_runs = Runs.of(runs[~runs["spec_hash"].isin(shown_hashes)])
    references: dict[tuple[str, Column], Mapping[str, Any]] = {}
    parts: dict[tuple[str, Column, str], list[int]] = defaultdict(list)
    keys = zip(unshown_runs["method"], unshown_runs["column"], unshown_runs["settings"], strict=True)
    for row, (method, column, settings) in enumerate(keys):
        reference = references.setdefault((method, column), settings)
        parts[method, column, difference_text(settings, reference)].append(row)
    runs_by_method: dict[str, list[OtherRuns]] = defaultdict(list)
    for (method, column, setting), rows in sorted(parts.items()):
        runs_by_method[method].append((column, setting, links(unshown_runs.take(rows))))
    return runs_by_method


def html(docstring: str) -> Markup:
    """The description in a docstring that was cleaned of its indentation; no word of it becomes markup."""
    return Markup(_markdown.render(docstring))
