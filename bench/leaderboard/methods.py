"""What a method's page says of it: from its class, and from the runs that stand on no board."""

from __future__ import annotations

import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from bench.engine.method import Method
from bench.hyper import HyperParameter, hyper_parameters
from bench.leaderboard.boards import RunLink, links
from bench.studies.settings import Column, difference_text
from bench.studies.source import Runs

NOT_HERE = "This method is not installed here: nothing is known of it but its runs."
UNKNOWN = Markup(f"<p>{NOT_HERE}</p>")

NAMES = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "eta", "theta", "kappa", "lambda", "mu", "xi", "pi"),
    *("rho", "sigma", "tau", "phi", "psi", "omega"),
    *("Gamma", "Delta", "Theta", "Lambda", "Xi", "Sigma", "Phi", "Psi", "Omega"),
)
GREEK = dict(zip(NAMES, "αβγδεηθκλμξπρστφψωΓΔΘΛΞΣΦΨΩ", strict=True))
"""Letters by the names that docstrings write."""

MARKS = {"": "", "~": "\u0303", "^": "\u0302", "-bar": "\u0304", "'": "\u2032"}
"""What stands on or after a letter: combining tilde, hat and bar, and a prime."""

RELATIONS = {"!=": "≠", "<=": "≤", ">=": "≥"}

OPERATORS = ("sum", "max", "min", "mean", "softmax", "grad", "deg", "bar", "CE")
"""What else may have an index; set upright."""

MARK = r"~|'|-bar(?![^\W_])|\^(?![^\W_]|\{)"

SYMBOL = re.compile(
    rf"""(?<![\w^])
    (?: (?P<d>d?)(?P<letter>{"|".join(GREEK)}|[A-Za-z](?=(?:{MARK})?_|(?:~|-bar|\^)(?![\w{{])))
        | (?P<operator>{"|".join(OPERATORS)})(?=_\w{{1,2}}\b|_\{{) )
    (?P<mark>(?:{MARK})?) (?:_(?P<index>\w+|\{{[^}}]+\}}))? (?!\w) (?:\^(?P<raised>[^\W_]+|\{{[^}}]+\}}))?
    | (?<=[\w)|}}~'])\^(?P<power>[^\W_]+|\{{[^}}]+\}})(?:_(?P<low>\w))?""",
    re.VERBOSE,
)
"""A letter by sign or name, or an operator, with mark, index and power, as in ``theta~_i^2``; or a power."""

EMPHASIS = re.compile(r"(?<![\w*])\*(?![\s*])([^*]*[^\s*])\*(?![\w*])")
"""Words between asterisks; one with blanks around it is a product."""

_markdown = MarkdownIt("zero", {"html": False}).enable(["list", "backticks", "code", "fence", "blockquote"])


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
    tokens = _markdown.parse(docstring)
    for token in tokens:
        for child in token.children or ():
            if child.type == "text":
                child.type, child.content = "html_inline", _inline(child.content)
    return Markup(_markdown.renderer.render(tokens, _markdown.options, {}))


def _inline(text: str) -> Markup:
    """Escaped text with its emphasis and formulas."""
    for relation, sign in RELATIONS.items():
        text = text.replace(relation, sign)
    # Split by a pattern with one group: every second part is that of the group.
    parts = EMPHASIS.split(text)
    return Markup().join(
        Markup("<em>%s</em>") % _formulas(part) if place % 2 else _formulas(part)
        for place, part in enumerate(parts)
    )


def _formulas(text: str) -> Markup:
    """Escaped text in which the letters, indices and powers of formulas are set as such."""
    parts, end = [Markup()], 0
    for match in SYMBOL.finditer(text):
        part = {name: (found or "").strip("{}") for name, found in match.groupdict().items()}
        letter, operator = part["d"] + GREEK.get(part["letter"], part["letter"]), part["operator"]
        tags = (
            ("i", letter + MARKS[part["mark"]] if letter else ""),
            ("", operator.replace("sum", "Σ")),
            ("sub", part["index"] or part["low"]),
            ("sup", part["raised"] or part["power"]),
        )
        parts.append(escape(text[end : match.start()]))
        parts += [Markup(f"<{tag}>%s</{tag}>" if tag else "%s") % words for tag, words in tags if words]
        end = match.end()
    return Markup().join([*parts, escape(text[end:])])
