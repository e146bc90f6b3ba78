"""Reading pages without a browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from bench.site.folder import board_page

BOARD = board_page("tiny", "cora")
VOID = {"meta", "img", "br", "link", "input", "path", "circle", "line"}

Element = dict[str, Any]


class Page(HTMLParser):
    """The elements of a page in order, each with its attributes, its text, the names of those around it and
    the elements in it. Spaces that do not break are read as spaces.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._open: list[Element] = []
        self.elements: list[Element] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8").replace("\xa0", " "))
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        inside = [element["tag"] for element in self._open]
        element = {"tag": tag, "attributes": dict(attrs), "text": "", "inside": inside, "parts": []}
        self.elements.append(element)
        for around in self._open:
            around["parts"].append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop()["tag"] == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        for element in self._open:
            element["text"] += data

    def all(self, *tags: str) -> list[Element]:
        return [element for element in self.elements if element["tag"] in tags]

    @property
    def links(self) -> list[str]:
        return [
            value
            for element in self.elements
            for name, value in element["attributes"].items()
            if name in ("href", "src")
        ]

    @property
    def ids(self) -> list[str]:
        return [element["attributes"]["id"] for element in self.elements if "id" in element["attributes"]]

    @property
    def tables(self) -> list[list[list[str]]]:
        """Each table as rows of texts."""
        return [
            [[cell["text"] for cell in parts(row, "th", "td")] for row in parts(table, "tr")]
            for table in self.all("table")
        ]


def parts(element: Element, *tags: str, css: str = "") -> list[Element]:
    """The elements in one that have one of the tags, and the class."""
    return [
        part
        for part in element["parts"]
        if part["tag"] in tags and css in ["", *(part["attributes"].get("class") or "").split()]
    ]


def records(table: list[list[str]]) -> list[dict[str, str]]:
    """A table's rows by its headings."""
    head, *rows = table
    return [dict(zip(head, row, strict=True)) for row in rows]


def board(site: Path) -> dict[tuple[int, str], dict[str, str]]:
    """Rows of the board by number of clients and method's title."""
    page = Page(site / BOARD)
    heads = page.tables[0][0]
    rows: dict[tuple[int, str], dict[str, str]] = {}
    for body in page.all("tbody"):
        head, *lines = parts(body, "tr")
        clients = int(re.findall(r"(\d+) client", head["text"])[0])
        for line in lines:
            row = dict(zip(heads, (cell["text"] for cell in parts(line, "th", "td")), strict=True))
            rows[clients, row["Method"]] = row
    return rows


def loaded(path: Path) -> dict[str, Any]:
    """What a file of runs holds: runs by spec hash."""
    packed = path.read_text(encoding="ascii").split('"')[1]
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return found
