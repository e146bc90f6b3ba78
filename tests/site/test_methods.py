"""Methods' pages, and their descriptions as HTML."""

from __future__ import annotations

from pathlib import Path

from pages import Page, records
from site_database import COMPETITORS, EVIL

from bench.site import methods
from bench.site.folder import method_page
from bench.site.methods import description


def test_a_methods_page_describes_it(site: Path) -> None:
    page = Page(site / method_page("fedper"))
    assert "Arivazhagan et al., 2019" in page.text
    assert "The backbone is averaged as in FedAvg; every client keeps a head of its own." in page.text
    assert "fedavg.html" in " ".join(page.links)
    cells = records(next(table for table in page.tables if table[0][-1] == "Runs by seed"))
    assert cells[0]["Measured"] == "84.50"
    assert cells[0]["Runs by seed"] == "0 1 (diverged)"
    assert "not installed here" in description(None)
    evil = records(Page(site / method_page(EVIL)).tables[0])
    assert [(row["Name"], row["Default"], row["Tuned over"], row["Meaning"]) for row in evil] == [
        ("mu", "0.1", "0.1, 1.0", "–")
    ]
    fedprox = records(Page(site / method_page("fedprox")).tables[0])
    assert {row["Name"]: row["Range"] for row in fedprox} == {
        "weights": "uniform, samples",
        "mu": "≥ 0",
    }


def test_every_hyper_parameter_has_a_meaning() -> None:
    silent = [
        (name, field)
        for name, cls in COMPETITORS.items()
        if name != EVIL
        for field in cls.Hyper.model_fields
        if not cls.Hyper.meaning(field)
    ]
    assert silent == []


def test_docstrings_become_paragraphs_lists_and_code() -> None:
    shown = methods.MARKDOWN.render(
        "One ``a.b`` *line*.\n\n1. first x_ij,\n2. second: 1e-3 * best_val <b>.\n\n- a\n- b"
    )
    assert shown.count("<p>") - shown.count("<li>") <= 1
    assert shown.count("<ol>") == shown.count("<ul>") == 1
    assert shown.count("<li>") == 4
    assert "<code>a.b</code>" in shown
    assert "<em>line</em>" in shown
    assert "best_val &lt;b&gt;" in shown
