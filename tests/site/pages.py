"""Reading pages without a browser."""

from __future__ import annotations

import base64
import json
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from bench.site.folder import board_page

BOARD = board_page("tiny", "cora")


class Page(HTMLParser):
    """Addresses, anchors, tables (a list of rows of cells' texts) and lists of facts of a page.

    What a ``span`` of class ``hidden`` says is left out, as are nested tables' rows.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.tables: list[list[list[str]]] = []
        self.facts: list[dict[str, str]] = []
        self._term: list[str] | None = None
        self.text = ""
        self._cell = False
        self.feed(path.read_text(encoding="utf-8").replace("\xa0", " "))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.links += [value for key in ("href", "src") if (value := found.get(key))]
        self.anchors |= {found["id"]} if found.get("id") else set()
        if tag == "dl":
            self.facts.append({})
        elif tag in ("dt", "dd") and self.facts:
            self._term = [*self._term, ""] if tag == "dd" and self._term else [""]
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
        elif tag == "dd" and self._term:
            term, fact = self._term[0], self._term[-1]
            self.facts[-1][term] = fact
            self._term = None

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._term:
            self._term[-1] += data
        if self._cell:
            self.tables[-1][-1][-1] += data


def records(table: list[list[str]]) -> list[dict[str, str]]:
    """A table's rows by its headings."""
    head, *rows = table
    return [dict(zip(head, row, strict=True)) for row in rows]


def board(site: Path) -> dict[tuple[int, str], dict[str, str]]:
    """Rows of the board by number of clients and method's title, with what their details say."""
    rows: dict[tuple[int, str], dict[str, str]] = {}
    page = Page(site / BOARD)
    heads, *lines = page.tables[0]
    clients = 0
    for line in lines:
        if len(line) == len(heads):
            title = line[0]
            rows[clients, title] = dict(zip(heads, line, strict=True))
        elif "clients" in line[0] and "axis" in line[0]:
            clients = int(line[0].split(", ")[1].split()[0])
    for (clients, title), facts in zip(rows, page.facts, strict=True):
        rows[clients, title] |= facts
    return rows


def loaded(path: Path) -> dict[str, Any]:
    """What a shard holds: runs by spec hash, and environments."""
    packed = path.read_text(encoding="ascii").split('"')[1]
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return found
