"""Documents as Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bench.figures.panels import Figure
from bench.report.document import Document
from bench.report.grades import GRADES, grade_look
from bench.report.table import Cell, Table, Value, rank_of, text_of

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


def _judgement(value: Value) -> str:
    """``+0.71 [+0.12, +1.30] =``: difference, its interval and the verdict's mark, or the word of a state."""
    verdict = grade_look(value.verdict).mark if value.verdict in GRADES else value.verdict
    return " ".join(filter(None, (value.difference_text, value.interval_text, verdict)))


def _legend(tables: Iterable[Table], place: str) -> tuple[str, ...]:
    """What stands at a place beside numbers, and what its marks mean; nothing where nothing does."""
    values = [value for table in tables for _, row in table.rows for value in row]
    verdicts = {value.verdict for value in values if isinstance(value, Value)}
    marks = ", ".join(f"{look.mark} {name}" for name, look in GRADES.items() if name in verdicts)
    return (
        f"{place}: published value, measured minus published with its 90 % interval, and verdict ({marks}).",
    ) * bool(marks)


def markdown_table(table: Table) -> str:
    """A table in Markdown; best bold, second best underlined, what stands beside a number in brackets."""

    def text(cell: Cell) -> str:
        number = escape_markdown(text_of(cell))
        number = {1: f"**{number}**", 2: f"<u>{number}</u>"}.get(rank_of(cell), number)
        if not isinstance(cell, Value) or not cell.verdict:
            return number
        return f"{number} ({escape_markdown(f'{cell.published_text}, {_judgement(cell)}')})"

    lines = [[table.stub, *map(escape_markdown, table.headings)]]
    lines.append(["---", *("---:" for _ in table.columns)])
    lines += [[escape_markdown(label), *map(text, values)] for label, values in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown(document: Document, figures: Mapping[Figure, str]) -> str:
    """A document in Markdown with its figures, whose files have these names (without ``.png``)."""
    caption = (*document.caption, *_legend(document.views, "In brackets"))
    parts = [f"# {escape_markdown(document.full_title)}", *map(escape_markdown, caption)]
    for view in document.views:
        parts.append(f"## {escape_markdown(view.title)}")
        parts += [markdown_table(block) for block in view.by_group()]
    for figure, name in figures.items():
        parts += [f"![{name}]({name}.png)", f"*{escape_markdown(figure.caption)}*"]
    all_notes = [*document.notes, *document.fine_print]
    if all_notes:
        parts += ["## Notes", "\n".join(f"- {escape_markdown(note)}" for note in all_notes)]
    return "\n\n".join(parts) + "\n"


def _numbers(text: str) -> str:
    """A LaTeX entry; minus signs of numbers become real ones."""
    return re.sub(r"(?<![\w.])-(?=\d)", "$-$", escape_latex(text))


def _below(row: Sequence[Cell]) -> Iterator[list[str]]:
    """The lines below a row's numbers: published values, and judgements, which stand on a line of their own
    where they have intervals, so that columns stay as narrow as they are without.
    """
    values = [cell if isinstance(cell, Value) and cell.verdict else None for cell in row]
    published = [value.published_text if value else "" for value in values]
    judgements = [_judgement(value) if value else "" for value in values]
    has_intervals = any(value.interval_text for value in values if value)
    both = [", ".join(filter(None, texts)) for texts in zip(published, judgements, strict=True)]
    for texts in (published, judgements) if has_intervals else (both,):
        if any(texts):
            yield [rf"{{\scriptsize {_numbers(text)}}}" if text else "" for text in texts]


def latex_table(table: Table) -> str:
    """A booktabs ``tabular``; best bold, second best underlined, what stands beside numbers is below them."""

    def text(cell: Cell) -> str:
        number = _numbers(text_of(cell))
        return {1: rf"\textbf{{{number}}}", 2: rf"\underline{{{number}}}"}.get(rank_of(cell), number)

    lines = [rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}", r"\toprule"]
    if any(heading for heading, _ in table.groups):
        heads = [rf"\multicolumn{{{span}}}{{c}}{{{escape_latex(heading)}}}" for heading, span in table.groups]
        lines.append(f" & {' & '.join(heads)} \\\\")
        start = 2
        rules = []
        for _, span in table.groups:
            rules.append(rf"\cmidrule(lr){{{start}-{start + span - 1}}}")
            start += span
        lines.append("".join(rules))
    lines += [" & ".join([escape_latex(table.stub), *map(escape_latex, table.columns)]) + r" \\", r"\midrule"]
    for label, values in table.rows:
        lines.append(" & ".join([escape_latex(label), *map(text, values)]) + r" \\")
        lines += [" & ".join(["", *texts]) + r" \\" for texts in _below(values)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def latex(document: Document) -> str:
    r"""A document's views as ``table*`` environments, which need ``booktabs`` alone."""
    parts = [r"% \usepackage{booktabs}"]
    for view in document.views:
        blocks = "\n\n\\medskip\n\n".join(map(latex_table, view.by_group()))
        caption = (
            f"{document.full_title}. {view.title}.",
            *document.caption,
            *_legend([view], "Below numbers"),
        )
        parts.append(
            "\n".join(
                [
                    r"\begin{table*}",
                    r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
                    rf"\caption{{{escape_latex(' '.join(caption))}}}",
                    rf"\label{{tab:{document.key}_{view.name}}}",
                    blocks,
                    r"\end{table*}",
                ]
            )
        )
    if document.notes:
        parts.append("\n".join(f"% {' '.join(note.split())}" for note in document.notes))
    return "\n\n".join(parts) + "\n"
