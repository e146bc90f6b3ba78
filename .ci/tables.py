"""Compare tables in README.md and docs/protocol.md with those of a report: tables.py REPORT [--write].

A table of a page is one of the report if both have the same head: each of its rows must stand there.
README.md has the reports' scores, a row a paper. ``--write`` mends the pages instead.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

Row = tuple[str, ...]

PAPERS = {
    "FedHGN": "fedhgn",
    "FedSheafHN, final version": "fedsheafhn",
    "FedSheafHN, earlier version": "fedsheafhn",
}
"""Rows of the score in README.md, by the titles of columns in the score of a study."""

MEASURED = ("reproduced", "compatible", "uninformative", "above", "below", "not comparable")
SCORE = ("", "published cells", "measured", *MEASURED)


def rows(text: str) -> Iterator[tuple[Row, Row, str]]:
    """Every row of the Markdown tables in a text: its table's head, its cells, its line."""
    head: Row | None = None
    for line in text.splitlines():
        if not line.startswith("|"):
            head = None
            continue
        cells = tuple(cell.strip().replace("\\_", "_") for cell in line.strip("|").split("|"))
        if head is None:
            head = cells
        elif not re.fullmatch(r"[-:| ]+", line):
            yield head, cells, line


def known(report: Path) -> dict[tuple[Row, str], Row]:
    """The rows of all reproduction scores of a report, by their tables' heads and their labels."""
    every: dict[tuple[Row, str], Row] = {}
    scores: dict[tuple[str, str], dict[str, int]] = {}
    for path in sorted(report.glob("*/reproduction/table.md")):
        for head, cells, _ in rows(path.read_text(encoding="utf-8")):
            every[head, cells[0]] = cells
            if head[0] == "Verdict":
                for paper, text in zip(head[1:], cells[1:], strict=True):
                    number = re.match(r"\d+", text)
                    scores.setdefault((path.parts[-3], paper), {})[cells[0]] = int(number[0]) if number else 0
    for title, study in PAPERS.items():
        score = scores[study, title]
        counts = [score.get(verdict, 0) for verdict in MEASURED]
        numbers = (score["published cells"], sum(counts), *counts)
        every[SCORE, title] = (title, *map(str, numbers))
    return every


def main() -> None:
    """Exit with what differs, if something does."""
    every = known(Path(sys.argv[1]))
    heads, wrong, compared = {head for head, _ in every}, [], 0
    for page in map(Path, ("README.md", "docs/protocol.md")):
        text = page.read_text(encoding="utf-8")
        for head, cells, line in rows(text):
            if head in heads:
                compared += 1
                now = every.get((head, cells[0]))
                if now != cells:
                    wrong.append(f"{page}: {line}\n  today: {' | '.join(now) if now else 'no such row'}")
                    text = text.replace(line, f"| {' | '.join(now)} |" if now else line)
        if "--write" in sys.argv:
            page.write_text(text, encoding="utf-8")
    if (wrong and "--write" not in sys.argv) or not compared:
        sys.exit("\n".join(wrong) or "no table was compared")
    print(f"{compared} rows of tables agree, {len(wrong)} of them written anew")


if __name__ == "__main__":
    main()
