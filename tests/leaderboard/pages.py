"""Reading pages without a browser."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path


class Page(HTMLParser):
    """Addresses, anchors and tables of a page; a table is a list of rows of cells' texts."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self._cell = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.links += [value for key in ("href", "src") if (value := found.get(key))]
        self.anchors |= {found["id"]} if found.get("id") else set()
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._cell = False

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._cell:
            self.tables[-1][-1][-1] += data


def records(table: list[list[str]]) -> list[dict[str, str]]:
    """A table's rows by its headings."""
    head, *rows = table
    return [dict(zip(head, row, strict=True)) for row in rows]
