"""Links among README, docs/ and the other pages lead to a file that is there, and to a heading of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob(".github/**/*.md"), *(ROOT / "docs").glob("*.md")])
FENCE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1`*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The names that GitHub and Sphinx give to a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)).lower().replace(" ", "-")
        for text in headings
    }


def broken(page: Path) -> list[str]:
    """A page's relative links that lead nowhere."""
    targets = [
        link for link in LINK.findall(prose(page)) if "://" not in link and not link.startswith("mailto:")
    ]
    missing = []
    for target in targets:
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            missing.append(target)
    return missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_every_module_that_the_map_names_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`((?:bench|tests)/[\w/]+\.py)`", text))
    assert len(names) > 15
    assert {name for name in names if not (ROOT / name).is_file()} == set()
