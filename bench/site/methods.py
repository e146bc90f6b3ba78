"""What a method's page says of it, from its class."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt
from markupsafe import Markup

from bench.engine.method import Method
from bench.hyper import hyper_parameters

NOT_HERE = "This method is not installed here: nothing is known of it but its runs."

MARKDOWN = MarkdownIt("zero", {"html": False}).enable(
    ["list", "backticks", "code", "fence", "blockquote", "emphasis"]
)
"""Renders docstrings, of which no word becomes markup."""


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
        Markup("".join(map(MARKDOWN.render, docs))),
        " ".join(docs[0].split("\n\n")[0].split()) if docs else cls.title,
        hyper_parameters(cls.Hyper),
    )
