"""What a method's page says of it: from its class, and from the runs that stand on no board."""

from __future__ import annotations

import inspect
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from markdown_it import MarkdownIt
from markupsafe import Markup

from bench.engine.method import Method
from bench.frames.stored_runs import WHERE, rows_of
from bench.hyper import hyper_parameters
from bench.site.boards import dataset_title
from bench.studies.settings import Column

NOT_HERE = "This method is not installed here: nothing is known of it but its runs."

_markdown = MarkdownIt("zero", {"html": False}).enable(
    ["list", "backticks", "code", "fence", "blockquote", "emphasis"]
)


class MethodDescription(NamedTuple):
    """A method's description; one that is not installed has its name and title alone."""

    name: str
    title: str
    reference: str = ""
    preset_of: str = ""
    data: tuple[str, ...] = ()
    description: Markup = Markup("<p>{}</p>").format(NOT_HERE)
    summary: str = NOT_HERE
    hyper: Sequence[Mapping[str, str]] = ()


def about(name: str, methods: Mapping[str, type[Method]], title: str = "") -> MethodDescription:
    """A method's description from its class, under ``title`` where that is given."""
    cls = methods.get(name)
    if cls is None:
        return MethodDescription(name, title or name)
    bases = [base for base in cls.__mro__[1:] if methods.get(vars(base).get("name", "")) is base]
    module = sys.modules.get(cls.__module__)
    docs = [inspect.cleandoc(part.__doc__) for part in (cls, module) if part and part.__doc__]
    return MethodDescription(
        name,
        title or cls.title,
        cls.reference,
        bases[0].name if bases else "",
        tuple(cls.families),
        Markup("").join(map(html, docs)),
        " ".join(docs[0].split("\n\n")[0].split()) if docs else cls.title,
        hyper_parameters(cls.Hyper),
    )


def other_runs(
    runs: pd.DataFrame, shown_hashes: Collection[str]
) -> dict[str, dict[tuple[str, str], list[Any]]]:
    """Method -> federation and settings -> its runs whose spec hash is not among ``shown_hashes``."""
    found: dict[str, dict[tuple[str, str], list[Any]]] = defaultdict(lambda: defaultdict(list))
    unshown_runs = runs[~runs["spec_hash"].isin(shown_hashes)]
    for run in rows_of(unshown_runs.sort_values([*WHERE, "setting", "seed"], kind="stable")):
        where = Column(run.dataset, run.scenario, run.clients).description(dataset_title(run.dataset))
        found[run.method][where, run.setting].append(run)
    return found


def html(docstring: str) -> Markup:
    """The description in a docstring that was cleaned of its indentation; no word of it becomes markup."""
    return Markup(_markdown.render(docstring))
