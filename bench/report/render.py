"""Documents as Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.report.figures import Figure
from bench.report.frame import frame, write
from bench.report.table import Document, Entry, Table

WIDTH = 6
"""Columns of a wide table before it is continued below."""

LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "²": r"$^2$",
}


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it stands."""
    return "".join(LATEX.get(character, character) for character in text)


def escape_markdown(text: str) -> str:
    """Text that Markdown prints as it stands inside a table."""
    for character in "\\`*_[]<>|":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def _number(text: str) -> str:
    """A LaTeX entry; a number's minus sign becomes a real one."""
    signed = len(text) > 1 and text[0] == "-" and text[1].isdigit()
    return "$-$" + escape_latex(text[1:]) if signed else escape_latex(text)


def _headings(table: Table) -> list[str]:
    named = [heading for heading, span in table.groups for _ in range(span)]
    return [f"{group} {column}".strip() for group, column in zip(named, table.columns, strict=True)]


def markdown_table(table: Table) -> str:
    """A table in Markdown; best bold, second best underlined."""

    def entry(value: Entry) -> str:
        text = escape_markdown(value.text)
        return {1: f"**{text}**", 2: f"<u>{text}</u>"}.get(value.place, text)

    lines = [[table.stub, *map(escape_markdown, _headings(table))]]
    lines.append(["---", *("---:" for _ in table.columns)])
    lines += [[escape_markdown(label), *map(entry, entries)] for label, entries in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown(document: Document, figures: Iterable[Figure]) -> str:
    """A document in Markdown with its figures."""
    parts = [f"# {escape_markdown(document.title)}", *map(escape_markdown, document.caption)]
    for detail in document.details:
        parts += [f"## {escape_markdown(detail.title)}", markdown_table(detail)]
    for figure in figures:
        parts += [f"![{figure.name}]({figure.name}.png)", f"*{escape_markdown(figure.caption)}*"]
    for view in document.views:
        parts.append(f"## {escape_markdown(view.title)}")
        parts += [markdown_table(block) for block in view.blocks(WIDTH)]
    if document.notes:
        parts.append("## Notes")
        parts.append("\n".join(f"- {escape_markdown(note)}" for note in document.notes))
    return "\n\n".join(parts) + "\n"


def latex_table(table: Table) -> str:
    """A booktabs ``tabular``; best bold, second best underlined."""

    def entry(value: Entry) -> str:
        text = _number(value.text)
        return {1: rf"\textbf{{{text}}}", 2: rf"\underline{{{text}}}"}.get(value.place, text)

    lines = [rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}", r"\toprule"]
    if any(heading for heading, _ in table.groups):
        heads = [rf"\multicolumn{{{span}}}{{c}}{{{escape_latex(heading)}}}" for heading, span in table.groups]
        lines.append(f" & {' & '.join(heads)} \\\\")
        first = 2
        rules = []
        for _, span in table.groups:
            rules.append(rf"\cmidrule(lr){{{first}-{first + span - 1}}}")
            first += span
        lines.append("".join(rules))
    lines += [" & ".join([escape_latex(table.stub), *map(escape_latex, table.columns)]) + r" \\", r"\midrule"]
    lines += [
        " & ".join([escape_latex(label), *map(entry, entries)]) + r" \\" for label, entries in table.rows
    ]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def latex(document: Document) -> str:
    r"""A document's views as ``table*`` environments; needs ``booktabs`` and ``graphicx``."""
    parts = [r"% \usepackage{booktabs,graphicx}"]
    for view in document.views:
        blocks = "\n\n\\medskip\n\n".join(
            f"\\resizebox{{\\textwidth}}{{!}}{{%\n{latex_table(block)}%\n}}" for block in view.blocks(WIDTH)
        )
        caption = escape_latex(" ".join([f"{document.title}. {view.title}.", *document.caption]))
        parts.append(
            "\n".join(
                [
                    r"\begin{table*}",
                    r"\centering",
                    rf"\caption{{{caption}}}",
                    rf"\label{{tab:{document.name}_{view.name}}}",
                    blocks,
                    r"\end{table*}",
                ]
            )
        )
    if document.notes:
        parts.append("\n".join(f"% {' '.join(note.split())}" for note in document.notes))
    return "\n\n".join(parts) + "\n"


def save(document: Document, figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write ``NAME.md``, ``NAME.tex`` and ``NAME.csv`` (the cells under every reading)."""
    paths = [folder / f"{document.name}.{kind}" for kind in ("md", "tex", "csv")]
    paths[0].write_text(markdown(document, figures), encoding="utf-8", newline="\n")
    paths[1].write_text(latex(document), encoding="utf-8", newline="\n")
    write(paths[2], frame(document.cells))
    return paths
