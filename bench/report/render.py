"""Documents as Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pandas as pd

from bench.figures.panels import Figure
from bench.report.document import Document
from bench.report.grades import GRADES, MARKS, grade_look
from bench.report.table import Table

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


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it stands; minus signs of numbers become real ones."""
    return re.sub(r"(?<![\w.])-(?=\d)", "$-$", text.translate(LATEX))


def escape_markdown(text: str) -> str:
    """Text that Markdown prints as it stands inside a table."""
    return " ".join(re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text).split())


def markdown_table(table: Table) -> str:
    """A table in Markdown; best bold, second best underlined. In brackets stand what is published and
    ``+0.71 [+0.12, +1.30] =``: difference, interval and the verdict's mark, or the word of a state.
    """
    ranks = {0: "{}", 1: "**{}**", 2: "<u>{}</u>"}
    lines = [[table.stub, *map(escape_markdown, table.headings)]]
    lines.append(["---", *("---:" for _ in table.columns)])
    for label, values in table.rows:
        line = [escape_markdown(label)]
        for value in values:
            text = ranks[value.rank].format(escape_markdown(value.text))
            if value.verdict:
                verdict = grade_look(value.verdict).mark if value.verdict in GRADES else value.verdict
                judgement = " ".join(filter(None, (value.difference_text, value.interval_text, verdict)))
                text += f" ({escape_markdown(f'{value.published_text}, {judgement}')})"
            line.append(text)
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown(document: Document, figures: Mapping[Figure, str]) -> str:
    """A document in Markdown with its figures, whose files have these names (without ``.png``)."""
    parts = [f"# {escape_markdown(document.full_title)}", *map(escape_markdown, document.caption)]
    parts += [] if document.is_statistic else [escape_markdown(f"Verdicts: {MARKS}.")]
    for view in document.views:
        parts += [f"## {escape_markdown(view.title)}", *map(markdown_table, view.by_group())]
    for figure, name in figures.items():
        parts += [f"![{name}]({name}.png)", f"*{escape_markdown(figure.caption)}*"]
    notes = [f"- {escape_markdown(note)}" for note in (*document.notes, *document.fine_print)]
    parts += ["## Notes", "\n".join(notes)] if notes else []
    return "\n\n".join(parts) + "\n"


def latex_table(table: Table, caption: str, label: str) -> str:
    """A table by pandas; best bold, second best underlined, published values in brackets."""
    ranks = {0: "{}", 1: r"\textbf{{{}}}", 2: r"\underline{{{}}}"}
    heads = [("", table.stub), *table.body.columns]
    rows = []
    for name, values in table.rows:
        row = [escape_latex(name)]
        for value in values:
            text = ranks[value.rank].format(escape_latex(value.text))
            row.append(f"{text} ({escape_latex(value.published_text)})" if value.verdict else text)
        rows.append(row)
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
        caption = " ".join([f"{document.full_title}. {view.title}.", *document.caption])
        for number, table in enumerate(view.by_group(), 1):
            parts.append(latex_table(table, caption, f"tab:{document.key}_{view.name}_{number}"))
    return "\n".join(parts).replace("{table}", "{table*}")
