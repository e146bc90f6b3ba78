"""What a method's page says of it, from its class; nothing is known of a method that is not installed."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping

from markdown_it import MarkdownIt
from markupsafe import Markup

from bench.engine.method import Method

NOT_HERE = "This method is not installed here: nothing is known of it but its runs."

MARKDOWN = MarkdownIt("zero", {"html": False}).enable(
    ["list", "backticks", "code", "fence", "blockquote", "emphasis"]
)
"""Renders docstrings, of which no word becomes markup."""


def _docstrings(kind: type[Method]) -> list[str]:
    module = sys.modules.get(kind.__module__)
    return [inspect.cleandoc(part.__doc__) for part in (kind, module) if part and part.__doc__]


def description(kind: type[Method] | None) -> Markup:
    """The docstrings of a method's class and module as HTML."""
    if kind is None:
        return Markup("<p>{}</p>").format(NOT_HERE)
    return Markup("".join(map(MARKDOWN.render, _docstrings(kind))))


def summary(kind: type[Method] | None) -> str:
    """The first paragraph of these in a line."""
    if kind is None:
        return NOT_HERE
    docstrings = _docstrings(kind)
    return " ".join(docstrings[0].split("\n\n")[0].split()) if docstrings else kind.title


def base_of(kind: type[Method] | None, methods: Mapping[str, type[Method]]) -> type[Method] | None:
    """The first of some methods that a method's class extends."""
    bases = kind.__mro__[1:] if kind else ()
    return next((base for base in bases if methods.get(vars(base).get("name", "")) is base), None)
