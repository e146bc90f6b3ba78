"""Documents as Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pandas as pd

from bench.figures.panels import Figure
from bench.report.document import Document
from bench.report.grades import GRADES, MARKS, grade_look
from bench.report.table import Table, Value

LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
        "²": r"$^2$",
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)

BESIDE = f"published value, measured minus published with its 90 % interval, and verdict ({MARKS})"
"""What stands beside the numbers of an experiment."""


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it stands; minus signs of numbers become real ones."""
    return re.sub(r"(?<![\w.])-(?=\d)", "$-$", text.translate(LATEX))


def escape_markdown(text: str) -> str:
    """Text that Markdown prints as it stands inside a table."""
    return " ".join(re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text).split())


def _beside(value: Value) -> tuple[str, str]:
    """What stands beside a number: what is published, and ``+0.71 [+0.12, +1.30] =``, which is difference,
    interval and the verdict's mark, or the word of a state.
    """
    if not value.verdict:
        return "", ""
    verdict = grade_look(value.verdict).mark if value.verdict in GRADES else value.verdict
    judgement = " ".join(filter(None, (value.difference_text, value.interval_text, verdict)))
    return value.published_text, judgement


def markdown_table(table: Table) -> str:
    """A table in Markdown; best bold, second best underlined, what stands beside a number in brackets."""
    ranks = {0: "{}", 1: "**{}**", 2: "<u>{}</u>"}
    lines = [[table.stub, *map(escape_markdown, table.headings)]]
    lines.append(["---", *("---:" for _ in table.columns)])
    for label, values in table.rows:
        line = [escape_markdown(label)]
        for value in values:
            beside = ", ".join(filter(None, _beside(value)))
            text = ranks[value.rank].format(escape_markdown(value.text))
            line.append(f"{text} ({escape_markdown(beside)})" if beside else text)
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown(document: Document, figures: Mapping[Figure, str]) -> str:
    """A document in Markdown with its figures, whose files have these names (without ``.png``)."""
    caption = (*document.caption, *([] if document.is_statistic else [f"In brackets: {BESIDE}."]))
    parts = [f"# {escape_markdown(document.full_title)}", *map(escape_markdown, caption)]
    for view in document.views:
        parts += [f"## {escape_markdown(view.title)}", *map(markdown_table, view.by_group())]
    for figure, name in figures.items():
        parts += [f"![{name}]({name}.png)", f"*{escape_markdown(figure.caption)}*"]
    notes = [f"- {escape_markdown(note)}" for note in (*document.notes, *document.fine_print)]
    parts += ["## Notes", "\n".join(notes)] if notes else []
    return "\n\n".join(parts) + "\n"


def latex_table(table: Table, caption: str, label: str) -> str:
    """A table with one heading, by pandas; best bold, second best underlined. What stands beside numbers is
    below them: published values, then judgements.
    """
    ranks = {0: "{}", 1: r"\textbf{{{}}}", 2: r"\underline{{{}}}"}
    rows = []
    for label_text, values in table.rows:
        numbers = [ranks[value.rank].format(escape_latex(value.text)) for value in values]
        rows.append([escape_latex(label_text), *numbers])
        for texts in zip(*map(_beside, values), strict=True):
            smaller = [rf"\scriptsize {escape_latex(text)}" if text else "" for text in texts]
            rows += [["", *smaller]] if any(texts) else []
    heads = [("", table.stub), *table.body.columns]
    columns = pd.MultiIndex.from_tuples([tuple(map(escape_latex, head)) for head in heads])
    body = pd.DataFrame(rows, columns=columns)
    return (body if table.groups[0][0] else body.droplevel(0, axis=1)).to_latex(
        index=False,
        escape=False,
        caption=escape_latex(caption),
        label=label,
        column_format="l" + "r" * table.body.shape[1],
        multicolumn_format="c",
    )


def latex(document: Document) -> str:
    r"""A document's tables, each under one heading, which need ``booktabs`` alone."""
    parts = ["% \\usepackage{booktabs}\n"]
    for view in document.views:
        legend = [] if document.is_statistic else [f"Below numbers: {BESIDE}."]
        caption = " ".join([f"{document.full_title}. {view.title}.", *document.caption, *legend])
        for number, table in enumerate(view.by_group(), 1):
            parts.append(latex_table(table, caption, f"tab:{document.key}_{view.name}_{number}"))
    return "\n".join(parts).replace("{table}", "{table*}")
