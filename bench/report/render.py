"""Documents as Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from bench.figures.panels import Figure
from bench.report.document import MARKS, Document, Table

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
    """Escape a text for LaTeX; a hyphen before a number becomes a minus sign."""
    return re.sub(r"(?<![\w.])-(?=\d)", "$-$", text.translate(LATEX))


def escape_markdown(text: str) -> str:
    """Escape a text for a cell of a Markdown table."""
    return " ".join(re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text).split())


def _lines(table: Table, escape: Callable[[str], str], best: str, second: str) -> list[list[str]]:
    """The rows of a table as text. ``best`` and ``second`` are formats for the best and second best values.
    Brackets hold the published value, the difference, and the verdict's mark or the word of a state:
    ``(83.49 ± 0.22, +0.71 =)``.
    """
    lines = []
    for label, values in table.rows:
        line = [escape(label)]
        for value in values:
            text = {1: best, 2: second}.get(value.rank, "{}").format(escape(value.text))
            if value.verdict:
                judgement = f"{value.difference_text} {MARKS.get(value.verdict, value.verdict)}".strip()
                text += f" ({escape(f'{value.published_text}, {judgement}')})"
            line.append(text)
        lines.append(line)
    return lines


def markdown_table(table: Table) -> str:
    """A table in Markdown. The best value is bold, the second best underlined."""
    names = [escape_markdown(", ".join(filter(None, head))) for head in table.body.columns]
    lines = [[table.stub, *names], ["---", *("---:" for _ in names)]]
    lines += _lines(table, escape_markdown, "**{}**", "<u>{}</u>")
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown(document: Document, figures: Mapping[Figure, str]) -> str:
    """A document in Markdown. ``figures`` has the file names of figures, without ``.png``."""
    parts = [f"# {escape_markdown(document.full_title)}", *map(escape_markdown, _caption(document))]
    for view in document.views:
        parts += [f"## {escape_markdown(view.title)}", *map(markdown_table, view.by_group())]
    for figure, name in figures.items():
        parts += [f"![{name}]({name}.png)", f"*{escape_markdown(figure.caption)}*"]
    notes = [f"- {escape_markdown(note)}" for note in (*document.notes, *document.fine_print)]
    return "\n\n".join([*parts, "## Notes", "\n".join(notes)]) + "\n"


def _caption(document: Document) -> tuple[str, ...]:
    marks = ", ".join(f"{mark} {name}" for name, mark in MARKS.items())
    return document.caption if document.is_statistic else (*document.caption, f"Verdicts: {marks}.")


def latex_table(table: Table, caption: str, label: str) -> str:
    """A table in LaTeX with ``booktabs``. The best value is bold, the second best underlined."""
    heads = [[escape_latex(name) for name in (table.stub, *table.columns)]]
    if table.groups[0][0]:
        spans = [(escape_latex(heading), span) for heading, span in table.groups]
        wide = [rf"\multicolumn{{{span}}}{{c}}{{{text}}}" if span > 1 else text for text, span in spans]
        heads.insert(0, ["", *wide])
    lines = _lines(table, escape_latex, r"\textbf{{{}}}", r"\underline{{{}}}")
    head, body = ("".join(" & ".join(line) + " \\\\\n" for line in part) for part in (heads, lines))
    return (
        f"\\begin{{table}}\n\\caption{{{escape_latex(caption)}}}\n\\label{{{label}}}\n"
        f"\\begin{{tabular}}{{l{'r' * len(table.columns)}}}\n\\toprule\n{head}\\midrule\n{body}\\bottomrule\n"
        "\\end{tabular}\n\\end{table}\n"
    )


def latex(document: Document) -> str:
    r"""A document's tables in LaTeX, split by heading. They need no package but ``booktabs``."""
    parts = ["% \\usepackage{booktabs}\n"]
    for view in document.views:
        caption = " ".join([f"{document.full_title}. {view.title}.", *_caption(document)])
        for number, table in enumerate(view.by_group(), 1):
            parts.append(latex_table(table, caption, f"tab:{document.key}_{view.name}_{number}"))
    return "\n".join(parts).replace("{table}", "{table*}")
