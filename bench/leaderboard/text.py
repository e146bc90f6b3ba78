"""Docstrings as HTML: paragraphs, lists, code and formulas, with every other sign escaped."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

INDEX = re.compile(r"(?<![\w^])([A-Za-z])_(\w{1,3}|\{\w+\})(?!\w)|(?<=[\w)|])\^(\w+|\{[^}]+\})")
"""A letter with a short index, as in ``a_ij``, or a power."""

_markdown = MarkdownIt("zero", {"html": False}).enable(["list", "backticks", "code", "fence", "blockquote"])


def html(docstring: str) -> Markup:
    """The description in a docstring that was cleaned of its indentation; no word of it becomes markup."""
    tokens = _markdown.parse(docstring)
    for token in tokens:
        for child in token.children or ():
            if child.type == "text":
                child.type, child.content = "html_inline", _formulas(child.content)
    return Markup(_markdown.renderer.render(tokens, _markdown.options, {}))


def _formulas(text: str) -> str:
    """Escaped text in which the indices and powers of formulas are set as such."""

    def piece(match: re.Match[str]) -> str:
        letter, index, power = match.groups()
        if power is not None:
            return f"<sup>{power.strip('{}')}</sup>"
        return f"<i>{letter}</i><sub>{index.strip('{}')}</sub>"

    return INDEX.sub(piece, str(escape(text)))
