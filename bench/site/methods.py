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
from bench.frames.stored_runs import WHERE, parts_of, rows_of
from bench.hyper import hyper_parameters
from bench.site.boards import run_links
from bench.spec import RunSpec
from bench.studies.settings import Column, difference_text, settings_of

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
) -> dict[str, list[tuple[Column, str, list[Any]]]]:
    """Method -> its runs whose spec hash is not among ``shown_hashes``: where, with which settings, and
    ``RUN`` of each.
    """
    runs_by_method = defaultdict(list)
    unshown_runs = runs[~runs["spec_hash"].isin(shown_hashes)]
    for (method, *where), part in parts_of(unshown_runs, ["method", *WHERE]):
        first_runs = part.drop_duplicates("cell")
        settings = [
            settings_of(RunSpec.model_validate_json(run.spec), per_seed=run.cell == run.family)
            for run in rows_of(first_runs)
        ]
        texts = [difference_text(one, settings[0]) for one in settings]
        setting = part["cell"].map(dict(zip(first_runs["cell"], texts, strict=True)))
        for text, links in run_links(part.assign(setting=setting), "setting").items():
            runs_by_method[method].append((Column(*where), text, links))
    return runs_by_method


def html(docstring: str) -> Markup:
    """The description in a docstring that was cleaned of its indentation; no word of it becomes markup."""
    return Markup(_markdown.render(docstring))
