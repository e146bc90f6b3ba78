"""Documents as Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bench.figures.panels import Figure
from bench.report.document import Document
from bench.report.grades import GRADES, MARKS, grade_look
from bench.report.table import Cell, Table, Value, rank_of, text_of

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
    """Text that LaTeX prints as it stands."""
    return text.translate(LATEX)


def escape_markdown(text: str) -> str:
    """Text that Markdown prints as it stands inside a table."""
    return " ".join(re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text).split())


def _beside(cell: Cell) -> tuple[str, str]:
    """What stands beside a number: what is published, and ``+0.71 [+0.12, +1.30] =``, which is difference,
    interval and the verdict's mark, or the word of a state.
    """
    if not isinstance(cell, Value) or not cell.verdict:
        return "", ""
    verdict = grade_look(cell.verdict).mark if cell.verdict in GRADES else cell.verdict
    return cell.published_text, " ".join(filter(None, (cell.difference_text, cell.interval_text, verdict)))


def markdown_table(table: Table) -> str:
    """A table in Markdown; best bold, second best underlined, what stands beside a number in brackets."""

    def text(cell: Cell) -> str:
        number = escape_markdown(text_of(cell))
        number = {1: f"**{number}**", 2: f"<u>{number}</u>"}.get(rank_of(cell), number)
        published, judgement = _beside(cell)
        return f"{number} ({escape_markdown(f'{published}, {judgement}')})" if judgement else number

    lines = [[table.stub, *map(escape_markdown, table.headings)]]
    lines.append(["---", *("---:" for _ in table.columns)])
    lines += [[escape_markdown(label), *map(text, values)] for label, values in table.rows]
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


def _numbers(text: str) -> str:
    """A LaTeX entry; minus signs of numbers become real ones."""
    return re.sub(r"(?<![\w.])-(?=\d)", "$-$", escape_latex(text))


def latex_table(table: Table) -> str:
    """A booktabs ``tabular`` of a table with one heading; best bold, second best underlined. What stands
    beside numbers is below them: published values, then judgements.
    """

    def text(cell: Cell) -> str:
        number = _numbers(text_of(cell))
        return {1: rf"\textbf{{{number}}}", 2: rf"\underline{{{number}}}"}.get(rank_of(cell), number)

    width = len(table.columns)
    lines = [rf"\begin{{tabular}}{{l{'r' * width}}}", r"\toprule"]
    heading = table.groups[0][0]
    if heading:
        lines.append(rf" & \multicolumn{{{width}}}{{c}}{{{escape_latex(heading)}}} \\")
        lines.append(rf"\cmidrule(lr){{2-{width + 1}}}")
    rows = [list(map(escape_latex, [table.stub, *table.columns]))]
    for label, cells in table.rows:
        rows.append([escape_latex(label), *map(text, cells)])
        for texts in zip(*map(_beside, cells), strict=True):
            smaller = [rf"{{\scriptsize {_numbers(each)}}}" if each else "" for each in texts]
            rows += [["", *smaller]] if any(texts) else []
    body = [" & ".join(row) + r" \\" for row in rows]
    return "\n".join([*lines, body[0], r"\midrule", *body[1:], r"\bottomrule", r"\end{tabular}"])


def latex(document: Document) -> str:
    r"""A document's views as ``table*`` environments, which need ``booktabs`` alone."""
    parts = [r"% \usepackage{booktabs}"]
    for view in document.views:
        legend = [] if document.is_statistic else [f"Below numbers: {BESIDE}."]
        caption = " ".join([f"{document.full_title}. {view.title}.", *document.caption, *legend])
        lines = [
            r"\begin{table*}",
            r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{escape_latex(caption)}}}",
            rf"\label{{tab:{document.key}_{view.name}}}",
            "\n\n\\medskip\n\n".join(map(latex_table, view.by_group())),
            r"\end{table*}",
        ]
        parts.append("\n".join(lines))
    if document.notes:
        parts.append("\n".join(f"% {' '.join(note.split())}" for note in document.notes))
    return "\n\n".join(parts) + "\n"
